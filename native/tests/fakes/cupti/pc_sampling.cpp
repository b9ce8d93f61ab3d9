#include "cupti/pc_sampling.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "cupti/tool.h"
#include "settings.h"

namespace bragg::fake {
namespace {

constexpr uint64_t kBytesPerSample = 50;  // seen on an H200: 512 MB were full after 10 million samples
constexpr uint64_t kMultiprocessors = 4;
constexpr uint32_t kInstructionBytes = 16;

// As CUPTI's, names stay valid.
const std::string& persistent(const std::string& name) {
  static std::set<std::string>& names = *new std::set<std::string>;
  return *names.insert(name).first;
}

std::atomic<int> launching{0};
std::atomic<int> holding{0};

}  // namespace

void PcSampling::note_launching(bool on) { launching.fetch_add(on ? 1 : -1); }
void PcSampling::note_holding(bool on) { holding.fetch_add(on ? 1 : -1); }

// Seen on an H200 with CUPTI 13.0: these calls and a launch of another thread wait for each other for ever.
void PcSampling::hang_if_launching(const char* call) {
  if (launching.load() == 0) return;
  std::fprintf(stderr, "fake CUPTI: %s while a thread launches, which hangs both\n", call);
  std::abort();
}

// Seen on an H100 with CUPTI 13.0: so do Start and a call that holds the driver's locks.
void PcSampling::hang_if_holding(const char* call) {
  if (holding.load() == 0) return;
  std::fprintf(stderr, "fake CUPTI: %s while a thread loads code, which hangs both\n", call);
  std::abort();
}

PcSampling& pc_sampling() {
  static PcSampling& self = *new PcSampling;  // kernels run until the process is gone
  return self;
}

uint64_t PcSampling::Sampler::capacity() const {
  const int64_t ordered = knob(Knob::SampleBuffer);
  return ordered > 0 ? static_cast<uint64_t>(ordered) : buffer_bytes / kBytesPerSample;
}

PcSampling::Sampler* PcSampling::of(cuda::Context context) {
  const auto found = samplers_.find(context);
  return found != samplers_.end() ? &found->second : nullptr;
}

cupti::Result PcSampling::enable(cuda::Context context) {
  if (context == nullptr) return cupti::Result::InvalidParameter;
  hang_if_holding("cuptiPCSamplingEnable");
  const std::lock_guard lock(mutex_);
  const uint32_t device = driver()->context_device(context);
  for (const auto& [other, sampler] : samplers_)
    if (driver()->context_device(other) == device) return cupti::Result::InvalidOperation;
  samplers_.try_emplace(context);
  return cupti::Result::Success;
}

cupti::Result PcSampling::disable(cuda::Context context) {
  hang_if_launching("cuptiPCSamplingDisable");
  hang_if_holding("cuptiPCSamplingDisable");
  const std::lock_guard lock(mutex_);
  Sampler* sampler = of(context);
  if (sampler == nullptr) return cupti::Result::InvalidOperation;
  if (sampler->is_refused) {
    samplers_.erase(context);
    ++refusals_;
    return cupti::Result::Unknown;
  }
  if (sampler->left_over != nullptr && !sampler->is_full) give(*sampler, *sampler->left_over);
  samplers_.erase(context);
  return cupti::Result::Success;
}

cupti::Result PcSampling::set_running(cuda::Context context, bool on) {
  if (!on) hang_if_launching("cuptiPCSamplingStop");
  hang_if_holding(on ? "cuptiPCSamplingStart" : "cuptiPCSamplingStop");
  const std::lock_guard lock(mutex_);
  Sampler* sampler = of(context);
  if (sampler == nullptr || !sampler->has_control || sampler->is_running == on) return cupti::Result::InvalidOperation;
  if (on && knob(Knob::CountersBusy) != 0) {
    sampler->is_refused = true;
    return cupti::Result::HardwareBusy;
  }
  sampler->is_running = on;
  return cupti::Result::Success;
}

cupti::Result PcSampling::configure(cupti::SamplingConfiguration& configuration) {
  const std::lock_guard lock(mutex_);
  Sampler* sampler = of(configuration.context);
  if (sampler == nullptr) return cupti::Result::InvalidOperation;
  for (size_t i = 0; i < configuration.setting_count; ++i) {
    cupti::SamplingSetting& setting = configuration.settings[i];
    setting.result = cupti::Result::Success;
    switch (setting.attribute) {
      case cupti::SamplingAttribute::Period:
        if (setting.value < cupti::kMinSamplingPeriod || setting.value > cupti::kMaxSamplingPeriod)
          return setting.result = cupti::Result::InvalidOperation;
        sampler->period = static_cast<uint32_t>(setting.value);
        break;
      case cupti::SamplingAttribute::HardwareBufferBytes:
        sampler->buffer_bytes = setting.value;
        break;
      case cupti::SamplingAttribute::Mode:
        sampler->mode = static_cast<cupti::CollectionMode>(setting.value);
        break;
      case cupti::SamplingAttribute::StartStopControl:
        sampler->has_control = setting.value != 0;
        sampler->is_running = !sampler->has_control;
        break;
      case cupti::SamplingAttribute::DataBuffer:
        sampler->left_over = reinterpret_cast<cupti::SamplingData*>(setting.value);
        break;
      case cupti::SamplingAttribute::WorkerSleepMs:
        break;
      default:
        return setting.result = cupti::Result::InvalidParameter;
    }
  }
  return cupti::Result::Success;
}

void PcSampling::executed(const Execution& execution) {
  const std::lock_guard lock(mutex_);
  for (auto& [context, sampler] : samplers_) {
    if (!sampler.is_running || driver()->context_id(context) != execution.place.context) continue;
    const bool is_serialized = sampler.mode == cupti::CollectionMode::Serialized;
    if (is_serialized && execution.origin.graph != 0) continue;  // as documented
    const uint32_t* grid = execution.operation.shape.grid;
    const uint64_t busy = std::min(uint64_t{grid[0]} * grid[1] * grid[2], kMultiprocessors);
    // Seen on an H200: more than half of the samples that are not taken before the next launch do not tell theirs.
    const bool tells_launch = is_serialized && sampler.counts.empty();
    const uint64_t samples = (execution.span.end_ns - execution.span.start_ns) * busy >> sampler.period;
    for (uint64_t i = 0; i < samples; ++i) {
      sampler.is_full |= sampler.sampled >= sampler.capacity();
      if (sampler.is_full) break;
      ++sampler.sampled;
      const auto instruction = static_cast<uint32_t>(i % kInstructions);
      auto& counts = sampler.counts[{execution.operation.cubin_crc, execution.operation.name,
                                     instruction * kInstructionBytes, tells_launch ? execution.correlation : 0}];
      counts.resize(kReasons);
      const uint32_t reason = instruction % (kReasons / 2);
      ++counts[reason];
      if (reason != 0) ++counts[reason + kReasons / 2];  // nothing was issued in that cycle either
    }
  }
}

void PcSampling::give(Sampler& sampler, cupti::SamplingData& data) {
  data.total_samples = sampler.sampled;
  data.dropped_samples = sampler.dropped;
  data.other_samples = 0;
  sampler.sampled = sampler.dropped = 0;
  data.pc_count = 0;
  while (data.pc_count < data.capacity_pcs && !sampler.counts.empty()) {
    const auto entry = sampler.counts.extract(sampler.counts.begin());
    cupti::PcSamples& pc = data.pcs[data.pc_count++];
    pc.cubin_crc = entry.key().crc;
    pc.function_name = const_cast<char*>(persistent(entry.key().function).c_str());
    pc.pc_offset = entry.key().pc_offset;
    pc.correlation = entry.key().correlation;
    size_t given = 0;
    for (uint32_t reason = 0; reason < kReasons && given < pc.reason_count; ++reason)
      if (entry.mapped()[reason] > 0) pc.reasons[given++] = {reason, entry.mapped()[reason]};
    pc.reason_count = given;
  }
  data.remaining_pcs = sampler.counts.size();
}

cupti::Result PcSampling::get(cuda::Context context, cupti::SamplingData& data) {
  const std::lock_guard lock(mutex_);
  Sampler* sampler = of(context);
  if (sampler == nullptr) return cupti::Result::InvalidOperation;
  data.hardware_buffer_full = sampler->is_full;
  if (sampler->is_full) {
    data.pc_count = data.remaining_pcs = 0;
    return cupti::Result::OutOfMemory;
  }
  give(*sampler, data);
  return cupti::Result::Success;
}

void PcSampling::context_ends(cuda::Context context) {
  const std::lock_guard lock(mutex_);
  samplers_.erase(context);
}

}  // namespace bragg::fake
