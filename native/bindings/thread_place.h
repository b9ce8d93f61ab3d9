#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "context/python_frames.h"

namespace bragg {

// Where another thread is in its Python code, if it is at one instruction for as long as this takes: in a C function,
// or in an operation of an extension, such as a product of matrices. The thread is neither stopped nor waited for: what
// it may unmap meanwhile is read by the kernel, which refuses. Of a frame that changes while it is read the fields may
// be those of several: only one that the thread itself then finds among its own, with this code, may be believed.
// Without code: it could not be told. Threads: any, without the GIL.
[[nodiscard]] RawFrame place_of(const void* thread_state) noexcept;

// Where a thread was since its last sample, by what a sampler saw at each tick. Threads: as the owner locks.
class ThreadPlaces {
 public:
  struct Stay {
    RawFrame place;
    int64_t until_ns;  // the last tick that saw it
  };
  void see(const RawFrame& place, int64_t now_ns) noexcept;
  [[nodiscard]] std::span<const Stay> stays() const noexcept { return {stays_.data(), count_}; }

 private:
  std::array<Stay, 16> stays_{};
  uint32_t count_ = 0;
};

}  // namespace bragg
