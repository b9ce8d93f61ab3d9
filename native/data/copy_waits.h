// Which asynchronous copies the host waited for: those from a device to pageable memory, which only the device's record
// tells. Their call returns when they are done.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "context/event.h"

namespace bragg {

// Threads: consumer only. A call and the record of its copy come in either order.
class CopyWaits {
 public:
  // The call that waited, once both are known.
  [[nodiscard]] std::optional<Event> note_call(const Event& call) {
    const std::optional<bool> waits = waits_.take(call.correlation);
    if (!waits) forgotten_ += calls_.keep(call.correlation, call);
    return waits.value_or(false) ? std::optional(call) : std::nullopt;
  }
  [[nodiscard]] std::optional<Event> note_record(CorrelationId correlation, bool waits) {
    const std::optional<Event> call = calls_.take(correlation);
    if (!call) (void)waits_.keep(correlation, waits);  // of a call that nobody followed, if it has none
    return waits ? call : std::nullopt;
  }
  // Calls of which it is not known whether they waited: their record did not come before 16,384 others were missing.
  // Of the process.
  [[nodiscard]] uint64_t forgotten() const { return forgotten_; }
  void clear() {
    calls_ = {};
    waits_ = {};
  }

 private:
  // Copies that were captured have no record. Two generations bound the memory, as those of CorrelationMap do.
  template <class Value>
  class Kept {
   public:
    // How many were forgotten for it.
    [[nodiscard]] size_t keep(CorrelationId correlation, const Value& value) {
      size_t forgotten = 0;
      if (young_.size() >= kGenerationSize) {
        forgotten = old_.size();
        old_ = std::exchange(young_, {});
      }
      young_.insert_or_assign(correlation, value);
      return forgotten;
    }
    [[nodiscard]] std::optional<Value> take(CorrelationId correlation) {
      for (Generation* generation : {&young_, &old_})
        if (auto found = generation->extract(correlation)) return found.mapped();
      return {};
    }

   private:
    using Generation = std::unordered_map<CorrelationId, Value>;
    Generation young_;
    Generation old_;
  };
  static constexpr size_t kGenerationSize = 1u << 14;

  Kept<Event> calls_;
  Kept<bool> waits_;
  uint64_t forgotten_ = 0;
};

}  // namespace bragg
