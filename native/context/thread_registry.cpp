#include "context/thread_registry.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "context/context_lenders.h"

namespace bragg {
namespace {

uint32_t system_thread_id() noexcept { return static_cast<uint32_t>(syscall(SYS_gettid)); }

}  // namespace

ThreadRegistry& ThreadRegistry::instance() {
  static ThreadRegistry& registry = *new ThreadRegistry;  // threads exit after static destruction too
  return registry;
}

ThreadContext* ThreadRegistry::pop_free() noexcept {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  ThreadContext* context = free_.back();
  free_.pop_back();
  return context;
}

// Many threads may launch for the first time at once: the pages of a new context are touched outside of the lock.
ThreadContext* ThreadRegistry::acquire() noexcept {
  ThreadContext* context = pop_free();
  std::unique_ptr<ThreadContext> made = context == nullptr ? make_() : nullptr;
  if (made != nullptr) context = made.get();
  context->reset(system_thread_id());
  if (made == nullptr) return context;
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(made));
  return context;
}

void ThreadRegistry::release(ThreadContext* context) noexcept {
  context_lenders.forget(context);
  const std::lock_guard lock(mutex_);
  context->exited.store(false, std::memory_order_relaxed);
  context->system_id.store(0, std::memory_order_relaxed);
  free_.push_back(context);
}

void ThreadRegistry::keep_only(ThreadContext* survivor) noexcept {
  free_.clear();
  for (const auto& context : all_) {
    context->ring.drain([](const Event&) {});
    context->system_id = 0;
    if (context.get() != survivor) free_.push_back(context.get());
  }
  if (survivor == nullptr) return;
  survivor->system_id = system_thread_id();
  survivor->track = TrackId::None;
}

size_t ThreadRegistry::size() noexcept {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

ThreadContext* ThreadRegistry::at(size_t index) noexcept {
  const std::lock_guard lock(mutex_);
  return all_[index].get();
}

}  // namespace bragg
