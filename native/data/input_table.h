// Per-session rows that say which operators made the inputs of others, and how often.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "context/calling_context_tree.h"
#include "context/hash.h"
#include "data/changing_rows.h"

namespace bragg {

struct InputKey {
  NodeId node = kRootNode;      // the operator
  uint32_t input = 0;           // the number of its argument
  NodeId producer = kRootNode;  // the operator that made it
  uint32_t output = 0;          // which of the tensors that this one made
  friend bool operator==(const InputKey&, const InputKey&) = default;
};

struct InputRow {
  InputKey key;
  uint64_t count = 0;
};

// Threads: consumer only.
class InputTable {
 public:
  // 16 MB. A large model has a few thousand rows; tensors in a list that is passed round may come from anywhere.
  static constexpr size_t kMaxRows = 1u << 18;

  void add(const InputKey& key) {
    auto found = index_.find(key);
    if (found == index_.end()) {
      if (index_.size() == kMaxRows) {
        ++refused_;
        return;
      }
      found = index_.emplace(key, rows_.append({key})).first;
    }
    ++rows_.change(found->second).count;
  }

  [[nodiscard]] uint64_t refused() const { return refused_; }
  [[nodiscard]] std::vector<InputRow> take_changes() { return rows_.take_changes(); }
  [[nodiscard]] const std::vector<InputRow>& rows() const { return rows_.all(); }

 private:
  struct KeyHash {
    size_t operator()(const InputKey& key) const noexcept {
      return hash_of(pair_of(key.node, key.producer), pair_of(key.input, key.output));
    }
  };
  std::unordered_map<InputKey, uint32_t, KeyHash> index_;
  ChangingRows<InputRow> rows_;
  uint64_t refused_ = 0;
};

}  // namespace bragg
