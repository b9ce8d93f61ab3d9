// Where metric values arrive that a kernel of ours reads on the GPU: one log and many slots for each CUDA context.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/driver/cuda_functions.h"
#include "backends/cuda/values/value_kernel.h"
#include "backends/device_values.h"
#include "context/calling_context_tree.h"
#include "context/metric_names.h"
#include "context/recording_state.h"

namespace bragg {

// Page-locked memory that the GPU can write. It is the process's own and never freed: kernels in graphs may write at
// any time, and it stays readable when its CUDA context is gone. A forked child does not have it.
struct PinnedMemory {
  void* host = nullptr;
  uint64_t device = 0;
  // False: `reason`. A CUDA context is current.
  [[nodiscard]] bool allocate(const CudaFunctions& cuda, size_t size_bytes, std::string& reason);
};

// Where the kernel finds its slots.
struct SlotPlace {
  uint32_t slot = kNone;  // of the first element
  uint64_t totals = 0;    // device address
};

// Threads: slots are made by application threads; `read` belongs to the consumer.
class ValueSlots {
 public:
  static constexpr uint32_t kPerPage = 1u << 15;  // 1 MB of totals

  // nullptr: `reason`. The context is current.
  [[nodiscard]] static std::unique_ptr<ValueSlots> create(const CudaFunctions& cuda, std::string& reason);

  [[nodiscard]] cuda::Device device() const { return device_; }
  [[nodiscard]] cuda::Function kernel() const { return kernel_; }
  [[nodiscard]] uint64_t log() const { return log_memory_.device; }

  // The slots of a target, one an element; a capture's are its own. kNone: `reason`. The context is current.
  [[nodiscard]] SlotPlace place_of(const CudaFunctions& cuda, const ValueTarget& target, std::string& reason);

  void note_launch(uint32_t values) { launched_.fetch_add(values, std::memory_order_relaxed); }  // in no graph
  // Values that are on their way, except those of graphs.
  [[nodiscard]] uint64_t awaited() const {
    const uint64_t arrived = arrived_.load(std::memory_order_relaxed);
    const uint64_t launched = launched_.load(std::memory_order_relaxed);
    return launched - std::min(launched, arrived);
  }

  void read(std::vector<ArrivedValue>& into);

 private:
  struct Slot {
    uint32_t target;
    uint32_t index;
  };
  struct Taken {
    uint64_t count = 0;
    uint64_t sum = 0;
  };
  struct TargetHash {
    size_t operator()(const ValueTarget& target) const noexcept;
  };

  ValueSlots() = default;
  [[nodiscard]] uint32_t append(const CudaFunctions& cuda, const ValueTarget& target, std::string& reason);
  [[nodiscard]] SlotPlace place(uint32_t slot) const;
  [[nodiscard]] ArrivedValue& add(std::vector<ArrivedValue>& into, uint32_t slot, uint64_t bits, uint64_t count) const;
  void read_log(std::vector<ArrivedValue>& into);
  void read_totals(std::vector<ArrivedValue>& into);
  [[nodiscard]] bool read_total(uint32_t slot, std::vector<ArrivedValue>& into);

  cuda::Device device_ = 0;
  cuda::Function kernel_ = nullptr;
  PinnedMemory log_memory_;
  std::atomic<uint64_t> launched_{0};
  std::atomic<uint64_t> arrived_{0};

  std::mutex mutex_;  // guards what follows
  std::vector<PinnedMemory> pages_;
  std::vector<Slot> slots_;  // by id
  std::vector<ValueTarget> targets_;
  std::unordered_map<ValueTarget, uint32_t, TargetHash> slot_of_target_;

  // Consumer.
  uint64_t next_ = 0;                          // entry of the log
  uint64_t overflowed_ = 0;                    // as of the last look at the totals
  std::unordered_map<uint32_t, Taken> taken_;  // of totals, by slot
};

}  // namespace bragg
