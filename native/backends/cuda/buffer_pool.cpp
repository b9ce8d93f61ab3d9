#include "backends/cuda/buffer_pool.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "context/consumer_signal.h"

namespace bragg {
namespace {

constexpr int kRequestYields = 1000;  // about 1-10 ms

}  // namespace

uint8_t* BufferPool::pop_free() {
  if (free_.empty()) return nullptr;
  uint8_t* data = free_.back();
  free_.pop_back();
  return data;
}

uint8_t* BufferPool::request() {
  for (int yields = 0;; ++yields) {
    {
      const std::lock_guard lock(mutex_);
      if (uint8_t* data = pop_free()) return data;
      if (allocated_.size() < kMaxBuffers || yields == kRequestYields)
        return *allocated_.insert(static_cast<uint8_t*>(std::calloc(1, kBufferBytes))).first;
    }
    consumer_signal.wake();
    sched_yield();
  }
}

bool BufferPool::complete(uint8_t* data, size_t valid_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (!allocated_.contains(data)) return false;
    completed_.push_back({data, std::min(valid_bytes, kBufferBytes)});
  }
  consumer_signal.wake();
  return true;
}

std::vector<ActivityBuffer> BufferPool::take_completed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(completed_, {});
}

void BufferPool::recycle(const ActivityBuffer& buffer) {
  std::memset(buffer.data, 0, buffer.valid_bytes);
  const std::lock_guard lock(mutex_);
  if (allocated_.size() > kMaxBuffers) {
    allocated_.erase(buffer.data);
    std::free(buffer.data);
  } else {
    free_.push_back(buffer.data);
  }
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
