// Activity records: what is collected, buffers, flushing, walking.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cupti/optional_symbol.h"
#include "cupti/sass_metrics.h"
#include "cupti/tool.h"

namespace bragg::fake {
namespace {

constexpr uint64_t bit(cupti::Kind kind) { return uint64_t{1} << static_cast<uint32_t>(kind); }

// Kinds the fake produces; the others that a tool may ask for are accepted and stay silent.
constexpr uint64_t kKinds = bit(cupti::Kind::Memcpy) | bit(cupti::Kind::Memset) | bit(cupti::Kind::Kernel) |
                            bit(cupti::Kind::Driver) | bit(cupti::Kind::Runtime) | bit(cupti::Kind::ConcurrentKernel) |
                            bit(cupti::Kind::Overhead) | bit(cupti::Kind::PeerMemcpy) |
                            bit(cupti::Kind::Synchronization) | bit(cupti::Kind::ExternalCorrelation) |
                            bit(cupti::Kind::GraphTrace);

bool is_known(cupti::Kind kind) { return static_cast<uint32_t>(kind) < 64 && (kKinds & bit(kind)) != 0; }

cupti::Result enable(Sinks& sinks, cupti::Kind kind) {
  if (!is_known(kind)) return cupti::Result::InvalidKind;
  if ((kind == cupti::Kind::Kernel && sinks.is_enabled(cupti::Kind::ConcurrentKernel)) ||
      (kind == cupti::Kind::ConcurrentKernel && sinks.is_enabled(cupti::Kind::Kernel)))
    return cupti::Result::NotCompatible;
  if (kind == cupti::Kind::ConcurrentKernel && !sass_metrics().admits_records()) return cupti::Result::NotCompatible;
  if (!attach_to_driver()) return cupti::Result::MultipleSubscribersNotSupported;
  sinks.kinds.fetch_or(bit(kind));
  return cupti::Result::Success;
}

cupti::Result disable(Sinks& sinks, cupti::Kind kind) {
  if (!is_known(kind)) return cupti::Result::InvalidKind;
  sinks.kinds.fetch_and(~bit(kind));
  return cupti::Result::Success;
}

std::atomic<uint64_t> flushes{0};

bool is_waiting_for_gpu() {
  static std::atomic<int64_t> last_ns{0};
  static std::atomic<uint64_t> last_called_ns{0};
  const int64_t now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  const uint64_t called_ns = driver()->now_ns();
  const int64_t times = last_called_ns.exchange(called_ns) == called_ns ? 20 : 1;
  return now_ns - last_ns.exchange(now_ns) < times * knob(Knob::WaitingFlushMs) * 1'000'000;
}

cupti::Result flush(bool forced) {
  bool has_callbacks = false;
  state().for_each_sinks([&](const Sinks& sinks) { has_callbacks = has_callbacks || sinks.has_callbacks(); });
  if (!has_callbacks) return cupti::Result::InvalidOperation;
  if (Delivery::is_worker() || Sinks::is_requesting()) {
    std::fprintf(stderr, "fake CUPTI: cuptiActivityFlushAll inside a buffer callback is a deadlock\n");
    std::abort();
  }
  if (knob(Knob::HardwareTrace) != 0 && !has_launched()) {
    std::fprintf(stderr, "fake CUPTI: flushing in the background under the hardware event system corrupts the heap\n");
    std::abort();
  }
  flushes.fetch_add(1);
  take_time(Knob::FlushDelayMs);
  if (is_waiting_for_gpu()) driver()->jump_to_end_of_work();
  state().delivery.flush(collect_all(forced), forced);
  return cupti::Result::Success;
}

std::atomic<bool>* flag_of(Sinks& sinks, cupti::Attribute attribute) {
  if (attribute == cupti::Attribute::ZeroedOutBuffer) return &sinks.buffers_come_zeroed;
  if (attribute == cupti::Attribute::PerThreadBuffers) return &sinks.per_thread;
  if (attribute == cupti::Attribute::GraphTraceForAll && emulated_release().api_version >= cupti::kSharedFrom)
    return &state().traces_graphs_for_all;
  return nullptr;
}

cupti::Result set(Sinks& sinks, cupti::Attribute attribute, const size_t* value_size_bytes, const void* value) {
  if (value_size_bytes == nullptr || value == nullptr) return cupti::Result::InvalidParameter;
  std::atomic<bool>* flag = flag_of(sinks, attribute);
  if (flag == nullptr) return cupti::Result::InvalidParameter;
  if (*value_size_bytes < sizeof(uint8_t)) return cupti::Result::ParameterSizeNotSufficient;
  flag->store(*static_cast<const uint8_t*>(value) != 0);
  return cupti::Result::Success;
}

uint8_t sharing_state() {
  constexpr uint8_t undecided = 2;
  if (state().subscribers.use() == Subscribers::Use::None) return undecided;
  return state().subscribers.use() == Subscribers::Use::Together ? 1 : 0;
}

cupti::Result get(Sinks& sinks, cupti::Attribute attribute, size_t* value_size_bytes, void* value) {
  if (value_size_bytes == nullptr || value == nullptr) return cupti::Result::InvalidParameter;
  const std::atomic<bool>* flag = flag_of(sinks, attribute);
  const bool is_state = attribute == cupti::Attribute::MultipleSubscriberState;
  const bool is_hardware_trace = attribute == cupti::Attribute::HardwareTrace;
  if (flag == nullptr && !is_state && !is_hardware_trace) return cupti::Result::InvalidParameter;
  if (*value_size_bytes < sizeof(uint8_t)) return cupti::Result::ParameterSizeNotSufficient;
  *static_cast<uint8_t*>(value) = is_state            ? sharing_state()
                                  : is_hardware_trace ? knob(Knob::HardwareTrace) != 0
                                                      : flag->load();
  *value_size_bytes = sizeof(uint8_t);
  return cupti::Result::Success;
}

// *record is null for the first record, else the record before the one that is wanted.
cupti::Result next_record(uint8_t* buffer, size_t valid_bytes, void** record) {
  if (buffer == nullptr || record == nullptr) return cupti::Result::InvalidParameter;
  const auto size_at = [](const uint8_t* at) { return size_of(*reinterpret_cast<const cupti::Kind*>(at)); };
  auto* at = static_cast<uint8_t*>(*record);
  if (at != nullptr && size_at(at) == 0) return cupti::Result::InvalidKind;
  uint8_t* next = at == nullptr ? buffer : at + size_at(at);
  if (next + sizeof(cupti::Kind) > buffer + valid_bytes) return cupti::Result::MaxLimitReached;
  const size_t size_bytes = size_at(next);
  if (size_bytes == 0) return cupti::Result::InvalidKind;
  if (next + size_bytes > buffer + valid_bytes) return cupti::Result::MaxLimitReached;
  *record = next;
  return cupti::Result::Success;
}

// The body of a function of version 1 that changes what is recorded: not beside subscribers of version 2.
template <class Body>
cupti::Result of_all(const char* entry_point, Body&& body) {
  return api(entry_point, Needs::Driver, [&] {
    return state().subscribers.may_use_version1() ? body(state().sinks)
                                                  : cupti::Result::MultipleSubscribersNotSupported;
  });
}

// Of version 2.
template <class Body>
cupti::Result of_one(const char* entry_point, cupti::Subscriber subscriber, Body&& body) {
  return api(entry_point, Needs::Driver, [&] {
    if (subscriber == nullptr) return cupti::Result::InvalidParameter;
    return state().subscribers.may_use_version2(subscriber) ? body(subscriber->sinks)
                                                            : cupti::Result::MultipleSubscribersNotSupported;
  });
}

cupti::Result register_v2(cupti::Subscriber subscriber, cupti::BufferRequested_v2* requested,
                          cupti::BufferCompleted_v2* completed) {
  return of_one("cuptiActivityRegisterCallbacks_v2", subscriber, [&](Sinks& sinks) {
    if (requested == nullptr || completed == nullptr) return cupti::Result::InvalidParameter;
    sinks.completed_v2.store(completed, std::memory_order_release);
    sinks.requested_v2.store(requested, std::memory_order_release);
    return cupti::Result::Success;
  });
}

cupti::Result enable_v2(cupti::Subscriber subscriber, cupti::Kind kind, void*) {
  return of_one("cuptiActivityEnable_v2", subscriber, [&](Sinks& sinks) {
    if (!state().subscribers.gives_records_by_version2()) return cupti::Result::NotCompatible;
    if (kind == cupti::Kind::GraphTrace && !state().traces_graphs_for_all.load())
      return cupti::Result::MultipleSubscribersNotSupported;
    return enable(sinks, kind);
  });
}

cupti::Result disable_v2(cupti::Subscriber subscriber, cupti::Kind kind, void*) {
  return of_one("cuptiActivityDisable_v2", subscriber, [&](Sinks& sinks) { return disable(sinks, kind); });
}

cupti::Result dropped_v2(cupti::Subscriber subscriber, cuda::Context, uint32_t, size_t* dropped) {
  return of_one("cuptiActivityGetNumDroppedRecords_v2", subscriber, [&](Sinks& sinks) {
    if (dropped == nullptr) return cupti::Result::InvalidParameter;
    *dropped = sinks.take_dropped();
    return cupti::Result::Success;
  });
}

cupti::Result set_v2(cupti::Subscriber subscriber, cupti::Attribute attribute, size_t* value_size_bytes, void* value) {
  return of_one("cuptiActivitySetAttribute_v2", subscriber,
                [&](Sinks& sinks) { return set(sinks, attribute, value_size_bytes, value); });
}

cupti::Result get_v2(cupti::Subscriber subscriber, cupti::Attribute attribute, size_t* value_size_bytes, void* value) {
  return of_one("cuptiActivityGetAttribute_v2", subscriber,
                [&](Sinks& sinks) { return get(sinks, attribute, value_size_bytes, value); });
}

cupti::Result next_record_v2(cupti::Subscriber subscriber, uint8_t* buffer, size_t valid_bytes, void** record) {
  return of_one("cuptiActivityGetNextRecord_v2", subscriber,
                [&](Sinks&) { return next_record(buffer, valid_bytes, record); });
}

cupti::Result struct_size(cupti::Kind kind, uint32_t version, size_t* size_bytes) {
  return api("cuptiActivityGetStructSize", Needs::Nothing, [&] {
    if (size_bytes == nullptr) return cupti::Result::InvalidParameter;
    if (version != 0 && version < 130000) return cupti::Result::NotSupported;
    *size_bytes = cupti::record_size(kind, version != 0 ? version : emulated_release().api_version);
    return *size_bytes != 0 ? cupti::Result::Success : cupti::Result::InvalidKind;
  });
}

}  // namespace

FAKE_CUPTI(cuptiActivityRegisterCallbacks)(cupti::BufferRequested* requested, cupti::BufferCompleted* completed) {
  return api("cuptiActivityRegisterCallbacks", Needs::Nothing, [&] {
    if (requested == nullptr || completed == nullptr) return cupti::Result::InvalidParameter;
    if (!state().subscribers.may_use_version1()) return cupti::Result::MultipleSubscribersNotSupported;
    state().sinks.requested.store(requested, std::memory_order_release);
    state().sinks.completed.store(completed, std::memory_order_release);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityRegisterCallbacks, CuptiActivityRegisterCallbacks);

FAKE_CUPTI(cuptiActivityEnable)(cupti::Kind kind) {
  return of_all("cuptiActivityEnable", [&](Sinks& sinks) { return enable(sinks, kind); });
}
FAKE_CUPTI_IS(cuptiActivityEnable, CuptiActivityEnable);

FAKE_CUPTI(cuptiActivityDisable)(cupti::Kind kind) {
  return of_all("cuptiActivityDisable", [&](Sinks& sinks) { return disable(sinks, kind); });
}
FAKE_CUPTI_IS(cuptiActivityDisable, CuptiActivityDisable);

FAKE_CUPTI(cuptiActivityFlushAll)(uint32_t flags) {
  return api("cuptiActivityFlushAll", Needs::Driver, [&] { return flush((flags & cupti::kFlushForced) != 0); });
}
FAKE_CUPTI_IS(cuptiActivityFlushAll, CuptiActivityFlushAll);

// How often it was asked, for tests of who waits for how long.
BRAGG_FAKE_EXPORT uint64_t bragg_fake_flushes() { return flushes.load(); }

FAKE_CUPTI(cuptiActivityFlushPeriod)(uint32_t period_ms) {
  return api("cuptiActivityFlushPeriod", Needs::Driver, [&] {
    state().delivery.set_period_ms(period_ms);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityFlushPeriod, CuptiActivityFlushPeriod);

FAKE_CUPTI(cuptiActivityGetNumDroppedRecords)(cuda::Context, uint32_t, size_t* dropped) {
  return of_all("cuptiActivityGetNumDroppedRecords", [&](Sinks& sinks) {
    if (dropped == nullptr) return cupti::Result::InvalidParameter;
    *dropped = sinks.take_dropped();
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityGetNumDroppedRecords, CuptiActivityGetNumDroppedRecords);

FAKE_CUPTI(cuptiActivitySetAttribute)(cupti::Attribute attribute, size_t* value_size_bytes, void* value) {
  return of_all("cuptiActivitySetAttribute",
                [&](Sinks& sinks) { return set(sinks, attribute, value_size_bytes, value); });
}
FAKE_CUPTI_IS(cuptiActivitySetAttribute, CuptiActivitySetAttribute);

FAKE_CUPTI(cuptiActivityGetAttribute)(cupti::Attribute attribute, size_t* value_size_bytes, void* value) {
  return of_all("cuptiActivityGetAttribute",
                [&](Sinks& sinks) { return get(sinks, attribute, value_size_bytes, value); });
}
FAKE_CUPTI_IS(cuptiActivityGetAttribute, CuptiActivityGetAttribute);

FAKE_CUPTI(cuptiActivityGetNextRecord)(uint8_t* buffer, size_t valid_bytes, void** record) {
  return api("cuptiActivityGetNextRecord", Needs::Nothing, [&] { return next_record(buffer, valid_bytes, record); });
}
FAKE_CUPTI_IS(cuptiActivityGetNextRecord, CuptiActivityGetNextRecord);

FAKE_CUPTI(cuptiActivityEnableLatencyTimestamps)(uint8_t enable) {
  return api("cuptiActivityEnableLatencyTimestamps", Needs::Driver, [&] {
    state().latency_timestamps.store(enable != 0);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityEnableLatencyTimestamps, CuptiActivityEnableLatencyTimestamps);

FAKE_OPTIONAL_CUPTI(cuptiActivityGetStructSize, CuptiActivityGetStructSize, struct_size, 130200)
FAKE_OPTIONAL_CUPTI(cuptiActivityRegisterCallbacks_v2, CuptiActivityRegisterCallbacks_v2, register_v2, 130200)
FAKE_OPTIONAL_CUPTI(cuptiActivityEnable_v2, CuptiActivityEnable_v2, enable_v2, 130200)
FAKE_OPTIONAL_CUPTI(cuptiActivityDisable_v2, CuptiActivityDisable_v2, disable_v2, 130200)
FAKE_OPTIONAL_CUPTI(cuptiActivitySetAttribute_v2, CuptiActivitySetAttribute_v2, set_v2, 130200)
FAKE_OPTIONAL_CUPTI(cuptiActivityGetAttribute_v2, CuptiActivityGetAttribute_v2, get_v2, 130200)
FAKE_OPTIONAL_CUPTI(cuptiActivityGetNumDroppedRecords_v2, CuptiActivityGetNumDroppedRecords_v2, dropped_v2, 130300)
FAKE_OPTIONAL_CUPTI(cuptiActivityGetNextRecord_v2, CuptiActivityGetNextRecord_v2, next_record_v2, 130300)

}  // namespace bragg::fake
