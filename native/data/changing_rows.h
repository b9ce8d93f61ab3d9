// Rows of a cumulative table, and which of them changed since they were last written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bragg {

// Threads: consumer only.
template <class Row>
class ChangingRows {
 public:
  [[nodiscard]] uint32_t append(const Row& row) {
    rows_.push_back(row);
    is_changed_.push_back(0);
    return static_cast<uint32_t>(rows_.size() - 1);
  }

  // The row, which is about to change.
  [[nodiscard]] Row& change(uint32_t index) {
    if (is_changed_[index] == 0) {
      is_changed_[index] = 1;
      changed_.push_back(index);
    }
    return rows_[index];
  }

  [[nodiscard]] const Row& operator[](uint32_t index) const { return rows_[index]; }
  [[nodiscard]] const std::vector<Row>& all() const { return rows_; }

  [[nodiscard]] std::vector<Row> take_changes() {
    std::vector<Row> changes;
    changes.reserve(changed_.size());
    for (const uint32_t index : changed_) {
      changes.push_back(rows_[index]);
      is_changed_[index] = 0;
    }
    changed_.clear();
    return changes;
  }

 private:
  std::vector<Row> rows_;
  std::vector<uint8_t> is_changed_;  // not bits: a row changes with each event
  std::vector<uint32_t> changed_;
};

}  // namespace bragg
