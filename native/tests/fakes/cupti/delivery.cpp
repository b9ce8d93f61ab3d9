#include "cupti/delivery.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cupti/records.h"
#include "cupti/tool.h"
#include "settings.h"

namespace bragg::fake {
namespace {

thread_local bool on_worker = false;
constexpr uint32_t kRealClockPollMs = 1;  // nobody tells that real time has passed

}  // namespace

bool Delivery::is_worker() noexcept { return on_worker; }

void Delivery::set_period_ms(uint32_t period_ms) {
  const std::lock_guard lock(mutex_);
  period_ms_ = period_ms;
  woken_.notify_one();
}

void Delivery::add(const Buffer& buffer) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(buffer);
  next_ns_.store(std::min(next_ns_.load(std::memory_order_relaxed), buffer.complete_ns), std::memory_order_relaxed);
  rouse_worker();
}

void Delivery::flush(const std::vector<Buffer>& buffers, bool everything) {
  std::unique_lock lock(mutex_);
  const uint64_t now_ns = fake::now_ns();
  waiting_.insert(waiting_.end(), buffers.begin(), buffers.end());
  uint64_t last_batch = batches_begun_;
  for (Buffer& buffer : waiting_) {
    if (!everything && buffer.complete_ns > now_ns) continue;
    last_batch = batches_begun_ + 1;  // the worker takes all complete buffers at once
    if (buffer.complete_ns > now_ns) forget_ends_after(now_ns, buffer.data, buffer.used_bytes);
    buffer.complete_ns = 0;
  }
  if (knob(Knob::FlushOnCaller) != 0) {
    const std::vector<Buffer> complete = take_complete();
    lock.unlock();
    return deliver(complete);
  }
  rouse_worker();
  delivered_.wait(lock, [&] { return batches_done_ >= last_batch; });
}

void Delivery::wake() noexcept {
  const std::lock_guard lock(mutex_);
  next_ns_.store(kNever, std::memory_order_relaxed);  // the worker looks, and sets it anew
  woken_.notify_one();
}

void Delivery::rouse_worker() {
  if (worker_runs_) return woken_.notify_one();
  worker_runs_ = true;
  std::thread([this] { work(); }).detach();
}

void Delivery::work() {
  on_worker = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::vector<Buffer> complete = take_complete();
    if (complete.empty()) {
      sleep(lock);
      continue;
    }
    ++batches_begun_;
    lock.unlock();
    deliver(complete);
    lock.lock();
    ++batches_done_;
    delivered_.notify_all();
  }
}

void Delivery::sleep(std::unique_lock<std::mutex>& lock) {
  const uint32_t poll_ms = knob(Knob::RealClock) != 0 && !waiting_.empty() ? kRealClockPollMs : period_ms_;
  if (poll_ms == 0) return woken_.wait(lock);
  woken_.wait_for(lock, std::chrono::milliseconds(poll_ms));
}

std::vector<Buffer> Delivery::take_complete() {
  const uint64_t now_ns = fake::now_ns();
  const auto first_complete = std::stable_partition(waiting_.begin(), waiting_.end(),
                                                    [&](const Buffer& each) { return each.complete_ns > now_ns; });
  std::vector<Buffer> complete(first_complete, waiting_.end());
  waiting_.erase(first_complete, waiting_.end());
  uint64_t next_ns = kNever;
  for (const Buffer& buffer : waiting_) next_ns = std::min(next_ns, buffer.complete_ns);
  next_ns_.store(next_ns, std::memory_order_relaxed);
  return complete;
}

void Delivery::deliver(const std::vector<Buffer>& buffers) {
  for (const Buffer& buffer : buffers) buffer.owner->complete(buffer);
}

}  // namespace bragg::fake
