// Streams that are being captured into CUDA graphs: the values that a thread records meanwhile are the graph's, and
// count each time it runs instead of now.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "context/thread_context.h"

namespace bragg {

// Threads: any; one mutex, which nobody takes while nothing is captured.
class StreamCaptures {
 public:
  static StreamCaptures& instance();

  [[nodiscard]] bool any() const noexcept { return open_count_.load(std::memory_order_relaxed) != 0; }
  // From now on what `thread` records belongs to this capture, until it ends or the thread begins another one.
  void begin(const void* stream, ThreadContext& thread);
  // What was recorded since; the capture may have been begun by another thread.
  [[nodiscard]] std::vector<CapturedValue> end(const void* stream);
  void add(CaptureId capture, const CapturedValue& value);
  void clear();

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Capture {
    CaptureId id;
    const void* stream;
    ThreadContext* thread;  // contexts are recycled, never freed
    std::vector<CapturedValue> values;
  };
  [[nodiscard]] CaptureId newest_of(const ThreadContext* thread) const noexcept;

  std::mutex mutex_;
  std::atomic<uint32_t> open_count_{0};
  CaptureId last_id_ = CaptureId::None;
  std::vector<Capture> open_;  // in the order they began
};

}  // namespace bragg
