// Which thread lends its context to threads that have no scope and no Python frame.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

namespace bragg {

class ThreadContext;

// Threads: any. Contexts are recycled, never freed: one that was given may be read at any time.
class ContextLenders {
 public:
  // The thread that called `lend` last; if none lends, the guess is the thread that ran Python last. nullptr: none.
  [[nodiscard]] const ThreadContext* current() const noexcept {
    const ThreadContext* lender = lender_.load(std::memory_order_acquire);
    return lender != nullptr ? lender : last_python_thread_.load(std::memory_order_acquire);
  }

  void note_python(ThreadContext* thread) noexcept {
    if (last_python_thread_.load(std::memory_order_relaxed) != thread)
      last_python_thread_.store(thread, std::memory_order_release);
  }
  void lend(ThreadContext* thread);
  void take_back(ThreadContext* thread);  // the latest of its loans

  void forget(ThreadContext* exited);
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void keep_only(ThreadContext* survivor) noexcept;  // in a forked child, which holds the lock; nullptr: none

 private:
  void publish_last() noexcept;

  std::atomic<ThreadContext*> lender_{nullptr};
  std::atomic<ThreadContext*> last_python_thread_{nullptr};
  std::mutex mutex_;
  std::vector<ThreadContext*> lenders_;  // in the order they lent
};

inline constinit ContextLenders context_lenders;

}  // namespace bragg
