// Metric values that CUDA graphs read on the GPU: each belongs to the launch that ran the graph.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "backends/value_slots.h"
#include "data/correlation_map.h"

namespace bragg {

// Threads: consumer only. Values of one reading come in the order in which its graph was launched, so that the k-th
// value is the k-th launch's. Launches from one place in a row are one entry, however many.
class GraphReadings {
 public:
  // A graph with this reading was launched: a value will come, of a vector one an element.
  void note_launch(uint32_t reading, const Launch& launch) {
    Reading& self = readings_[reading];
    if (self.runs.empty() || !is_same_place(self.runs.back().launch, launch)) self.runs.push_back({launch, 0});
    ++self.runs.back().count;
    ++self.launches;
  }

  // Calls give(launch, bits, count) for each place whose launches read the value; a sum is shared out by their number.
  // More values than launches (a node in a loop of the graph) are the last launch's.
  template <class Give>
  void take(const ArrivedValue& value, Give&& give) {
    const auto found = readings_.find(value.target.capture);
    if (found == readings_.end()) return;  // launched while nothing recorded
    Reading& reading = found->second;
    if (value.index >= reading.taken.size()) reading.taken.resize(std::max(value.target.length, 1u), reading.forgotten);
    uint64_t& taken = reading.taken[value.index];
    uint64_t before = reading.forgotten, left = value.count, left_bits = value.bits;
    for (const Run& run : reading.runs) {
      const bool is_last = &run == &reading.runs.back();
      const uint64_t until = before + run.count;
      const uint64_t count = is_last ? left : std::min(left, until - std::min(until, std::max(taken, before)));
      before = until;
      if (count == 0) continue;
      const uint64_t bits = share(value.target, left_bits, count, left);
      give(run.launch, bits, count);
      left -= count;
      if (!value.target.is_property) left_bits = rest(value.target, left_bits, bits);
      taken = std::min(taken + count, reading.launches);
    }
    reading.forget_taken();
  }

  void clear() { readings_.clear(); }

 private:
  struct Run {
    Launch launch;
    uint64_t count;
  };
  struct Reading {
    std::deque<Run> runs;         // never empty
    uint64_t launches = 0;        // in all
    uint64_t forgotten = 0;       // of them, before the first run
    std::vector<uint64_t> taken;  // launches whose value has come, by element

    // The last run stays: it may grow.
    void forget_taken() {
      if (runs.size() == 1) return;
      const uint64_t all_have = *std::ranges::min_element(taken);
      while (runs.size() > 1 && forgotten + runs.front().count <= all_have) {
        forgotten += runs.front().count;
        runs.pop_front();
      }
    }
  };

  static bool is_same_place(const Launch& a, const Launch& b) {
    return a.shadow == b.shadow && a.python == b.python && a.mask == b.mask;
  }
  static uint64_t share(const ValueTarget& target, uint64_t bits, uint64_t count, uint64_t of) {
    if (count == of || target.is_property) return bits;
    if (!target.is_float)
      return static_cast<uint64_t>(static_cast<int64_t>(bits) / static_cast<int64_t>(of) * static_cast<int64_t>(count));
    return std::bit_cast<uint64_t>(std::bit_cast<double>(bits) / static_cast<double>(of) * static_cast<double>(count));
  }
  static uint64_t rest(const ValueTarget& target, uint64_t bits, uint64_t given) {
    if (!target.is_float) return bits - given;
    return std::bit_cast<uint64_t>(std::bit_cast<double>(bits) - std::bit_cast<double>(given));
  }

  std::unordered_map<uint32_t, Reading> readings_;  // by the capture of their targets
};

}  // namespace bragg
