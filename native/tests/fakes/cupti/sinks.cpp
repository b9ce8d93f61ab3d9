#include "cupti/sinks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cupti/faults.h"
#include "cupti/tool.h"
#include "cupti/version.h"
#include "settings.h"

namespace bragg::fake {
namespace {

thread_local bool requesting = false;

}  // namespace

Buffer Sinks::request() {
  Buffer buffer{.owner = this};
  cupti::BufferRequested* const one = requested.load(std::memory_order_acquire);
  cupti::BufferRequested_v2* const two = requested_v2.load(std::memory_order_acquire);
  if (one == nullptr && two == nullptr) return {};
  requesting = true;
  cupti::BufferRequestInfo info{sizeof info};
  if (two != nullptr)
    two(&buffer.data, &buffer.size_bytes, &buffer.max_records, &info);
  else
    one(&buffer.data, &buffer.size_bytes, &buffer.max_records);
  requesting = false;
  if (buffer.data == nullptr && emulated_release().api_version < kNullBufferAllowed) {
    std::fprintf(stderr, "fake CUPTI %s: the tool returned no buffer, which crashes CUPTI before 12.9\n",
                 emulated_release().name);
    std::abort();
  }
  if (buffer.data == nullptr) return {};
  if (!buffers_come_zeroed.load(std::memory_order_relaxed)) std::memset(buffer.data, 0, buffer.size_bytes);
  return buffer;
}

void Sinks::complete(const Buffer& buffer) const {
  if (auto* two = completed_v2.load(std::memory_order_acquire)) {
    cupti::BufferCompleteInfo info{sizeof info, 0, nullptr, 0};
    return two(buffer.data, buffer.size_bytes, buffer.used_bytes, &info);
  }
  completed.load(std::memory_order_acquire)(nullptr, 0, buffer.data, buffer.size_bytes, buffer.used_bytes);
}

void Sink::put(const RecordBytes& record, uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  append_complete(now_ns);
  if (record.complete_ns <= now_ns || owner_.in_launch_order.load(std::memory_order_relaxed))
    return put_with_faults(record);
  pending_.add(record);
}

void Sink::append_complete(uint64_t now_ns) {
  pending_.take_complete(now_ns, [this](const RecordBytes& record) { put_with_faults(record); });
}

void Sink::put_with_faults(const RecordBytes& record) {
  if (!record_faults_on.load(std::memory_order_relaxed)) return append(record);
  RecordBytes changed = record;
  const Fate fate = apply_faults(changed);
  if (fate == Fate::Drop) {
    ++dropped_;
    return;
  }
  if (fate == Fate::Hold) {
    append_held();
    held_ = std::make_unique<RecordBytes>(changed);
    return;
  }
  if (fate == Fate::AfterForeign) append(foreign_record());
  append(changed);
  if (fate == Fate::Duplicate) append(changed);
  append_held();
}

void Sink::append_held() {
  if (const auto held = std::exchange(held_, nullptr)) append(*held);
}

void Sink::append(const RecordBytes& record) {
  if (!make_room(record.size_bytes)) {
    ++dropped_;
    return;
  }
  std::memcpy(buffer_.data + buffer_.used_bytes, record.data, record.size_bytes);
  buffer_.used_bytes += record.size_bytes;
  ++buffer_.records;
  buffer_.complete_ns = std::max(buffer_.complete_ns, record.complete_ns);
}

bool Sink::make_room(size_t record_bytes) {
  if (buffer_.has_room(record_bytes)) return true;
  if (buffer_.data != nullptr) state().delivery.add(std::exchange(buffer_, {}));  // also one that is too small
  buffer_ = owner_.request();
  return buffer_.has_room(record_bytes);
}

void Sink::collect(std::vector<Buffer>& buffers, bool everything, uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  append_complete(everything ? UINT64_MAX : now_ns);
  append_held();
  if (buffer_.used_bytes > 0 && (everything || buffer_.complete_ns <= now_ns))
    buffers.push_back(std::exchange(buffer_, {}));
}

size_t Sink::take_dropped() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

Sink& Sinks::of_this_thread() {
  thread_local std::array<Sink*, kMax> of_owners{};
  Sink*& mine = of_owners[number_];
  const bool own = per_thread.load(std::memory_order_relaxed);
  if (own && mine != nullptr) return *mine;
  const std::lock_guard lock(mutex_);
  if (own || sinks_.empty()) sinks_.push_back(std::make_unique<Sink>(*this));
  if (!own) return *sinks_.front();
  mine = sinks_.back().get();
  return *mine;
}

std::vector<Buffer> Sinks::collect(bool everything) {
  std::vector<Sink*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& sink : sinks_) all.push_back(sink.get());
  }
  std::vector<Buffer> buffers;
  for (Sink* sink : all) sink->collect(buffers, everything, now_ns());
  return buffers;
}

size_t Sinks::take_dropped() {
  const std::lock_guard lock(mutex_);
  size_t dropped = 0;
  for (const auto& sink : sinks_) dropped += sink->take_dropped();
  return dropped;
}

bool Sinks::is_requesting() noexcept { return requesting; }

}  // namespace bragg::fake
