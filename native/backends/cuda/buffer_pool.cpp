#include "backends/cuda/buffer_pool.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "context/consumer_signal.h"

namespace bragg {
uint8_t* BufferPool::pop_free() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  uint8_t* data = free_.back();
  free_.pop_back();
  return data;
}

uint8_t* BufferPool::request() {
  if (uint8_t* data = pop_free()) return data;
  auto* data = static_cast<uint8_t*>(std::calloc(1, kBufferBytes));  // outside of the lock: the kernel maps it
  const std::lock_guard lock(mutex_);
  allocated_.insert(data);
  return data;
}

BufferPool::Completion BufferPool::complete(const ActivityBuffer& buffer) {
  {
    const std::lock_guard lock(mutex_);
    if (!allocated_.contains(buffer.data)) return Completion::Foreign;
    if (completed_.size() == kMaxUnread) return Completion::Refused;
    completed_.push_back({buffer.data, std::min(buffer.valid_bytes, kBufferBytes)});
  }
  consumer_signal.wake();
  return Completion::Queued;
}

std::vector<ActivityBuffer> BufferPool::take_completed(size_t at_most) {
  const std::lock_guard lock(mutex_);
  const auto end = completed_.begin() + static_cast<std::ptrdiff_t>(std::min(at_most, completed_.size()));
  std::vector<ActivityBuffer> taken(completed_.begin(), end);
  completed_.erase(completed_.begin(), end);
  return taken;
}

void BufferPool::recycle(const ActivityBuffer& buffer) {
  std::memset(buffer.data, 0, std::min(buffer.valid_bytes, kBufferBytes));
  {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kMaxFree) return free_.push_back(buffer.data);
    allocated_.erase(buffer.data);
  }
  std::free(buffer.data);
}

void BufferPool::forget_all() {
  new (&mutex_) std::mutex;
  free_.clear();
  completed_.clear();
  allocated_.clear();
}

size_t BufferPool::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_.size();
}

}  // namespace bragg
