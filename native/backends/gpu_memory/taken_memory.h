// What a program takes from CUDA itself, apart from the segments of PyTorch's allocator, whose blocks are held instead.
#pragma once

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

// Whether memory is a segment is known only after it was taken, by the block that PyTorch then hands out of it. So each
// thread's last memory is open until its next call of CUDA for memory, or for a while.
//
// Threads: one at a time.
class TakenMemory {
 public:
  explicit TakenMemory(HeldMemory& held) : held_(held) {}

  void take(const TakenBytes& taken) {
    settle_if([&](const TakenBytes& open) { return open.thread == taken.thread; });
    open_.push_back(taken);
  }

  // Nothing happens where it was taken before the recording, or is a segment.
  void give_back(uint64_t thread, uint64_t address, int64_t time_ns) {
    settle_if([&](const TakenBytes& taken) { return taken.thread == thread || taken.address == address; });
    const auto found = known_.find(address);
    if (found == known_.end()) return;
    change({found->second.device, address, -found->second.bytes, 0, 0, {}, time_ns});
    known_.erase(found);
  }

  // PyTorch's allocator has handed out a block here.
  void note_block(uint64_t address) {
    std::erase_if(open_, [&](const TakenBytes& taken) {
      return taken.address <= address && address - taken.address < taken.bytes;
    });
  }

  // What was taken until then is no segment.
  void settle(int64_t until_ns) {
    settle_if([&](const TakenBytes& taken) { return taken.time_ns <= until_ns; });
  }
  [[nodiscard]] bool has_open() const { return !open_.empty(); }

  void forget() {
    open_.clear();
    known_.clear();
    in_all_.clear();
  }

 private:
  struct Known {
    uint32_t device;
    int64_t bytes;
  };

  template <class Which>
  void settle_if(Which&& which) {
    std::erase_if(open_, [&](const TakenBytes& taken) {
      if (!which(taken)) return false;
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
  std::vector<TakenBytes> open_;
  std::unordered_map<uint64_t, Known> known_;
  std::map<uint32_t, uint64_t> in_all_;
};

}  // namespace bragg
