// The contexts of all threads of the process.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "context/thread_context.h"

namespace bragg {

// Threads: any; one mutex, not held during a visit or while a context is made. Contexts are recycled, never freed:
// one that lends its nodes may be read at any time.
class ThreadRegistry {
 public:
  using Make = std::unique_ptr<ThreadContext> (*)();

  explicit ThreadRegistry(Make make = std::make_unique<ThreadContext>) : make_(make) {}
  static ThreadRegistry& instance();
  [[nodiscard]] ThreadContext* acquire() noexcept;
  void release(ThreadContext* context) noexcept;  // consumer, after the exited thread's ring was drained

  template <class Visit>
  void for_each(Visit&& visit) {
    for (size_t i = 0, count = size(); i < count; ++i) visit(*at(i));
  }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void keep_only(ThreadContext* survivor) noexcept;  // in a forked child, which holds the lock; nullptr: none

 private:
  [[nodiscard]] size_t size() noexcept;
  [[nodiscard]] ThreadContext* at(size_t index) noexcept;
  [[nodiscard]] ThreadContext* pop_free() noexcept;

  const Make make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ThreadContext>> all_;
  std::vector<ThreadContext*> free_;
};

}  // namespace bragg
