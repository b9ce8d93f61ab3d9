#include "backends/cuda/counters/pm_sampler.h"

#include <algorithm>
#include <iterator>

namespace bragg {
namespace {

using cupti::Result;

// 4 to 10 KB a sample: 12,000 samples, more than a second at 100 us.
constexpr size_t kHardwareBufferBytes = 128u << 20;

}  // namespace

// The first function that does not succeed ends it.
#define TRY(function, params)                                                                         \
  if (const Result result = library_.function(&(params)); result != Result::Success) return Failure { \
      #function, result                                                                               \
    }

PmSampler::Failure PmSampler::look() {
  cupti::ProfilerInitializeParams initialize{sizeof initialize, nullptr};
  TRY(initialize_profiler, initialize);
  cupti::ChipNameParams chip{sizeof chip, nullptr, device_, nullptr};
  TRY(chip_name, chip);
  chip_ = chip.chip != nullptr ? chip.chip : "";
  cupti::CounterAvailabilityParams asked{sizeof asked, nullptr, device_, 0, nullptr};
  TRY(availability, asked);
  availability_.resize(asked.image_size_bytes);
  asked.image = availability_.data();
  TRY(availability, asked);
  return {};
}

PmSampler::Failure PmSampler::choose(const std::vector<std::string>& metrics, size_t& passes) {
  metrics_ = metrics;
  names_.clear();
  for (const std::string& name : metrics_) names_.push_back(name.c_str());
  if (const Failure failure = begin_host()) return failure;
  const Failure failure = build_config(passes);
  if (failure) end_host();
  return failure;
}

PmSampler::Failure PmSampler::begin_host() {
  end_host();
  cupti::HostInitializeParams host{sizeof host,          nullptr, cupti::ProfilerType::PmSampling, 0, chip_.c_str(),
                                   availability_.data(), nullptr};
  TRY(host_initialize, host);
  host_ = host.host;
  return {};
}

std::vector<std::string> PmSampler::known_metrics() {
  std::vector<std::string> found;
  if (library_.base_metrics == nullptr || begin_host()) return found;
  constexpr const char* kSuffixes[] = {".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"};  // by metric type
  for (uint32_t type = 0; type < std::size(kSuffixes); ++type) {
    cupti::HostBaseMetricsParams listed{sizeof listed, nullptr, host_, type, 0, nullptr, 0};
    if (library_.base_metrics(&listed) != Result::Success) continue;
    for (size_t i = 0; i < listed.count; ++i) found.push_back(std::string(listed.names[i]) + kSuffixes[type]);
  }
  return found;
}

PmSampler::Failure PmSampler::build_config(size_t& passes) {
  cupti::HostAddMetricsParams add{sizeof add, nullptr, host_, names_.data(), names_.size()};
  TRY(add_metrics, add);
  cupti::HostImageSizeParams size{sizeof size, nullptr, host_, 0};
  TRY(config_size, size);
  config_.assign(size.size_bytes, 0);
  cupti::HostImageParams image{sizeof image, nullptr, host_, config_.size(), config_.data()};
  TRY(config_image, image);
  cupti::HostPassesParams counted{sizeof counted, nullptr, config_.size(), config_.data(), 0};
  TRY(passes, counted);
  passes = counted.passes;
  return {};
}

PmSampler::Failure PmSampler::open(uint64_t interval_ns, uint32_t max_samples) {
  cupti::PmEnableParams enable{sizeof enable, nullptr, device_, nullptr};
  TRY(enable, enable);
  sampler_ = enable.sampler;
  const Failure failure = start(interval_ns, max_samples);
  if (failure) close();
  return failure;
}

PmSampler::Failure PmSampler::start(uint64_t interval_ns, uint32_t max_samples) {
  cupti::PmConfigParams config{cupti::kPmConfigBytes,
                               nullptr,
                               sampler_,
                               config_.size(),
                               config_.data(),
                               kHardwareBufferBytes,
                               interval_ns,
                               counts_cycles() ? cupti::TriggerMode::SysClock : cupti::TriggerMode::GpuTime,
                               0};
  TRY(configure, config);
  // Asked once for each sampler: another number of samples breaks the image.
  cupti::PmDataSizeParams size{sizeof size, nullptr, sampler_, names_.data(), names_.size(), max_samples, 0, 0};
  TRY(data_size, size);
  image_.assign(size.size_bytes, 0);
  if (const Failure failure = reset_image()) return failure;
  cupti::PmSamplerParams params{sizeof params, nullptr, sampler_};
  TRY(start, params);
  return {};
}

PmSampler::Failure PmSampler::reset_image() {
  cupti::PmImageParams image{sizeof image, nullptr, sampler_, image_.size(), image_.data()};
  TRY(initialize_image, image);
  return {};
}

PmSampler::Failure PmSampler::stop() {
  cupti::PmSamplerParams params{sizeof params, nullptr, sampler_};
  TRY(stop, params);
  return {};
}

PmSampler::Decoded PmSampler::decode(const std::function<void(const PmSample&)>& take) {
  Decoded decoded;
  cupti::PmDecodeParams params{cupti::kPmDecodeBytes, nullptr, sampler_, image_.data(), image_.size(), {}, 0};
  decoded.result = library_.decode(&params);
  decoded.is_overflown = params.overflow != 0 || decoded.result == Result::OutOfMemory;
  decoded.is_image_full = params.stop == cupti::DecodeStop::ImageFull;
  decoded.is_end = params.stop == cupti::DecodeStop::EndOfRecords;
  if (decoded.result != Result::Success) return decoded;
  cupti::PmDataInfoParams info{sizeof info, nullptr, image_.data(), image_.size(), 0, 0, 0};
  if ((decoded.result = library_.data_info(&info)) != Result::Success) return decoded;
  std::vector<double> values(names_.size());
  for (size_t i = 0; i < info.completed; ++i) {
    cupti::PmSampleInfoParams sample{sizeof sample, nullptr, sampler_, image_.data(), image_.size(), i, 0, 0};
    if ((decoded.result = library_.sample_info(&sample)) != Result::Success) return decoded;
    if (sample.end_ns <= sample.start_ns) {
      take({sample.start_ns, sample.end_ns, {}});
      continue;
    }
    cupti::HostEvaluateParams asked{sizeof asked,  nullptr,       host_,        image_.data(), image_.size(), i,
                                    names_.data(), names_.size(), values.data()};
    if ((decoded.result = library_.evaluate(&asked)) != Result::Success) return decoded;
    take({sample.start_ns, sample.end_ns, values});
  }
  if (info.completed > 0) decoded.result = reset_image().result;
  return decoded;
}

void PmSampler::close() {
  if (sampler_ != nullptr) {
    cupti::PmSamplerParams params{sizeof params, nullptr, sampler_};
    (void)library_.disable(&params);
    sampler_ = nullptr;
  }
  image_.clear();
}

void PmSampler::end_host() {
  if (host_ == nullptr) return;
  cupti::HostParams params{sizeof params, nullptr, host_};
  (void)library_.host_deinitialize(&params);
  host_ = nullptr;
}

#undef TRY

}  // namespace bragg
