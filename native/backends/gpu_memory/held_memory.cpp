#include "backends/gpu_memory/held_memory.h"

#include <algorithm>
#include <utility>

namespace bragg {
namespace {

// Between two points of the timeline's curve, unless memory was never as high: 0.2 MB a second at most.
constexpr int64_t kMemoryPointNs = 200'000;
constexpr size_t kMostMemoryPoints = 1 << 20;  // 32 MB: the consumer takes them every few ms, unless it hangs

// The most that PyTorch's allocator takes from CUDA for one block: small ones and those up to 10 MiB share segments.
uint64_t segment_bytes(uint64_t block_bytes) {
  constexpr uint64_t kMib = 1 << 20;
  if (block_bytes <= kMib) return 2 * kMib;
  return block_bytes < 10 * kMib ? 20 * kMib : (block_bytes + 2 * kMib - 1) / (2 * kMib) * (2 * kMib);
}

}  // namespace

void HeldMemory::Sums::add(Holder holder, int64_t value) {
  if (sums_.size() <= holder) {
    sums_.resize(holder + 1);
    is_changed_.resize(holder + 1);
  }
  sums_[holder] += value;
  if (std::exchange(is_changed_[holder], 1) == 0) changed_.push_back(holder);
}

template <class Visit>
void HeldMemory::Sums::drain(Visit&& visit) {
  for (const Holder holder : changed_) {
    is_changed_[holder] = 0;
    if (const int64_t sum = std::exchange(sums_[holder], 0); sum != 0) visit(holder, sum);
  }
  changed_.clear();
}

HeldMemory::Holder HeldMemory::holder_of(const ContextNodes& nodes) {
  const auto [found, is_new] = numbers_.try_emplace(nodes, static_cast<Holder>(holders_.size()));
  if (is_new) holders_.push_back(nodes);
  return found->second;
}

void HeldMemory::forget() { devices_.clear(); }

// What is held already is held at the first peak, too.
void HeldMemory::begin_phase(uint32_t number, int64_t time_ns) {
  Phase& phase = phases_[number] = {};
  phase.started_ns = time_ns;
  for (auto& [ordinal, device] : devices_) {
    PhaseDevice& of_device = phase.devices[ordinal];
    for (Holder holder = 0; holder < device.held.size(); ++holder) {
      if (device.held[holder] == 0) continue;
      phase.of(MemoryMetric::Peak).add(holder, device.held[holder]);
      phase.of(MemoryMetric::End).add(holder, device.held[holder]);
    }
    of_device.peak = device.allocated;
    of_device.reserved_at_peak = of_device.most_reserved = device.reserved;
    of_device.peak_ns = time_ns;
    of_device.curve.take(time_ns, device.allocated, device.allocated, device.reserved);
  }
}

void HeldMemory::end_phase(uint32_t number) {
  if (const auto found = phases_.find(number); found != phases_.end()) found->second.has_ended = true;
}

bool HeldMemory::is_wanted() const {
  return std::ranges::any_of(phases_, [](const auto& each) { return !each.second.has_ended; });
}

void HeldMemory::change(Device& device, uint32_t ordinal, Holder holder, int64_t bytes) {
  if (device.held.size() <= holder) device.held.resize(holder + 1);
  device.held[holder] += bytes;
  device.held_in_all += bytes;
  for (auto& [number, phase] : phases_) {
    if (phase.has_ended) continue;
    phase.devices[ordinal].since_peak.add(holder, bytes);
    phase.of(MemoryMetric::End).add(holder, bytes);
  }
}

void HeldMemory::take(const MemoryEvent& event) {
  Device& device = devices_[event.device];
  const Holder here = event.bytes > 0 ? holder_of(event.nodes) : kUnknown;
  if (event.bytes > 0) {
    device.blocks[event.address] = {here, event.bytes};
    change(device, event.device, here, event.bytes);
  } else if (const auto found = device.blocks.find(event.address); found != device.blocks.end()) {
    change(device, event.device, found->second.holder, -found->second.bytes);
    device.blocks.erase(found);
  }
  const int64_t unknown = static_cast<int64_t>(event.allocated) - device.held_in_all;
  if (unknown != 0) change(device, event.device, kUnknown, unknown);
  const uint64_t before = event.allocated - static_cast<uint64_t>(event.bytes);
  // The first block of a recording may be in memory that the allocator had taken and kept from before.
  const bool took_all = event.bytes == static_cast<int64_t>(event.allocated) &&
                        event.reserved <= segment_bytes(static_cast<uint64_t>(event.bytes));
  const uint64_t reserved_before = device.is_known || took_all ? device.reserved : event.reserved;
  device.is_known = true;
  device.allocated = event.allocated;
  device.reserved = event.reserved;
  for (auto& [number, phase] : phases_) {
    if (phase.has_ended) continue;
    PhaseDevice& of_device = phase.devices[event.device];
    ++(event.bytes > 0 ? of_device.allocations : of_device.frees);
    if (event.bytes > 0 && event.reserved > reserved_before) {
      ++of_device.reservations;
      phase.of(MemoryMetric::Reservations).add(here, 1);
      phase.of(MemoryMetric::Reserved).add(here, static_cast<int64_t>(event.reserved - reserved_before));
    }
    of_device.curve.take(event.time_ns, before, event.allocated, event.reserved);
    look_for_peak(phase, of_device, event);
  }
  point(device, event);
}

void HeldMemory::look_for_peak(Phase& phase, PhaseDevice& of_device, const MemoryEvent& event) {
  of_device.most_reserved = std::max(of_device.most_reserved, event.reserved);
  if (event.allocated <= of_device.peak) return;
  of_device.peak = event.allocated;
  of_device.reserved_at_peak = event.reserved;
  of_device.peak_ns = event.time_ns;
  of_device.since_peak.drain([&](Holder holder, int64_t bytes) { phase.of(MemoryMetric::Peak).add(holder, bytes); });
}

// A step lasts until the next point: the last of many that follow one another is told, too.
void HeldMemory::point(Device& device, const MemoryEvent& event) {
  const MemoryPoint now{event.device, event.time_ns, event.allocated, event.reserved};
  const bool is_highest = event.allocated > device.highest;
  if (is_highest) device.highest = event.allocated;
  if (!is_highest && event.time_ns - device.pointed_ns < kMemoryPointNs) {
    device.waiting = now;
    return;
  }
  if (device.waiting) points_.push_back(*std::exchange(device.waiting, std::nullopt));
  points_.push_back(now);
  device.pointed_ns = event.time_ns;
  if (points_.size() > kMostMemoryPoints) points_.clear();
}

std::vector<MemoryPoint> HeldMemory::take_points(int64_t now_ns) {
  for (auto& [ordinal, device] : devices_)
    if (device.waiting && now_ns - device.waiting->time_ns >= kMemoryPointNs)
      points_.push_back(*std::exchange(device.waiting, std::nullopt));
  return std::exchange(points_, {});
}

std::vector<MemoryChange> HeldMemory::take_changes() {
  std::vector<MemoryChange> changes;
  for (auto& [number, phase] : phases_)
    for (size_t metric = 0; metric < kMemoryMetrics; ++metric)
      phase.untold[metric].drain([&](Holder holder, int64_t delta) {
        changes.push_back({number, static_cast<MemoryMetric>(metric), holders_[holder], delta});
      });
  return changes;
}

void HeldMemory::describe(JsonObject& json, uint32_t number) const {
  const auto phase = phases_.find(number);
  if (phase == phases_.end()) return;
  JsonObject devices;
  for (const auto& [ordinal, seen] : phase->second.devices) {
    const auto device = devices_.find(ordinal);
    JsonObject facts;
    facts.put("peak_bytes", seen.peak)
        .put("peak_ns", seen.peak_ns)
        .put("reserved_at_peak_bytes", seen.reserved_at_peak);
    facts.put("most_reserved_bytes", seen.most_reserved);
    facts.put("allocations", seen.allocations).put("frees", seen.frees).put("reservations", seen.reservations);
    if (device != devices_.end())
      facts.put("unknown_bytes", device->second.held.empty() ? 0 : device->second.held[kUnknown]);
    devices.raw(std::to_string(ordinal), facts.raw("curve", seen.curve.json()).text());
  }
  json.raw("devices", devices.text());
}

}  // namespace bragg
