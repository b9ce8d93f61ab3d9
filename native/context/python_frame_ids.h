// The frames of Python instructions: a code object is read when one of its instructions is first met.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "context/frame_table.h"
#include "context/python_frames.h"

namespace bragg {

// Threads: any; one mutex, which only paths that a thread has not met before take.
class PythonFrameIds {
 public:
  static PythonFrameIds& instance();

  [[nodiscard]] FrameId intern(const RawFrame& raw);

  // A code object dies, and its address may become that of another. If it had ids, `epoch` changes: paths that threads
  // keep are no longer valid.
  void forget(const void* code);
  [[nodiscard]] static uint32_t epoch() noexcept { return epoch_.load(std::memory_order_acquire); }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Instruction {
    const void* code;
    uint32_t offset;
    friend bool operator==(const Instruction&, const Instruction&) = default;
  };
  struct InstructionHash {
    size_t operator()(const Instruction& instruction) const noexcept;
  };
  static std::atomic<uint32_t> epoch_;

  std::mutex mutex_;
  std::unordered_map<Instruction, FrameId, InstructionHash> ids_;
  std::unordered_set<const void*> codes_;
};

}  // namespace bragg
