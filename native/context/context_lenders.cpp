#include "context/context_lenders.h"

#include <algorithm>
#include <iterator>

namespace bragg {

void ContextLenders::publish_last() noexcept {
  lender_.store(lenders_.empty() ? nullptr : lenders_.back(), std::memory_order_release);
}

void ContextLenders::lend(ThreadContext* thread) {
  const std::lock_guard lock(mutex_);
  lenders_.push_back(thread);
  publish_last();
}

void ContextLenders::take_back(ThreadContext* thread) {
  const std::lock_guard lock(mutex_);
  const auto last = std::find(lenders_.rbegin(), lenders_.rend(), thread);
  if (last != lenders_.rend()) lenders_.erase(std::next(last).base());
  publish_last();
}

// Its context will be another thread's, which lends nothing.
void ContextLenders::forget(ThreadContext* exited) {
  ThreadContext* expected = exited;
  last_python_thread_.compare_exchange_strong(expected, nullptr);
  const std::lock_guard lock(mutex_);
  std::erase(lenders_, exited);
  publish_last();
}

void ContextLenders::keep_only(ThreadContext* survivor) noexcept {
  lenders_.clear();
  publish_last();
  last_python_thread_.store(survivor, std::memory_order_relaxed);
}

}  // namespace bragg
