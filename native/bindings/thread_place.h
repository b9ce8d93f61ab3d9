#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "api/bragg_core.h"
#include "context/python_frames.h"

namespace bragg {

// Frames of a thread, innermost first, each called by the next one. None: they could not be told.
class ThreadPlace {
 public:
  [[nodiscard]] std::span<const RawFrame> frames() const noexcept { return {frames_.data(), n_frames_}; }
  [[nodiscard]] RawFrame innermost() const noexcept { return frames_[0]; }
  [[nodiscard]] bool is_full() const noexcept { return n_frames_ == frames_.size(); }
  void append(const RawFrame& frame) noexcept { frames_[n_frames_++] = frame; }
  friend bool operator==(const ThreadPlace&, const ThreadPlace&) = default;

 private:
  std::array<RawFrame, BRAGG_MAX_SEEN_FRAMES> frames_{};
  uint32_t n_frames_ = 0;
};

// Where another thread is in its Python code, if it is at one instruction for as long as this takes: in a C function,
// or in an operation of an extension, such as a product of matrices. The thread is neither stopped nor waited for: what
// it may unmap meanwhile is read by the kernel, which refuses. Of a frame that changes while it is read the fields may
// be those of several: only a place that the thread itself then finds to have led to its own frames may be believed.
// Threads: any, without the GIL.
[[nodiscard]] ThreadPlace place_of(const void* thread_state) noexcept;

// The same of a thread that runs meanwhile: in these frames all the time, in the innermost at one of the instructions
// that it passed. Nothing: it is in no frame.
[[nodiscard]] std::optional<ThreadPlace> passing_place_of(const void* thread_state) noexcept;

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
