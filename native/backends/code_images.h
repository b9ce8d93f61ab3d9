// Loaded binaries of kernels that have source lines, kept in case their kernels are sampled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace bragg {

// Threads: any; one mutex.
class CodeImages {
 public:
  static CodeImages& instance();

  using Image = std::shared_ptr<const std::vector<uint8_t>>;

  void keep(uint64_t crc, const void* code, size_t size_bytes);
  [[nodiscard]] Image find(uint64_t crc);  // nullptr: it was not kept

  [[nodiscard]] uint64_t refused();  // for want of room

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, Image> images_;
  size_t size_bytes_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace bragg
