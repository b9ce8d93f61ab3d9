// Correlation id -> the launch that caused it, until its device records have come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "context/calling_context_tree.h"
#include "context/hash.h"
#include "context/recording_state.h"
#include "data/awaited_launches.h"

namespace bragg {

struct Launch {
  NodeId shadow = kRootNode;
  NodeId python = kRootNode;
  StringId name = StringId::None;               // of the kernel, unless it goes by its symbol
  SessionMask mask = 0;                         // slots, and above them their sessions
  bool keeps : 1 = false;                       // more records with this id may come: graphs, copies
  uint8_t records : 2 = 0;                      // that came; 2: or more
  DrainRound round = 0;                         // in which it was made
  CodeNumber code = CodeNumber::None;           // of the kernel
  GraphVersionId graph = GraphVersionId::None;  // None: it launches no graph, or one that is not known
  TrackId thread = TrackId::None;               // track of the one that made it
  uint32_t ended[2] = {};  // when the call returned, ns; 0: not known. In halves, so that a slot has no gap

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

  void insert(CorrelationId correlation, const Launch& launch) {
    if (young_.used * 2 >= kGenerationSize) {
      std::swap(young_, old_);
      young_.clear();
    }
    young_.insert(correlation, launch);
  }

  // nullptr: unknown. The launch is valid until the next insert.
  [[nodiscard]] Launch* find(CorrelationId correlation) {
    Launch* launch = young_.find(correlation);
    return launch != nullptr ? launch : old_.find(correlation);
  }

  void clear() { young_ = old_ = {}; }

 private:
  // Ids come one after another: sixteen of them lie side by side, one cache line of ids and nine of launches. An odd
  // factor spreads these groups without collisions, and the search for an id that is not here soon meets a gap.
  static constexpr uint32_t kGroupBits = 4;
  static constexpr uint32_t kGroup = 1u << kGroupBits;

  // The ids apart from the launches: a generation that starts over clears 4 bytes a slot. It keeps its memory, as the
  // next one will be as large: to grow again would cost each launch two copies and its share of page faults.
  struct Generation {
    std::vector<CorrelationId> ids;  // None is empty
    std::vector<Launch> launches;
    uint32_t used = 0;

    void insert(CorrelationId correlation, const Launch& launch) {
      if (used * 2 >= ids.size()) grow();
      const size_t slot = probe(correlation);
      used += ids[slot] == CorrelationId::None;
      ids[slot] = correlation;
      launches[slot] = launch;
    }
    [[nodiscard]] Launch* find(CorrelationId correlation) {
      if (used == 0) return nullptr;
      const size_t slot = probe(correlation);
      return ids[slot] != CorrelationId::None ? &launches[slot] : nullptr;
    }
    [[nodiscard]] size_t probe(CorrelationId correlation) const {
      const size_t mask = ids.size() - 1;
      const uint32_t number = number_of(correlation);
      size_t i = (size_t{spread(number >> kGroupBits)} << kGroupBits | number % kGroup) & mask;
      while (ids[i] != CorrelationId::None && ids[i] != correlation) i = (i + 1) & mask;
      return i;
    }
    void grow() {
      Generation before = std::exchange(*this, {});
      ids.resize(std::max<size_t>(before.ids.size() * 2, 1024));
      launches.resize(ids.size());
      for (size_t i = 0; i < before.ids.size(); ++i)
        if (before.ids[i] != CorrelationId::None) insert(before.ids[i], before.launches[i]);
    }
    void clear() {
      std::ranges::fill(ids, CorrelationId::None);
      used = 0;
    }
  };
  static_assert(sizeof(Launch) == 36);

  Generation young_;
  Generation old_;
};

}  // namespace bragg
