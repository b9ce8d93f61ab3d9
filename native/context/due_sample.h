// A sample of the main thread's call path that was asked for, and that the thread has not taken yet.
#pragma once

#include <atomic>

namespace bragg {

struct DueSample {
  using Take = void (*)() noexcept;

  std::atomic<bool> is_due{false};
  std::atomic<Take> take{nullptr};  // does so on the main thread with the GIL. Threads: any. null: nothing ever sampled
};
[[gnu::visibility("default")]] extern DueSample due_sample;

// Before a scope or a range begins or ends: what the thread did until then, such as a product of matrices that no
// Python call follows, belongs to where it was until then. Scopes are measured, so it would else count twice.
inline void settle_samples() noexcept {
  if (!due_sample.is_due.load(std::memory_order_relaxed)) [[likely]]
    return;
  if (const auto take = due_sample.take.load(std::memory_order_acquire)) take();
}

}  // namespace bragg
