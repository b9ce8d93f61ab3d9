// What the parts of instruction sampling share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/samples/duty_cycle.h"
#include "backends/cuda/samples/pc_sampling.h"
#include "backends/cuda/samples/sampled_device.h"
#include "context/clock.h"

namespace bragg::pc_sampling {

// Samples that come so long after the last session paused were taken after that: they are dropped.
inline constexpr int64_t kLateNs = 200'000'000;

struct Sampling {
  std::atomic<bool> active{false};
  std::mutex mutex;  // around calls of CUPTI; in a callback taken only outside of the gate
  SamplingOptions options;
  PcSamplingLibrary library;
  bool is_loaded = false;
  std::string reason;  // why nothing is sampled
  std::vector<std::unique_ptr<SampledDevice>> devices;
  uint32_t other_contexts = 0;  // of GPUs that were taken
  std::optional<DutyCycle> cycle;
  int64_t next_drain_ns = 0;
  std::atomic<bool> calls_cupti{false};
  std::mutex dying_mutex;  // held for no call
  std::vector<cuda::Context> dying;
  std::atomic<uint64_t> begun{0};  // GPUs that are sampled, or cannot be: a bit each
  std::atomic<bool> is_serialized{false};
  std::mutex launching_alone;  // held in a serialized launch
  std::mutex arrived_mutex;
  std::vector<PcSample> arrived;
  std::mutex description_mutex;  // held for no call
  std::string description = "{}";
  std::atomic<int64_t> paused_ns{0};  // since when no session records; 0: one does
  [[nodiscard]] bool is_late() const {
    const int64_t since_ns = paused_ns.load();
    return since_ns != 0 && now_ns() > since_ns + kLateNs;
  }
};

[[nodiscard]] Sampling& sampling();

// While it exists a thread may be in calls of CUPTI, for which the end of a context waits (`note_context_end`).
class CuptiCalls {
 public:
  explicit CuptiCalls(Sampling& self) : self_(self) { self_.calls_cupti.store(true); }
  ~CuptiCalls() { self_.calls_cupti.store(false); }
  CuptiCalls(const CuptiCalls&) = delete;
  CuptiCalls& operator=(const CuptiCalls&) = delete;

 private:
  Sampling& self_;
};

[[nodiscard]] constexpr uint64_t bit_of(uint32_t device) { return uint64_t{1} << (device % 64); }

// Visits each device, and keeps the samples that this brings.
template <class Visit>
void bring_from_all(Sampling& self, Visit&& visit) {
  std::vector<PcSample> samples;
  for (const auto& device : self.devices) visit(*device, samples);
  if (samples.empty() || self.is_late()) return;
  const std::lock_guard lock(self.arrived_mutex);
  self.arrived.insert(self.arrived.end(), samples.begin(), samples.end());
}

inline void drain_all(Sampling& self) {
  bring_from_all(self, [](SampledDevice& device, auto& samples) { device.drain(samples); });
}

}  // namespace bragg::pc_sampling
