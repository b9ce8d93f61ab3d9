// The functions that a thread is in, of Python and of native code, one path.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "context/native_frames.h"
#include "context/python_frames.h"

namespace bragg {

// The Python frames that an entry was opened in, innermost first. Several, because the innermost may be a helper that
// has returned since, like the __enter__ of a context manager; with the code, because frame addresses are reused.
struct OpeningFrames {
  static constexpr uint32_t kCount = 4;
  RawFrame frames[kCount];
  // The same frame, wherever it is by now.
  [[nodiscard]] const RawFrame* find(const RawFrame& raw) const noexcept {
    for (const RawFrame& opener : frames)
      if (opener.is_of(raw)) return &opener;
    return nullptr;
  }
};

// The calls of native code that an entry was opened in, innermost first: those that are still there when something is
// launched are around the entry.
struct OpeningCalls {
  // The calls that announced the entry have returned by then: at most 10 in PyTorch.
  static constexpr uint32_t kCount = 16;
  struct Call {
    uint64_t cfa;
    uint64_t function;
    friend bool operator==(const Call&, const Call&) = default;
  };
  std::array<Call, kCount> calls;
  uint32_t count = 0;
  [[nodiscard]] bool contains(const NativeFrame& frame) const noexcept {
    return std::find(calls.begin(), calls.begin() + count, Call{frame.cfa, frame.function}) != calls.begin() + count;
  }
};

// A Python frame, or where there is no code object a native one.
struct PathFrame {
  RawFrame python;
  FrameId native;
};

// What a thread needs to read its native frames. Threads: its own.
class NativeCallPath {
 public:
  void reset() noexcept { stack_ = {}; }  // for another thread

  // The frames since an entry was opened, innermost first; valid until the next call. Interpreter, driver and CUPTI are
  // left out; where the native ones cannot be read further, a frame says so and the Python ones continue.
  [[nodiscard]] std::span<const PathFrame> read(const OpeningFrames& frames, const OpeningCalls& calls) noexcept;
  void read_opening(OpeningCalls& calls) noexcept;

  // Of the path that was read last.
  [[nodiscard]] bool was_cut() const noexcept { return was_cut_; }
  [[nodiscard]] bool reached_opening() const noexcept { return reached_opening_; }  // a frame the entry was opened in

 private:
  static constexpr uint32_t kMaxFrames = 2000;  // of both kinds; deeper paths lose their outer end
  static constexpr uint32_t kMaxNative = 1000;
  struct Stretch {  // Python frames that one C call of the evaluation loop runs
    uint32_t end;
    uint64_t evaluation;  // an address among its variables; 0: not known
  };

  void collect_python(const OpeningFrames& opened_in) noexcept;
  void append_python(uint32_t end) noexcept;
  void append_native(FrameId frame) noexcept;
  [[nodiscard]] uint64_t stack_end(uint64_t stack_pointer) noexcept;

  CodeCache code_;
  ThreadStack stack_;
  bool was_cut_ = false;
  bool reached_opening_ = false;
  uint32_t n_path_ = 0;
  uint32_t n_python_ = 0;
  uint32_t n_told_ = 0;  // of the Python frames
  uint32_t n_stretches_ = 0;
  std::array<PathFrame, kMaxFrames> path_;
  std::array<RawFrame, kMaxFrames> python_;
  std::array<Stretch, kMaxFrames> stretches_;
};

}  // namespace bragg
