// The frames of Python that a thread's last walk saw. While they still run, the next walk looks at each where it lay,
// all at once, instead of waiting for each to say where its caller lies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "context/call_path.h"
#include "context/python_frames.h"

namespace bragg {

// Of the frames since an entry was opened.
struct PythonPath {
  uint64_t hash;  // of the instructions that they are at
  uint32_t n_frames;
  bool reached_opening;  // a frame that the entry was opened in
};

// Threads: its own.
class PythonRoute {
 public:
  // `opening` tells `opened_in` from those of other entries; nullptr and 0: all frames. Nothing: there are too many to
  // keep, or `frames` are not those of now.
  [[nodiscard]] std::optional<PythonPath> follow(const PythonFrameIterator& frames, const OpeningFrames* opened_in,
                                                 uint32_t opening) noexcept;

 private:
  static constexpr uint32_t kMaxStops = 128;
  static constexpr uint32_t kSearched = 16;  // innermost stops, for a frame that may be one of them

  // Each walk reads all of these: four in a cache line.
  struct Stop {
    const void* frame;
    uint64_t instruction;
  };
  // Up to a stop, from the outermost on.
  struct Sum {
    uint64_t hash;
    uint32_t n_frames;
  };
  struct Walk {
    const PythonFrameIterator& frames;
    const OpeningFrames* opened_in;
  };
  enum class Kind : uint8_t { Frame, Opener, UnmovedOpener, Internal };

  [[nodiscard]] static Kind kind_of(const Walk& walk, const void* frame) noexcept;
  [[nodiscard]] uint32_t find(const void* frame, uint32_t end) const noexcept;
  [[nodiscard]] bool holds(const Walk& walk, uint32_t inner, uint32_t& changed) noexcept;
  [[nodiscard]] bool add_up(const Walk& walk, uint32_t changed, uint32_t end) noexcept;
  [[nodiscard]] bool extend(const Walk& walk) noexcept;

  uint32_t size_ = 0;
  uint32_t opening_ = 0;
  bool reached_opening_ = false;
  std::array<Stop, kMaxStops> stops_;  // outermost first
  std::array<Sum, kMaxStops> sums_;
};

}  // namespace bragg
