// How long a thread was ready to run while other threads had the CPUs, as the kernel counts it.
#pragma once

#include <cstdint>

#include "context/own_descriptor.h"

namespace bragg {

// Threads: one at a time.
class ReadyTime {
 public:
  static constexpr const char* kOfCaller = "/proc/thread-self/schedstat";  // of the thread that asks first
  static constexpr const char* kOfMainThread = "/proc/self/schedstat";

  constexpr explicit ReadyTime(const char* path) : path_(path) {}

  [[nodiscard]] int64_t ns() noexcept;  // 1 us; as it was, where the kernel does not tell
  void forget() noexcept;               // in a forked child: another thread

 private:
  const char* path_;
  int64_t ns_ = 0;
  OwnDescriptor file_;
};

}  // namespace bragg
