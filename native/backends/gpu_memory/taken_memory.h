// What a program takes from CUDA itself, apart from the segments of PyTorch's allocator, whose blocks are held instead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "backends/gpu_memory/held_memory.h"

namespace bragg {

struct TakenBytes {
  uint64_t thread;  // any number of its own
  uint32_t device;
  uint64_t address;
  uint64_t bytes;
  ContextNodes nodes;
  int64_t time_ns;
};

struct AddressRange {
  uint64_t address;
  uint64_t bytes;

  [[nodiscard]] bool overlaps(const AddressRange& other) const {
    return address < other.address + other.bytes && other.address < address + bytes;
  }
};

// Whether memory is a segment is known only after it was taken, by the block that PyTorch then hands out of it. So each
// thread's last memory is open until its next call of CUDA for memory, or for a while; memory that is mapped, of which
// a segment has many pieces, for a while.
//
// Threads: one at a time.
class TakenMemory {
 public:
  explicit TakenMemory(HeldMemory& held) : held_(held) {}

  void take(const TakenBytes& taken) {
    settle_last_of(taken.thread);
    open_.push_back({taken, {{taken.address, taken.bytes}}, false});
  }
  // Memory that has no address until it is mapped; `taken.address` stands for it.
  void create(const TakenBytes& taken) { open_.push_back({taken, {}, true}); }
  void map(uint64_t created, const AddressRange& range) {
    const auto found = std::ranges::find(open_, created, [](const Open& open) { return open.taken.address; });
    if (found != open_.end()) found->ranges.push_back(range);
  }

  // Nothing happens where it was taken before the recording, or is a segment.
  void give_back(uint64_t thread, uint64_t address, int64_t time_ns) {
    settle_last_of(thread);
    settle_if([&](const Open& open) { return open.taken.address == address; });
    const auto found = known_.find(address);
    if (found == known_.end()) return;
    change({found->second.device, address, -found->second.bytes, 0, 0, {}, time_ns});
    known_.erase(found);
  }

  // PyTorch's allocator has handed out a block here.
  void note_block(const AddressRange& block) {
    std::erase_if(open_, [&](const Open& open) {
      return std::ranges::any_of(open.ranges, [&](const AddressRange& range) { return range.overlaps(block); });
    });
  }

  // What was taken until then is no segment.
  void settle(int64_t until_ns) {
    settle_if([&](const Open& open) { return open.taken.time_ns <= until_ns; });
  }
  [[nodiscard]] bool has_open() const { return !open_.empty(); }

  void forget() {
    open_.clear();
    known_.clear();
    in_all_.clear();
  }

 private:
  struct Open {
    TakenBytes taken;
    std::vector<AddressRange> ranges;  // where it is
    bool is_mapped;
  };
  struct Known {
    uint32_t device;
    int64_t bytes;
  };

  void settle_last_of(uint64_t thread) {
    settle_if([&](const Open& open) { return open.taken.thread == thread && !open.is_mapped; });
  }

  template <class Which>
  void settle_if(Which&& which) {
    std::erase_if(open_, [&](const Open& open) {
      if (!which(open)) return false;
      const TakenBytes& taken = open.taken;
      const auto bytes = static_cast<int64_t>(taken.bytes);
      known_[taken.address] = {taken.device, bytes};
      change({taken.device, taken.address, bytes, 0, 0, taken.nodes, taken.time_ns});
      return true;
    });
  }

  void change(MemoryEvent event) {
    uint64_t& in_all = in_all_[event.device];
    in_all += static_cast<uint64_t>(event.bytes);
    event.allocated = event.reserved = in_all;
    held_.take(event);
  }

  HeldMemory& held_;
  std::vector<Open> open_;
  std::unordered_map<uint64_t, Known> known_;
  std::map<uint32_t, uint64_t> in_all_;
};

}  // namespace bragg
