// What PyTorch's allocator holds on each GPU, by the call paths that asked for it: at the peak of each phase, and now.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backends/gpu_memory/memory_curve.h"
#include "context/event.h"
#include "context/hash.h"
#include "data/json.h"

namespace bragg {

struct MemoryEvent {
  uint32_t device;
  uint64_t address;
  int64_t bytes;       // of the block; below 0: it was freed
  uint64_t allocated;  // by all blocks of the device, after it
  uint64_t reserved;   // what the allocator has taken from CUDA for them
  ContextNodes nodes;  // where the program is
  int64_t time_ns;
};

enum class MemoryMetric : uint8_t { Peak, End, Reserved, Reservations };
inline constexpr size_t kMemoryMetrics = 4;

// What a metric has changed by since it was told last.
struct MemoryChange {
  uint32_t phase;
  MemoryMetric metric;
  ContextNodes nodes;
  int64_t delta;
};

struct MemoryPoint {
  uint32_t device;
  int64_t time_ns;
  uint64_t allocated;
  uint64_t reserved;
};

// Threads: one at a time. Memory grows with blocks and call paths, not with time.
class HeldMemory {
 public:
  // `unknown`: the call path of blocks that were allocated before they were followed.
  explicit HeldMemory(ContextNodes unknown) { (void)holder_of(unknown); }

  void forget();  // what is held: something was missed since
  [[nodiscard]] bool is_known() const { return !devices_.empty(); }
  void begin_phase(uint32_t phase, int64_t time_ns);
  void end_phase(uint32_t phase);
  [[nodiscard]] bool is_wanted() const;  // by a phase that has not ended
  void take(const MemoryEvent& event);
  [[nodiscard]] std::vector<MemoryChange> take_changes();
  [[nodiscard]] std::vector<MemoryPoint> take_points(int64_t now_ns);
  void describe(JsonObject& json, uint32_t phase) const;

 private:
  using Holder = uint32_t;  // a call path: of `holders_`. The first: not known
  static constexpr Holder kUnknown = 0;

  // A number for each holder, of which those are known that changed.
  class Sums {
   public:
    void add(Holder holder, int64_t value);
    template <class Visit>
    void drain(Visit&& visit);

   private:
    std::vector<int64_t> sums_;
    std::vector<uint8_t> is_changed_;
    std::vector<Holder> changed_;
  };
  struct Block {
    Holder holder;
    int64_t bytes;
  };
  struct Device {
    std::unordered_map<uint64_t, Block> blocks;
    std::vector<int64_t> held;  // by holder
    int64_t held_in_all = 0;
    uint64_t allocated = 0;
    uint64_t reserved = 0;
    bool is_known = false;  // something has happened since it is followed
    // Of the timeline's curve.
    int64_t pointed_ns = 0;
    uint64_t highest = 0;
    std::optional<MemoryPoint> waiting;
  };
  struct PhaseDevice {
    Sums since_peak;
    uint64_t peak = 0, reserved_at_peak = 0;
    int64_t peak_ns = 0;
    uint64_t most_reserved = 0;
    uint64_t allocations = 0, frees = 0, reservations = 0;
    MemoryCurve curve;
  };
  struct Phase {
    bool has_ended = false;
    int64_t started_ns = 0;
    std::map<uint32_t, PhaseDevice> devices;
    std::array<Sums, kMemoryMetrics> untold;

    [[nodiscard]] Sums& of(MemoryMetric metric) { return untold[static_cast<size_t>(metric)]; }
  };
  struct NodesHash {
    size_t operator()(const ContextNodes& nodes) const noexcept { return hash_of(pair_of(nodes.shadow, nodes.python)); }
  };

  [[nodiscard]] Holder holder_of(const ContextNodes& nodes);
  void change(Device& device, uint32_t ordinal, Holder holder, int64_t bytes);
  void look_for_peak(Phase& phase, PhaseDevice& of_device, const MemoryEvent& event);
  void point(Device& device, const MemoryEvent& event);

  std::vector<ContextNodes> holders_;
  std::unordered_map<ContextNodes, Holder, NodesHash> numbers_;
  std::map<uint32_t, Device> devices_;
  std::map<uint32_t, Phase> phases_;
  std::vector<MemoryPoint> points_;
};

}  // namespace bragg
