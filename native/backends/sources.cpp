#include "backends/sources.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/host_source.h"
#include "backends/cuda/counters/counter_source.h"
#include "backends/cuda/cuda_source.h"
#include "backends/gpu_memory/cuda_memory_source.h"
#include "backends/gpu_memory/torch_memory_source.h"
#include "backends/nccl/nccl_source.h"
#include "backends/telemetry/telemetry_source.h"

namespace bragg {
namespace {

// What threads wrote is taken before the records of devices that it explains.
constexpr SourceRow kRows[] = {
    {"cpu", host_source},
    {"cuda", cuda_source},
    {"counters", counter_source},
    {"telemetry", telemetry_source},
    {"memory", torch_memory_source},
    {"cuda memory", cuda_memory_source},
    {"nccl", []() -> EventSource& { return nccl_source(); }},
};

}  // namespace

EventSources::EventSources() : rows_(std::begin(kRows), std::end(kRows)) {}

EventSources& EventSources::instance() {
  static EventSources& sources = *new EventSources;  // driver threads may outlive static destruction
  return sources;
}

EventSource* EventSources::find(std::string_view name) const {
  const auto found = std::ranges::find(rows_, name, &SourceRow::name);
  return found != rows_.end() ? &found->source() : nullptr;
}

bool EventSources::tells_records() const {
  return std::ranges::any_of(rows_, [](const SourceRow& row) { return row.source().tells_records(); });
}

uint64_t EventSources::dropped_records() const {
  uint64_t count = 0;
  for_each([&](const EventSource& source) { count += source.dropped_records(); });
  return count;
}

uint64_t EventSources::pending() const {
  uint64_t count = 0;
  for_each([&](const EventSource& source) { count += source.pending(); });
  return count;
}

uint32_t EventSources::current_device() const {
  for (const SourceRow& row : rows_)
    if (const uint32_t device = row.source().current_device(); device != kNone) return device;
  return kNone;
}

std::string EventSources::add_value(MetricId metric, const DeviceArray& array, void* stream) const noexcept {
  std::string refusal;  // of the source that takes the memory for its own, if one does
  for (const SourceRow& row : rows_) {
    EventSource& source = row.source();
    if (source.is_of_host()) continue;
    std::string own = source.add_value(metric, array, stream);
    if (own.empty()) return own;
    if (refusal.empty() || own != EventSource::kNotItsMemory) refusal = std::move(own);
  }
  return refusal.empty() ? "no device is recorded" : refusal;
}

}  // namespace bragg
