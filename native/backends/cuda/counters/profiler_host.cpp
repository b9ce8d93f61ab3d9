#include "backends/cuda/counters/profiler_host.h"

#include <iterator>

namespace bragg {

using cupti::Result;

CuptiFailure ProfilerHost::look(uint32_t device) {
  cupti::ProfilerInitializeParams initialize{sizeof initialize, nullptr};
  TRY_CUPTI(library_, initialize_profiler, initialize);
  cupti::ChipNameParams chip{sizeof chip, nullptr, device, nullptr};
  TRY_CUPTI(library_, chip_name, chip);
  chip_ = chip.chip != nullptr ? chip.chip : "";
  return {};
}

CuptiFailure ProfilerHost::choose(const std::vector<uint8_t>& availability, const std::vector<std::string>& metrics,
                                  size_t& passes) {
  end();  // before its names are others
  metrics_ = metrics;
  names_.clear();
  for (const std::string& name : metrics_) names_.push_back(name.c_str());
  if (const CuptiFailure failure = begin(availability)) return failure;
  const CuptiFailure failure = build_config(passes);
  if (failure) end();
  return failure;
}

CuptiFailure ProfilerHost::begin(const std::vector<uint8_t>& availability) {
  end();
  cupti::HostInitializeParams host{sizeof host, nullptr, type_, 0, chip_.c_str(), availability.data(), nullptr};
  TRY_CUPTI(library_, host_initialize, host);
  host_ = host.host;
  return {};
}

CuptiFailure ProfilerHost::build_config(size_t& passes) {
  cupti::HostAddMetricsParams add{sizeof add, nullptr, host_, names_.data(), names_.size()};
  TRY_CUPTI(library_, add_metrics, add);
  cupti::HostImageSizeParams size{sizeof size, nullptr, host_, 0};
  TRY_CUPTI(library_, config_size, size);
  config_.assign(size.size_bytes, 0);
  cupti::HostImageParams image{sizeof image, nullptr, host_, config_.size(), config_.data()};
  TRY_CUPTI(library_, config_image, image);
  cupti::HostPassesParams counted{sizeof counted, nullptr, config_.size(), config_.data(), 0};
  TRY_CUPTI(library_, passes, counted);
  passes = counted.passes;
  return {};
}

std::vector<std::string> ProfilerHost::known_metrics(const std::vector<uint8_t>& availability) {
  std::vector<std::string> found;
  if (library_.base_metrics == nullptr || begin(availability)) return found;
  constexpr const char* kSuffixes[] = {".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"};  // by metric type
  for (uint32_t type = 0; type < std::size(kSuffixes); ++type) {
    cupti::HostBaseMetricsParams listed{sizeof listed, nullptr, host_, type, 0, nullptr, 0};
    if (library_.base_metrics(&listed) != Result::Success) continue;
    for (size_t i = 0; i < listed.count; ++i) found.push_back(std::string(listed.names[i]) + kSuffixes[type]);
  }
  return found;
}

CuptiFailure ProfilerHost::evaluate(const std::vector<uint8_t>& image, size_t row, std::vector<double>& values) {
  values.resize(names_.size());
  cupti::HostEvaluateParams asked{sizeof asked, nullptr,       host_,         image.data(), image.size(),
                                  row,          names_.data(), names_.size(), values.data()};
  TRY_CUPTI(library_, evaluate, asked);
  return {};
}

void ProfilerHost::end() {
  if (host_ == nullptr) return;
  cupti::HostParams params{sizeof params, nullptr, host_};
  (void)library_.host_deinitialize(&params);
  host_ = nullptr;
}

}  // namespace bragg
