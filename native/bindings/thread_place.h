#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "context/python_frames.h"

namespace bragg {

// The innermost frames of a thread's Python, innermost first; none where they could not be told.
struct ThreadPlace {
  static constexpr uint32_t kFrames = 4;
  std::array<RawFrame, kFrames> frames{};
  uint32_t count = 0;
  friend bool operator==(const ThreadPlace&, const ThreadPlace&) = default;
};

// Where another thread is in its Python code, if it is at one instruction for as long as this takes: in a C function,
// or in an operation of an extension, such as a product of matrices. The thread is neither stopped nor waited for: what
// it may unmap meanwhile is read by the kernel, which refuses. Threads: any, without the GIL.
// `known`: what it was before, which is not read again if the thread is still there.
[[nodiscard]] ThreadPlace place_of(const void* thread_state, const ThreadPlace& known) noexcept;

// Where a thread was since its last sample, by what a sampler saw at each tick. Threads: as the owner locks.
class ThreadPlaces {
 public:
  struct Stay {
    ThreadPlace place;
    int64_t until_ns;  // the last tick that saw it
  };
  void see(const ThreadPlace& place, int64_t now_ns) noexcept;
  [[nodiscard]] ThreadPlace last() const noexcept { return count_ > 0 ? stays_[count_ - 1].place : ThreadPlace{}; }
  [[nodiscard]] std::span<const Stay> stays() const noexcept { return {stays_.data(), count_}; }

 private:
  std::array<Stay, 16> stays_{};
  uint32_t count_ = 0;
};

}  // namespace bragg
