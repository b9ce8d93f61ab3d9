// Memory that is created by a handle and then mapped: it is given back when nothing refers to it any more.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "backends/gpu_memory/taken_memory.h"

namespace bragg {

// Threads: one at a time.
class MappedMemory {
 public:
  explicit MappedMemory(TakenMemory& taken) : taken_(taken) {}

  // `taken`: without an address. What was created before the recording, or by another process, is not known.
  void create(uint64_t handle, TakenBytes taken) {
    taken.address = key_of(handle);
    references_[handle] = 1;
    taken_.create(taken);
  }
  void map(uint64_t handle, const AddressRange& range) {
    if (!retain(handle)) return;
    mappings_[range.address] = handle;
    taken_.map(key_of(handle), range);
  }
  bool retain(uint64_t handle) {
    const auto found = references_.find(handle);
    if (found == references_.end()) return false;
    ++found->second;
    return true;
  }
  void release(uint64_t handle, uint64_t thread, int64_t time_ns) {
    const auto found = references_.find(handle);
    if (found == references_.end() || --found->second != 0) return;
    references_.erase(found);
    taken_.give_back(thread, key_of(handle), time_ns);
  }
  // All that is mapped in the range.
  void unmap(const AddressRange& range, uint64_t thread, int64_t time_ns) {
    auto next = mappings_.lower_bound(range.address);
    while (next != mappings_.end() && next->first - range.address < range.bytes) {
      release(next->second, thread, time_ns);
      next = mappings_.erase(next);
    }
  }

  void forget() {
    references_.clear();
    mappings_.clear();
  }

 private:
  // No address of memory: those have at most 57 bits.
  [[nodiscard]] static uint64_t key_of(uint64_t handle) { return handle | uint64_t{1} << 63; }

  TakenMemory& taken_;
  std::unordered_map<uint64_t, uint64_t> references_;  // by handle: its own, and those of mappings
  std::map<uint64_t, uint64_t> mappings_;              // handles, by the address where they are mapped
};

}  // namespace bragg
