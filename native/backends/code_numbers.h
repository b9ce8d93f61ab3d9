// Small numbers for the binaries that kernels come from, so that an event can hold one.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "context/ids.h"

namespace bragg {

// Threads: any; one mutex.
class CodeNumbers {
 public:
  static CodeNumbers& instance() {
    static CodeNumbers& numbers = *new CodeNumbers;  // launches come until the process is gone
    return numbers;
  }

  // None for 0, and when all numbers are taken.
  [[nodiscard]] CodeNumber number_of(uint64_t crc) {
    if (crc == 0) return CodeNumber::None;
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = numbers_.try_emplace(crc, static_cast<CodeNumber>(crcs_.size()));
    if (is_new && crcs_.size() > std::numeric_limits<std::underlying_type_t<CodeNumber>>::max())
      found->second = CodeNumber::None;
    if (is_new && found->second != CodeNumber::None) crcs_.push_back(crc);
    return found->second;
  }
  [[nodiscard]] uint64_t crc(CodeNumber number) {  // 0: not known
    const std::lock_guard lock(mutex_);
    return crcs_[bragg::number_of(number)];
  }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, CodeNumber> numbers_;
  std::vector<uint64_t> crcs_ = {0};  // by number
};

}  // namespace bragg
