// Which cubin a kernel's handle comes from: specializations of one kernel have the same symbol in different cubins.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/cuda/driver/cupti_abi.h"
#include "backends/cuda/driver/cupti_pc_sampling.h"

namespace bragg {

using CubinNumber = uint16_t;  // of this process; 0: not known

// Threads: any; one mutex.
class FunctionCubins {
 public:
  static FunctionCubins& instance();

  // This thread is in a call that has just loaded a module of this cubin.
  static void note_cubin(uint64_t crc) noexcept;
  // A call of cupti::module_calls.
  void note_call(uint32_t cbid, const cupti::CallbackData& data) noexcept;

  [[nodiscard]] CubinNumber find(const void* function) noexcept;
  [[nodiscard]] uint64_t crc(CubinNumber number);  // 0: not known

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  [[nodiscard]] CubinNumber number_of(uint64_t crc);  // mutex held

  std::mutex mutex_;
  std::unordered_map<const void*, CubinNumber> of_module_;
  std::unordered_map<const void*, CubinNumber> of_function_;
  std::unordered_map<uint64_t, CubinNumber> numbers_;
  std::vector<uint64_t> crcs_ = {0};  // by number
};

}  // namespace bragg
