// The instruction sampler of the virtual GPU: one context of each device, continuous or serialized.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "backends/cuda/driver/cupti_pc_sampling.h"
#include "link.h"

namespace bragg::fake {

// A kernel that runs for d ns on b multiprocessors has d * b / 2^period samples, spread over its instructions and two
// reasons. Threads: any.
class PcSampling {
 public:
  static constexpr uint32_t kReasons = 8;  // the second half: of cycles in which nothing was issued
  static constexpr uint32_t kInstructions = 16;

  [[nodiscard]] cupti::Result enable(cuda::Context context);
  [[nodiscard]] cupti::Result disable(cuda::Context context);
  [[nodiscard]] cupti::Result set_running(cuda::Context context, bool on);
  [[nodiscard]] cupti::Result configure(cupti::SamplingConfiguration& configuration);
  [[nodiscard]] cupti::Result get(cuda::Context context, cupti::SamplingData& data);
  void executed(const Execution& execution);
  void context_ends(cuda::Context context);
  // A launch, or a call that makes code, streams or contexts, begins or ends.
  void note_launching(bool on);
  void note_holding(bool on);
  // How often a refused sampler was taken down. Seen on an H100 with CUPTI 13.0: launches that a tool holds in its
  // callback meanwhile use it all the same.
  [[nodiscard]] uint32_t refusals() const { return refusals_.load(); }

 private:
  struct Place {
    uint64_t crc;
    std::string function;
    uint32_t pc_offset;
    uint32_t correlation;
    auto operator<=>(const Place&) const = default;
  };
  struct Sampler {
    cupti::CollectionMode mode = cupti::CollectionMode::Continuous;
    uint32_t period = 11;
    bool has_control = false;
    bool is_running = true;
    bool is_full = false;
    bool is_refused = false;
    size_t buffer_bytes = 512u << 20;
    cupti::SamplingData* left_over = nullptr;
    uint64_t sampled = 0;  // since they were taken
    uint64_t dropped = 0;
    std::map<Place, std::vector<uint32_t>> counts;  // by reason
    [[nodiscard]] uint64_t capacity() const;
  };

  [[nodiscard]] Sampler* of(cuda::Context context);
  static void give(Sampler& sampler, cupti::SamplingData& data);

  static void hang_if_launching(const char* call);
  static void hang_if_holding(const char* call);

  std::atomic<uint32_t> refusals_{0};
  std::mutex mutex_;
  std::map<cuda::Context, Sampler> samplers_;
};

[[nodiscard]] PcSampling& pc_sampling();

}  // namespace bragg::fake
