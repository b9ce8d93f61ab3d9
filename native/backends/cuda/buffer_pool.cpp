#include "backends/cuda/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "context/consumer_signal.h"

namespace bragg {
namespace {

size_t unread_bytes(const ActivityBuffer& buffer) {
  return std::max(buffer.valid_bytes, BufferPool::kLeastUnreadBytes);
}

}  // namespace

uint8_t* BufferPool::pop_free() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  uint8_t* data = free_.back();
  free_.pop_back();
  return data;
}

uint8_t* BufferPool::request() {
  if (uint8_t* data = pop_free()) return data;
  auto* data = static_cast<uint8_t*>(  // outside of the lock: the kernel maps it
      mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (data == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  allocated_.insert(data);
  return data;
}

BufferPool::Completion BufferPool::complete(const ActivityBuffer& buffer) {
  {
    const std::lock_guard lock(mutex_);
    if (!allocated_.contains(buffer.data)) return Completion::Foreign;
    const ActivityBuffer completed{buffer.data, std::min(buffer.valid_bytes, kBufferBytes)};
    if (completed_bytes_ + unread_bytes(completed) > kMaxUnreadBytes) return Completion::Refused;
    completed_bytes_ += unread_bytes(completed);
    completed_.push_back(completed);
  }
  consumer_signal.wake();
  return Completion::Queued;
}

std::vector<ActivityBuffer> BufferPool::take_completed(size_t at_most) {
  const std::lock_guard lock(mutex_);
  const auto end = completed_.begin() + static_cast<std::ptrdiff_t>(std::min(at_most, completed_.size()));
  std::vector<ActivityBuffer> taken(completed_.begin(), end);
  completed_.erase(completed_.begin(), end);
  for (const ActivityBuffer& buffer : taken) completed_bytes_ -= unread_bytes(buffer);
  return taken;
}

void BufferPool::recycle(const ActivityBuffer& buffer) {
  std::unique_lock lock(mutex_);
  const bool keeps_memory = free_.size() < kMaxFree;
  lock.unlock();
  if (keeps_memory)
    std::memset(buffer.data, 0, std::min(buffer.valid_bytes, kBufferBytes));
  else
    madvise(buffer.data, kBufferBytes, MADV_DONTNEED);  // zeroes it, too
  lock.lock();
  free_.push_back(buffer.data);
}

void BufferPool::forget_all() {
  free_.clear();
  completed_.clear();
  completed_bytes_ = 0;
  allocated_.clear();
}

size_t BufferPool::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_.size();
}

}  // namespace bragg
