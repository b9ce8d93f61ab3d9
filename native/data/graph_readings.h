// Metric values that CUDA graphs read on the GPU: each belongs to the launch that ran the graph.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "backends/device_values.h"
#include "data/correlation_map.h"

namespace bragg {

// Threads: consumer only. Values of one reading come in the order in which its graph was launched, so that the k-th
// value is the k-th launch's. Launches from one place in a row are one entry, however many.
class GraphReadings {
 public:
  // A graph with this reading was launched: a value will come, of a vector one an element.
  void note_launch(ReadingId reading, const Launch& launch) {
    Reading& self = readings_[reading];
    if (self.runs.empty() || !is_same_place(self.runs.back().launch, launch)) self.runs.push_back({launch, 0});
    self.runs.back().launch.graph = launch.graph;
    ++self.runs.back().count;
  }

  // That launch failed: no value will come.
  void take_back(ReadingId reading, const Launch& launch) {
    const auto found = readings_.find(reading);
    if (found == readings_.end()) return;
    auto& runs = found->second.runs;
    const auto last = std::find_if(runs.rbegin(), runs.rend(),
                                   [&](const Run& run) { return run.count > 0 && is_same_place(run.launch, launch); });
    if (last != runs.rend()) --last->count;
  }

  // Calls give(launch, bits, count) for each place whose launches read the value; a sum is shared out by their number.
  // More values than launches, as of a loop within a graph, are the last launch's if its sessions still record.
  template <class Give>
  void take(const ArrivedValue& value, Give&& give) {
    const auto found = readings_.find(value.target.reading);
    if (found == readings_.end()) return;  // launched before anything recorded
    Reading& reading = found->second;
    if (value.index >= reading.taken.size()) reading.taken.resize(std::max(value.target.length, 1u), reading.forgotten);
    uint64_t& taken = reading.taken[value.index];
    Remainder remainder{value.target, value.count, value.bits};
    uint64_t until = reading.forgotten;
    for (const Run& run : reading.runs) {
      if (remainder.count == 0) break;
      until += run.count;
      const uint64_t count = std::min(remainder.count, until - std::min(until, taken));
      if (count == 0) continue;
      give(run.launch, remainder.split(count), count);
      taken += count;
    }
    if (remainder.count != 0) {
      Launch last = reading.runs.back().launch;
      last.mask &= recording_state.active.load(std::memory_order_relaxed);
      give(last, remainder.bits, remainder.count);
    }
    if (value.index + 1 == reading.taken.size()) reading.forget_taken();
  }

  // `is_forgotten(graph)`: no value of this version of a graph will come.
  template <class IsForgotten>
  void forget(IsForgotten&& is_forgotten) {
    std::erase_if(readings_, [&](const auto& each) { return is_forgotten(each.second.runs.back().launch.graph); });
  }
  void clear() { readings_.clear(); }

 private:
  struct Run {
    Launch launch;
    uint64_t count;
  };
  struct Reading {
    std::deque<Run> runs;         // never empty
    uint64_t forgotten = 0;       // launches before those of the first run
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
  // Of a sum of several values, what is not given yet.
  struct Remainder {
    const ValueTarget& target;
    uint64_t count;
    uint64_t bits;

    // The share of `part` of the values.
    uint64_t split(uint64_t part) {
      const uint64_t given = part == count || target.is_property ? bits : share(part);
      count -= part;
      if (target.is_property) return given;
      if (!target.is_float) {
        bits -= given;
      } else if (std::isfinite(number(bits))) {  // of an infinite sum all shares are infinite
        bits = bits_of(number(bits) - number(given));
      }
      return given;
    }
    [[nodiscard]] uint64_t share(uint64_t part) const {
      if (target.is_float) return bits_of(number(bits) / static_cast<double>(count) * static_cast<double>(part));
      return static_cast<uint64_t>(static_cast<int64_t>(bits) / static_cast<int64_t>(count) *
                                   static_cast<int64_t>(part));
    }
    static double number(uint64_t of_bits) { return std::bit_cast<double>(of_bits); }
    static uint64_t bits_of(double number) { return std::bit_cast<uint64_t>(number); }
  };

  std::unordered_map<ReadingId, Reading> readings_;
};

}  // namespace bragg
