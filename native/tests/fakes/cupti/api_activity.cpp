// Activity records: what is collected, buffers, flushing, walking.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cupti/optional_symbol.h"
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

cupti::Result enable(cupti::Kind kind) {
  if (!is_known(kind)) return cupti::Result::InvalidKind;
  if ((kind == cupti::Kind::Kernel && state().is_enabled(cupti::Kind::ConcurrentKernel)) ||
      (kind == cupti::Kind::ConcurrentKernel && state().is_enabled(cupti::Kind::Kernel)))
    return cupti::Result::NotCompatible;
  if (!attach_to_driver()) return cupti::Result::MultipleSubscribersNotSupported;
  state().kinds.fetch_or(bit(kind));
  return cupti::Result::Success;
}

bool is_waiting_for_gpu() {
  static std::atomic<int64_t> last_ns{0};
  const int64_t now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  return now_ns - last_ns.exchange(now_ns) < knob(Knob::WaitingFlushMs) * 1'000'000;
}

cupti::Result flush(bool forced) {
  if (state().sinks.requested.load() == nullptr) return cupti::Result::InvalidOperation;
  if (Delivery::is_worker() || Sinks::is_requesting()) {
    std::fprintf(stderr, "fake CUPTI: cuptiActivityFlushAll inside a buffer callback is a deadlock\n");
    std::abort();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(knob(Knob::FlushDelayMs)));
  if (is_waiting_for_gpu()) driver()->jump_to_end_of_work();
  state().delivery.flush(state().sinks.collect(forced), forced);
  return cupti::Result::Success;
}

std::atomic<bool>* flag_of(cupti::Attribute attribute) {
  if (attribute == cupti::Attribute::ZeroedOutBuffer) return &state().sinks.buffers_come_zeroed;
  if (attribute == cupti::Attribute::PerThreadBuffers) return &state().sinks.per_thread;
  return nullptr;
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
    state().sinks.requested.store(requested, std::memory_order_release);
    state().delivery.set_tool(completed);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityRegisterCallbacks, CuptiActivityRegisterCallbacks);

FAKE_CUPTI(cuptiActivityEnable)(cupti::Kind kind) {
  return api("cuptiActivityEnable", Needs::Driver, [&] { return enable(kind); });
}
FAKE_CUPTI_IS(cuptiActivityEnable, CuptiActivityEnable);

FAKE_CUPTI(cuptiActivityDisable)(cupti::Kind kind) {
  return api("cuptiActivityDisable", Needs::Driver, [&] {
    if (!is_known(kind)) return cupti::Result::InvalidKind;
    state().kinds.fetch_and(~bit(kind));
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityDisable, CuptiActivityDisable);

FAKE_CUPTI(cuptiActivityFlushAll)(uint32_t flags) {
  return api("cuptiActivityFlushAll", Needs::Driver, [&] { return flush((flags & cupti::kFlushForced) != 0); });
}
FAKE_CUPTI_IS(cuptiActivityFlushAll, CuptiActivityFlushAll);

FAKE_CUPTI(cuptiActivityFlushPeriod)(uint32_t period_ms) {
  return api("cuptiActivityFlushPeriod", Needs::Driver, [&] {
    state().delivery.set_period_ms(period_ms);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityFlushPeriod, CuptiActivityFlushPeriod);

FAKE_CUPTI(cuptiActivityGetNumDroppedRecords)(cuda::Context, uint32_t, size_t* dropped) {
  return api("cuptiActivityGetNumDroppedRecords", Needs::Driver, [&] {
    if (dropped == nullptr) return cupti::Result::InvalidParameter;
    *dropped = state().sinks.take_dropped();
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityGetNumDroppedRecords, CuptiActivityGetNumDroppedRecords);

FAKE_CUPTI(cuptiActivitySetAttribute)(cupti::Attribute attribute, size_t* value_size_bytes, void* value) {
  return api("cuptiActivitySetAttribute", Needs::Driver, [&] {
    if (value_size_bytes == nullptr || value == nullptr) return cupti::Result::InvalidParameter;
    std::atomic<bool>* flag = flag_of(attribute);
    if (flag == nullptr) return cupti::Result::InvalidParameter;
    if (*value_size_bytes < sizeof(uint8_t)) return cupti::Result::ParameterSizeNotSufficient;
    flag->store(*static_cast<const uint8_t*>(value) != 0);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivitySetAttribute, CuptiActivitySetAttribute);

FAKE_CUPTI(cuptiActivityGetAttribute)(cupti::Attribute attribute, size_t* value_size_bytes, void* value) {
  return api("cuptiActivityGetAttribute", Needs::Driver, [&] {
    if (value_size_bytes == nullptr || value == nullptr) return cupti::Result::InvalidParameter;
    const std::atomic<bool>* flag = flag_of(attribute);
    const bool is_hardware_trace = attribute == cupti::Attribute::HardwareTrace;
    if (flag == nullptr && !is_hardware_trace) return cupti::Result::InvalidParameter;
    if (*value_size_bytes < sizeof(uint8_t)) return cupti::Result::ParameterSizeNotSufficient;
    const bool is_on = is_hardware_trace ? knob(Knob::HardwareTrace) != 0 : flag->load();
    *static_cast<uint8_t*>(value) = is_on ? 1 : 0;
    *value_size_bytes = sizeof(uint8_t);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiActivityGetAttribute, CuptiActivityGetAttribute);

// *record is null for the first record, else the record before the one that is wanted.
FAKE_CUPTI(cuptiActivityGetNextRecord)(uint8_t* buffer, size_t valid_bytes, void** record) {
  return api("cuptiActivityGetNextRecord", Needs::Nothing, [&] {
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
  });
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

}  // namespace bragg::fake
