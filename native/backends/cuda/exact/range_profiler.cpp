#include "backends/cuda/exact/range_profiler.h"

namespace bragg {

CuptiFailure RangeProfiler::look() {
  if (const CuptiFailure failure = hosts_.front()->look(device_)) return failure;
  cupti::RangeAvailabilityParams asked{sizeof asked, nullptr, context_, 0, nullptr};
  TRY_CUPTI(library_, availability, asked);
  availability_.resize(asked.image_size_bytes);
  asked.image = availability_.data();
  TRY_CUPTI(library_, availability, asked);
  return {};
}

CuptiFailure RangeProfiler::add_set() {
  hosts_.push_back(std::make_unique<ProfilerHost>(library_.host, cupti::ProfilerType::Range));
  return hosts_.back()->look(device_);
}

// A profiler is configured once: with a second configuration, a session of samples crashes while it is decoded.
CuptiFailure RangeProfiler::begin(size_t set, RangePasses* passes) {
  if (set != set_ || passes != nullptr || passes_ != nullptr) close();
  set_ = set;
  passes_ = passes;
  if (profiler_ == nullptr) {
    if (const CuptiFailure failure = open()) return failure;
  } else if (const CuptiFailure failure = reset_image()) {
    return failure;
  }
  cupti::RangeProfilerParams params{sizeof params, nullptr, profiler_};
  TRY_CUPTI(library_, start, params);
  return {};
}

CuptiFailure RangeProfiler::open() {
  cupti::RangeEnableParams enable{sizeof enable, nullptr, context_, nullptr};
  TRY_CUPTI(library_, enable, enable);
  profiler_ = enable.profiler;
  if (passes_ == nullptr || passes_->next == 0)
    if (const CuptiFailure failure = new_image()) return failure;
  return configure();
}

CuptiFailure RangeProfiler::new_image() {
  std::vector<const char*>& names = hosts_[set_]->names();
  cupti::RangeDataSizeParams size{sizeof size, nullptr, profiler_, names.data(), names.size(), 1, 1, 0, 0};
  TRY_CUPTI(library_, data_size, size);
  image().assign(size.size_bytes, 0);
  return reset_image();
}

CuptiFailure RangeProfiler::configure() {
  const std::vector<uint8_t>& configuration = hosts_[set_]->config();
  cupti::RangeConfigParams config{cupti::kRangeConfigBytes,
                                  nullptr,
                                  profiler_,
                                  configuration.size(),
                                  configuration.data(),
                                  image().size(),
                                  image().data(),
                                  cupti::RangeMode::Auto,
                                  cupti::ReplayMode::Application,
                                  1,
                                  1,
                                  1,
                                  passes_ != nullptr ? passes_->next : 0,
                                  1};
  TRY_CUPTI(library_, configure, config);
  return {};
}

CuptiFailure RangeProfiler::reset_image() {
  cupti::RangeImageParams params{sizeof params, nullptr, profiler_, image().size(), image().data()};
  TRY_CUPTI(library_, initialize_image, params);
  return {};
}

CuptiFailure RangeProfiler::end(std::vector<double>& values, Counted& counted) {
  values.clear();
  counted = Counted::Nothing;
  cupti::RangeStopParams stopped{cupti::kRangeStopBytes, nullptr, profiler_, 0, 0, 0};
  TRY_CUPTI(library_, stop, stopped);
  const CuptiFailure failure = decode(stopped, values, counted);
  if (passes_ == nullptr) return failure;
  close();  // CUPTI has a pointer to the image
  if (!failure && counted == Counted::Pass)
    ++passes_->next;
  else
    *passes_ = {};  // done, or spoilt
  return failure;
}

CuptiFailure RangeProfiler::decode(const cupti::RangeStopParams& stopped, std::vector<double>& values,
                                   Counted& counted) {
  cupti::RangeDecodeParams decoded{sizeof decoded, nullptr, profiler_, 0};
  TRY_CUPTI(library_, decode, decoded);
  cupti::RangeDataInfoParams info{sizeof info, nullptr, image().data(), image().size(), 0};
  TRY_CUPTI(library_, data_info, info);
  if (info.ranges != 1 || decoded.dropped_ranges != 0) return {};
  const bool is_last = passes_ == nullptr || stopped.all_passes_submitted != 0;
  counted = is_last ? Counted::All : Counted::Pass;
  return is_last ? hosts_[set_]->evaluate(image(), 0, values) : CuptiFailure{};
}

void RangeProfiler::close() {
  if (profiler_ == nullptr) return;
  cupti::RangeProfilerParams params{sizeof params, nullptr, profiler_};
  (void)library_.disable(&params);
  profiler_ = nullptr;
}

}  // namespace bragg
