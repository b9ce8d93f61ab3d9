#include "cupti/faults.h"

#include <atomic>
#include <utility>

#include "settings.h"

namespace bragg::fake {
namespace {

struct Fields {
  uint64_t* start_ns = nullptr;  // null: a record of another kind
  uint64_t* end_ns = nullptr;
  uint32_t* correlation = nullptr;
};

template <class Record>
Fields fields(RecordBytes& bytes) noexcept {
  auto& record = bytes.as<Record>();
  return {&record.start_ns, &record.end_ns, &record.correlation};
}

Fields device_fields(RecordBytes& bytes) noexcept {
  switch (bytes.as<cupti::Kind>()) {
    case cupti::Kind::Kernel:
    case cupti::Kind::ConcurrentKernel:
      return fields<cupti::KernelRecord>(bytes);
    case cupti::Kind::Memcpy:
      return fields<cupti::MemcpyRecord>(bytes);
    case cupti::Kind::Memset:
      return fields<cupti::MemsetRecord>(bytes);
    default:
      return {};
  }
}

}  // namespace

Fate apply_faults(RecordBytes& record) noexcept {
  static std::atomic<uint64_t> seen{0};
  const Fields of = device_fields(record);
  if (of.start_ns == nullptr) return Fate::Keep;
  const uint64_t number = seen.fetch_add(1, std::memory_order_relaxed) + 1;
  const auto is_turn = [&](Knob which) {
    const int64_t every = knob(which);
    return every > 0 && number % static_cast<uint64_t>(every) == 0;
  };
  if (is_turn(Knob::DropEvery)) return Fate::Drop;
  if (is_turn(Knob::ZeroCorrelationEvery)) *of.correlation = 0;
  if (is_turn(Knob::ZeroTimestampsEvery)) *of.start_ns = *of.end_ns = cupti::kTimestampUnknown;
  if (is_turn(Knob::UnknownEndEvery)) *of.end_ns = cupti::kTimestampUnknown;
  if (is_turn(Knob::EndBeforeStartEvery)) std::swap(*of.start_ns, *of.end_ns);
  if (is_turn(Knob::DuplicateEvery)) return Fate::Duplicate;
  if (is_turn(Knob::ForeignEvery)) return Fate::AfterForeign;
  return is_turn(Knob::ReorderEvery) ? Fate::Hold : Fate::Keep;
}

}  // namespace bragg::fake
