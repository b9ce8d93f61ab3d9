// The hardware counters of the virtual GPUs, sampled in equal intervals: one session a device.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/driver/cupti_pm_sampling.h"
#include "link.h"

namespace bragg::fake {

// What a kernel does in each ns, by its name: `copy` in it reads and writes 1,000 B, `matmul` reads 100 and writes 50
// and keeps the tensor pipe busy by 90 %; any other reads 10 and writes 5.
enum PmQuantity : size_t { kRead, kWrite, kTensorNs, kActiveNs, kInstructions, kLength };
using PmQuantities = std::array<double, kLength>;
[[nodiscard]] PmQuantities pm_quantities_per_ns(std::string_view name);

// Threads: any, but two that use one session at once end the process, since CUPTI does not say what happens.
class PmSampling {
 public:
  [[nodiscard]] cupti::Result enable(cupti::PmEnableParams& params);
  [[nodiscard]] cupti::Result configure(const cupti::PmConfigParams& params);
  [[nodiscard]] cupti::Result start(void* sampler);
  [[nodiscard]] cupti::Result stop(void* sampler);
  [[nodiscard]] cupti::Result disable(void* sampler);
  [[nodiscard]] cupti::Result data_size(cupti::PmDataSizeParams& params);
  [[nodiscard]] cupti::Result initialize_image(const cupti::PmImageParams& params);
  [[nodiscard]] cupti::Result decode(cupti::PmDecodeParams& params);
  void executed(const Execution& execution);

 private:
  struct Kernel {
    Span span;
    PmQuantities per_ns;
  };
  struct Session {
    uint32_t device = 0;
    const uint8_t* config = nullptr;  // the caller's
    std::vector<uint8_t> config_then;
    uint64_t interval_ns = 0;
    uint64_t capacity = 0;  // samples that the hardware's buffer holds
    uint32_t max_samples = 0;
    bool is_running = false;
    bool is_overflown = false;
    bool has_begun = false;  // the first sample was given
    bool has_lost = false;   // an image was full
    uint64_t next_ns = 0;    // where the next sample begins
    uint64_t end_ns = 0;     // when it was stopped
    std::deque<Kernel> kernels;
  };

  [[nodiscard]] Session* of(void* sampler);
  static void demand_config(const Session& session, const char* call);
  static PmQuantities integral(const Session& session, uint64_t start_ns, uint64_t end_ns);

  std::mutex mutex_;
  std::map<void*, Session> sessions_;
};

[[nodiscard]] PmSampling& pm_sampling();

// An image of samples as the fake has it.
struct PmImage {
  static constexpr uint64_t kMark = 0x504D534D;
  struct Sample {
    uint64_t start_ns, end_ns;
    PmQuantities quantities;
  };
  uint64_t mark;
  uint64_t capacity;
  uint64_t count;
  uint64_t passes;  // of ranges
  [[nodiscard]] Sample* samples() { return reinterpret_cast<Sample*>(this + 1); }
};

}  // namespace bragg::fake
