#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "context/python_frames.h"

namespace bragg {

struct ThreadPlace {
  RawFrame frame;   // the innermost; without code: it could not be told
  RawFrame caller;  // of it; without code: it has none
  friend bool operator==(const ThreadPlace&, const ThreadPlace&) = default;
};

// Where another thread is in its Python code, if it is at one instruction for as long as this takes: in a C function,
// or in an operation of an extension, such as a product of matrices. The thread is neither stopped nor waited for: what
// it may unmap meanwhile is read by the kernel, which refuses. Of a frame that changes while it is read the fields may
// be those of several: only a place whose frame or caller the thread itself then finds among its own, with this code,
// may be believed. Threads: any, without the GIL.
[[nodiscard]] ThreadPlace place_of(const void* thread_state) noexcept;

// The same of a thread that runs meanwhile: in this frame, at one of the instructions that it passed. Nothing: it is in
// no frame.
[[nodiscard]] std::optional<ThreadPlace> passing_place_of(const void* thread_state) noexcept;

// The first bytes of what may have been freed; false where nothing is mapped.
[[nodiscard]] bool peek_bytes(const void* from, void* into, size_t size) noexcept;

// Where a thread was since its last sample, by what a sampler saw at each tick. Threads: as the owner locks.
class ThreadPlaces {
 public:
  struct Stay {
    ThreadPlace place;
    int64_t until_ns;  // the last tick that saw it
  };
  void see(const ThreadPlace& place, int64_t now_ns) noexcept;
  [[nodiscard]] std::span<const Stay> stays() const noexcept { return {stays_.data(), count_}; }

 private:
  std::array<Stay, 16> stays_{};
  uint32_t count_ = 0;
};

}  // namespace bragg
