// The instruction sampler: what it may be asked when, and what its samples say.
#include <memory>
#include <vector>

#include "backends/cuda/driver/cupti_pc_sampling.h"
#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {
namespace {

constexpr auto kOk = cupti::Result::Success;
constexpr auto kInvalid = cupti::Result::InvalidOperation;
constexpr uint32_t kPeriod = 10;
constexpr uint64_t kKernelNs = 16u << kPeriod;  // 64 samples on four multiprocessors

class Sampler {
 public:
  Sampler(const Profiler& profiler, cuda::Context context) : profiler_(profiler), context_(context) {}

  template <class Function>
  [[nodiscard]] cupti::Result call(const char* symbol) const {
    cupti::SamplingParams params{sizeof params, nullptr, context_};
    return profiler_.call<Function>(symbol, &params);
  }
  [[nodiscard]] cupti::Result enable() const { return call<cupti::CuptiPCSamplingEnable>("cuptiPCSamplingEnable"); }
  [[nodiscard]] cupti::Result disable() const { return call<cupti::CuptiPCSamplingDisable>("cuptiPCSamplingDisable"); }
  [[nodiscard]] cupti::Result start() const { return call<cupti::CuptiPCSamplingStart>("cuptiPCSamplingStart"); }
  [[nodiscard]] cupti::Result stop() const { return call<cupti::CuptiPCSamplingStop>("cuptiPCSamplingStop"); }

  [[nodiscard]] cupti::Result configure(cupti::CollectionMode mode, bool has_control, uint64_t period = kPeriod) const {
    std::vector<cupti::SamplingSetting> settings = {
        {cupti::SamplingAttribute::Mode, kOk, static_cast<uint64_t>(mode), {}},
        {cupti::SamplingAttribute::Period, kOk, period, {}},
        {cupti::SamplingAttribute::StartStopControl, kOk, has_control, {}},
    };
    cupti::SamplingConfiguration params{sizeof params, nullptr, context_, settings.size(), settings.data()};
    return profiler_.call<cupti::CuptiPCSamplingSetConfigurationAttribute>("cuptiPCSamplingSetConfigurationAttribute",
                                                                           &params);
  }
  // With room for `capacity` instructions.
  cupti::Result get(size_t capacity = 64) {
    reasons_.assign(capacity, std::vector<cupti::StallSamples>(kReasons));
    pcs_.assign(capacity, {});
    for (size_t i = 0; i < capacity; ++i) {
      pcs_[i].struct_size_bytes = sizeof(cupti::PcSamples);
      pcs_[i].reason_count = kReasons;
      pcs_[i].reasons = reasons_[i].data();
    }
    data = {};
    data.struct_size_bytes = sizeof data;
    data.capacity_pcs = capacity;
    data.pcs = pcs_.data();
    cupti::SamplingDataParams params{sizeof params, nullptr, context_, &data};
    return profiler_.call<cupti::CuptiPCSamplingGetData>("cuptiPCSamplingGetData", &params);
  }
  [[nodiscard]] uint32_t correlation(size_t pc) const { return pcs_[pc].correlation; }

  cupti::SamplingData data{};

 private:
  static constexpr size_t kReasons = 16;
  const Profiler& profiler_;
  cuda::Context context_;
  std::vector<std::vector<cupti::StallSamples>> reasons_;
  std::vector<cupti::PcSamples> pcs_;
};

// A device, a tool that has callbacks, and a sampler of the device's context.
struct Sampled {
  Program program;
  Profiler profiler;
  cuda::Context context = program.use_device(0);
  Sampler sampler{profiler, context};
  cuda::Function kernel = program.function("sampled", kKernelNs);

  Sampled() { profiler.start({cupti::Kind::ConcurrentKernel}); }
};

}  // namespace

SCENARIO(one_context_of_each_device_is_sampled) {
  Sampled sampled;
  cuda::Context second = nullptr;
  sampled.program.must("cuCtxCreate_v2", &second, 0u, 0);
  const Sampler other(sampled.profiler, second);
  CHECK_EQ(sampled.sampler.disable(), kInvalid);
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.enable(), kInvalid);
  CHECK_EQ(other.enable(), kInvalid);
  CHECK_EQ(Sampler(sampled.profiler, sampled.program.use_device(1)).enable(), kOk);
  CHECK_EQ(sampled.sampler.disable(), kOk);
  CHECK_EQ(other.enable(), kOk);
  CHECK_EQ(Sampler(sampled.profiler, nullptr).enable(), cupti::Result::InvalidParameter);
}

SCENARIO(continuous_samples_do_not_tell_their_launch, {"VARY_NS", "0"}) {
  Sampled sampled;
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false), kOk);
  for (int i = 0; i < 3; ++i) sampled.program.launch(sampled.kernel);
  CHECK_EQ(sampled.sampler.get(), kOk);
  CHECK_EQ(sampled.sampler.data.total_samples, 3 * 64);
  CHECK_EQ(sampled.sampler.data.pc_count, 16);
  for (size_t pc = 0; pc < sampled.sampler.data.pc_count; ++pc) CHECK_EQ(sampled.sampler.correlation(pc), 0);
  CHECK_EQ(sampled.sampler.get(), kOk);
  CHECK_EQ(sampled.sampler.data.total_samples, 0);  // they were taken
}

SCENARIO(serialized_samples_tell_their_launch_if_the_last_ones_were_taken, {"VARY_NS", "0"}) {
  Sampled sampled;
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Serialized, false), kOk);
  for (int i = 0; i < 2; ++i) {
    sampled.program.launch(sampled.kernel);
    CHECK_EQ(sampled.sampler.get(), kOk);
    CHECK_EQ(sampled.sampler.data.pc_count, 16);
    for (size_t pc = 0; pc < sampled.sampler.data.pc_count; ++pc) CHECK(sampled.sampler.correlation(pc) != 0);
  }
  for (int i = 0; i < 2; ++i) sampled.program.launch(sampled.kernel);
  CHECK_EQ(sampled.sampler.get(), kOk);
  CHECK_EQ(sampled.sampler.data.pc_count, 2 * 16);
  size_t without_launch = 0;
  for (size_t pc = 0; pc < sampled.sampler.data.pc_count; ++pc) without_launch += sampled.sampler.correlation(pc) == 0;
  CHECK_EQ(without_launch, 16);
}

SCENARIO(nothing_is_sampled_outside_of_windows, {"VARY_NS", "0"}) {
  Sampled sampled;
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.start(), kInvalid);  // without control
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, true), kOk);
  uint64_t seen = 0;
  for (int window = 0; window < 3; ++window) {
    sampled.program.launch(sampled.kernel);
    CHECK_EQ(sampled.sampler.start(), kOk);
    CHECK_EQ(sampled.sampler.start(), kInvalid);
    sampled.program.launch(sampled.kernel);
    CHECK_EQ(sampled.sampler.stop(), kOk);
    CHECK_EQ(sampled.sampler.get(), kOk);
    seen += sampled.sampler.data.total_samples;
  }
  CHECK_EQ(seen, 3 * 64);
  CHECK_EQ(sampled.sampler.stop(), kInvalid);
}

SCENARIO(full_buffer_ends_sampling_until_it_is_enabled_anew, {"VARY_NS", "0"}, {"SAMPLE_BUFFER", "100"}) {
  Sampled sampled;
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false), kOk);
  for (int i = 0; i < 2; ++i) sampled.program.launch(sampled.kernel);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(sampled.sampler.get(), cupti::Result::OutOfMemory);
    CHECK(sampled.sampler.data.hardware_buffer_full != 0);
  }
  CHECK_EQ(sampled.sampler.disable(), kOk);
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false), kOk);
  sampled.program.launch(sampled.kernel);
  CHECK_EQ(sampled.sampler.get(), kOk);
  CHECK_EQ(sampled.sampler.data.total_samples, 64);
}

SCENARIO(samples_wait_where_there_is_no_room, {"VARY_NS", "0"}) {
  Sampled sampled;
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false), kOk);
  sampled.program.launch(sampled.kernel);
  CHECK_EQ(sampled.sampler.get(10), kOk);
  CHECK_EQ(sampled.sampler.data.pc_count, 10);
  CHECK_EQ(sampled.sampler.data.remaining_pcs, 6);
  CHECK_EQ(sampled.sampler.get(10), kOk);
  CHECK_EQ(sampled.sampler.data.pc_count, 6);
}

SCENARIO(period_has_its_range) {
  Sampled sampled;
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false), kInvalid);  // it is not enabled
  CHECK_EQ(sampled.sampler.enable(), kOk);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false, 4), kInvalid);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false, 32), kInvalid);
  CHECK_EQ(sampled.sampler.configure(cupti::CollectionMode::Continuous, false, 31), kOk);
}

}  // namespace bragg::fake::selftest
