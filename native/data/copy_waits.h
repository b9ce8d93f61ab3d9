// Which asynchronous copies the host waited for: those from a device to pageable memory, which only the device's record
// tells. Their call returns when they are done.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "context/event.h"

namespace bragg {

// Threads: consumer only. A call and the record of its copy come in either order.
class CopyWaits {
 public:
  // The call that waited, once both are known.
  [[nodiscard]] std::optional<Event> note_call(const Event& call) {
    const auto found = waits_.find(call.correlation);
    if (found == waits_.end()) {
      keep(calls_, call.correlation, call);
      return {};
    }
    const bool waits = found->second;
    waits_.erase(found);
    return waits ? std::optional(call) : std::nullopt;
  }
  [[nodiscard]] std::optional<Event> note_record(uint32_t correlation, bool waits) {
    const auto found = calls_.find(correlation);
    if (found == calls_.end()) {
      keep(waits_, correlation, waits);
      return {};
    }
    const Event call = found->second;
    calls_.erase(found);
    return waits ? std::optional(call) : std::nullopt;
  }
  void clear() {
    calls_.clear();
    waits_.clear();
  }

 private:
  // Copies that were captured have no record, and those of calls that nobody followed have no call.
  static constexpr size_t kMaxKept = 1u << 14;

  template <class Value>
  static void keep(std::unordered_map<uint32_t, Value>& map, uint32_t correlation, const Value& value) {
    if (map.size() >= kMaxKept) map.clear();
    map.insert_or_assign(correlation, value);
  }

  std::unordered_map<uint32_t, Event> calls_;
  std::unordered_map<uint32_t, bool> waits_;
};

}  // namespace bragg
