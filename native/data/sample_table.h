// Per-session instruction samples: one row per (node, function of a cubin, instruction, stall reason).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "context/calling_context_tree.h"
#include "context/hash.h"
#include "data/changing_rows.h"

namespace bragg {

// A function of a cubin.
struct Code {
  uint64_t cubin_crc = 0;
  StringId function = StringId::None;
  friend bool operator==(const Code&, const Code&) = default;
};

struct SampleKey {
  NodeId node = kRootNode;  // of the kernel
  CodeId code = CodeId::None;
  uint32_t pc_offset = 0;
  StringId reason = StringId::None;
  friend bool operator==(const SampleKey&, const SampleKey&) = default;
};

struct SampleRow {
  SampleKey key;
  uint64_t count = 0;
  uint64_t exact = 0;  // of these the launch is known; the others are shared out by GPU time
};

// Threads: consumer only.
class SampleTable {
 public:
  // 100 MB. Beyond it new rows are refused.
  static constexpr size_t kMaxRows = 1u << 21;

  void add(NodeId node, const Code& code, uint32_t pc_offset, StringId reason, uint64_t count, bool is_exact) {
    const auto [known, is_new_code] = codes_.try_emplace(code, static_cast<CodeId>(code_rows_.size()));
    if (is_new_code) code_rows_.push_back(code);
    const SampleKey key{node, known->second, pc_offset, reason};
    auto found = index_.find(key);
    if (found == index_.end()) {
      if (index_.size() == kMaxRows) {
        refused_ += count;
        return;
      }
      found = index_.emplace(key, rows_.append({key})).first;
    }
    SampleRow& row = rows_.change(found->second);
    row.count += count;
    row.exact += is_exact ? count : 0;
  }

  [[nodiscard]] std::vector<SampleRow> take_changes() { return rows_.take_changes(); }
  [[nodiscard]] const std::vector<SampleRow>& rows() const { return rows_.all(); }
  [[nodiscard]] const std::vector<Code>& codes() const { return code_rows_; }  // by CodeId
  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  struct CodeHash {
    size_t operator()(const Code& code) const noexcept { return hash_of(code.cubin_crc, code.function); }
  };
  struct KeyHash {
    size_t operator()(const SampleKey& key) const noexcept {
      return hash_of(pair_of(key.node, key.code), pair_of(key.pc_offset, key.reason));
    }
  };

  std::unordered_map<Code, CodeId, CodeHash> codes_;
  std::vector<Code> code_rows_;
  std::unordered_map<SampleKey, uint32_t, KeyHash> index_;
  ChangingRows<SampleRow> rows_;
  uint64_t refused_ = 0;
};

}  // namespace bragg
