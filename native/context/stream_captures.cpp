#include "context/stream_captures.h"

#include <algorithm>

namespace bragg {

StreamCaptures& StreamCaptures::instance() {
  static StreamCaptures& captures = *new StreamCaptures;
  return captures;
}

void StreamCaptures::begin(const void* stream, ThreadContext& thread) {
  const std::lock_guard lock(mutex_);
  last_id_ = CaptureId{number_of(last_id_) + 1};
  open_.push_back({last_id_, stream, &thread, {}});
  open_count_.store(static_cast<uint32_t>(open_.size()), std::memory_order_relaxed);
  thread.capture.store(last_id_, std::memory_order_relaxed);
}

std::vector<CapturedValue> StreamCaptures::end(const void* stream) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(open_.begin(), open_.end(), [&](const Capture& each) { return each.stream == stream; });
  if (found == open_.end()) return {};
  const Capture ended = std::move(*found);
  open_.erase(found);
  open_count_.store(static_cast<uint32_t>(open_.size()), std::memory_order_relaxed);
  CaptureId current = ended.id;  // a recycled context is another thread's by now
  ended.thread->capture.compare_exchange_strong(current, newest_of(ended.thread), std::memory_order_relaxed);
  return ended.values;
}

CaptureId StreamCaptures::newest_of(const ThreadContext* thread) const noexcept {
  const auto newest =
      std::find_if(open_.rbegin(), open_.rend(), [&](const Capture& each) { return each.thread == thread; });
  return newest != open_.rend() ? newest->id : CaptureId::None;
}

void StreamCaptures::add(CaptureId capture, const CapturedValue& value) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const Capture& each) { return each.id == capture; });
  if (found != open_.end()) found->values.push_back(value);
}

void StreamCaptures::clear() {
  const std::lock_guard lock(mutex_);
  for (const Capture& capture : open_) capture.thread->capture.store(CaptureId::None, std::memory_order_relaxed);
  open_.clear();
  open_count_.store(0, std::memory_order_relaxed);
}

}  // namespace bragg
