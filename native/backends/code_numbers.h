// Small numbers for the binaries that kernels come from, so that an event can hold one.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace bragg {

using CodeNumber = uint16_t;  // of this process; 0: not known

// Threads: any; one mutex.
class CodeNumbers {
 public:
  static CodeNumbers& instance() {
    static CodeNumbers& numbers = *new CodeNumbers;  // launches come until the process is gone
    return numbers;
  }

  // 0 for 0, and when all numbers are taken.
  [[nodiscard]] CodeNumber number_of(uint64_t crc) {
    if (crc == 0) return 0;
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = numbers_.try_emplace(crc, static_cast<CodeNumber>(crcs_.size()));
    if (is_new && crcs_.size() > std::numeric_limits<CodeNumber>::max()) found->second = 0;
    if (is_new && found->second != 0) crcs_.push_back(crc);
    return found->second;
  }
  [[nodiscard]] uint64_t crc(CodeNumber number) {  // 0: not known
    const std::lock_guard lock(mutex_);
    return crcs_[number];
  }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, CodeNumber> numbers_;
  std::vector<uint64_t> crcs_ = {0};  // by number
};

}  // namespace bragg
