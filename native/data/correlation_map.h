// Correlation id -> the launch that caused it, until its device records have come.
#pragma once

#include <cstdint>
#include <vector>

#include "context/calling_context_tree.h"
#include "context/hash.h"
#include "context/recording_state.h"
#include "data/awaited_launches.h"

namespace bragg {

struct Launch {
  NodeId shadow = kRootNode;
  NodeId python = kRootNode;
  StringId name = kNone;    // of the kernel, unless it goes by its symbol
  SessionMask mask = 0;     // slots, and above them their lines
  bool keeps : 1 = false;   // more records with this id may come: graphs, copies
  uint8_t records : 2 = 0;  // that came; 2: or more
  DrainRound round = 0;     // in which it was made
  uint16_t code = 0;        // CodeNumber of the kernel
  uint32_t graph = 0;       // GraphVersionId of a graph launch; 0: no graph, or one that is not known
  uint32_t thread = kNone;  // track of the one that made it
  uint32_t ended[2] = {};   // when the call returned, ns; 0: not known. In halves, so that a slot has no gap

  void end_at(int64_t time_ns) {
    ended[0] = static_cast<uint32_t>(time_ns);
    ended[1] = static_cast<uint32_t>(time_ns >> 32);
  }
  [[nodiscard]] int64_t ended_ns() const { return static_cast<int64_t>(uint64_t{ended[1]} << 32 | ended[0]); }

  [[nodiscard]] bool has_all() const { return records > 0 && !keeps; }
  void note_record() {
    if (records < 2) ++records;
  }
};

// Threads: consumer only. Two generations bound the memory: launches that never have a record (stream capture, failed
// calls) and those that keep their id age out. One generation holds more launches than can be in flight.
class CorrelationMap {
 public:
  static constexpr uint32_t kGenerationSize = 1u << 19;

  void insert(uint32_t correlation, const Launch& launch) {
    if (young_.used * 2 >= kGenerationSize) {
      std::swap(young_, old_);
      young_.clear();
    }
    young_.insert(correlation, launch);
  }

  // nullptr: unknown. The launch is valid until the next insert.
  [[nodiscard]] Launch* find(uint32_t correlation) {
    Launch* launch = young_.find(correlation);
    return launch != nullptr ? launch : old_.find(correlation);
  }

  void clear() {
    young_.clear();
    old_.clear();
  }

 private:
  struct Slot {
    uint32_t correlation = 0;  // 0 is empty; CUPTI's ids start at 1
    Launch launch;
  };
  static_assert(sizeof(Slot) == 40);

  struct Generation {
    std::vector<Slot> slots;
    uint32_t used = 0;

    void insert(uint32_t correlation, const Launch& launch) {
      if (used * 2 >= slots.size()) grow();
      Slot& slot = slots[probe(correlation)];
      used += slot.correlation == 0;
      slot = {correlation, launch};
    }
    [[nodiscard]] Launch* find(uint32_t correlation) {
      if (slots.empty()) return nullptr;
      Slot& slot = slots[probe(correlation)];
      return slot.correlation != 0 ? &slot.launch : nullptr;
    }
    [[nodiscard]] size_t probe(uint32_t correlation) const {
      // Ids come one after another: an odd factor spreads them without collisions, and the search for one that is not
      // here soon meets a gap.
      size_t i = spread(correlation) & (slots.size() - 1);
      while (slots[i].correlation != 0 && slots[i].correlation != correlation) i = (i + 1) & (slots.size() - 1);
      return i;
    }
    void grow() {
      std::vector<Slot> before(slots.empty() ? 1024 : slots.size() * 2);
      before.swap(slots);
      for (const Slot& slot : before)
        if (slot.correlation != 0) slots[probe(slot.correlation)] = slot;
    }
    void clear() {
      slots.clear();
      used = 0;
    }
  };

  Generation young_;
  Generation old_;
};

}  // namespace bragg
