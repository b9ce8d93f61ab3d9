// Which cubin a kernel's handle comes from: specializations of one kernel have the same symbol in different cubins.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "backends/code_numbers.h"
#include "backends/cuda/driver/cupti_abi.h"
#include "backends/cuda/driver/cupti_pc_sampling.h"

namespace bragg {

// Threads: any; one mutex.
class FunctionCubins {
 public:
  static FunctionCubins& instance();

  // This thread is in a call that has just loaded a module of this cubin.
  static void note_cubin(uint64_t crc) noexcept;
  // A call of cupti::module_calls.
  void note_call(uint32_t cbid, const cupti::CallbackData& data) noexcept;

  [[nodiscard]] CodeNumber find(const void* function) noexcept;

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, CodeNumber> of_module_;
  std::unordered_map<const void*, CodeNumber> of_function_;
};

}  // namespace bragg
