#include "cupti/range_profiler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cupti/tool.h"

namespace bragg::fake {

using cupti::Result;

RangeProfiler& range_profiler() {
  static RangeProfiler& self = *new RangeProfiler;  // kernels run until the process is gone
  return self;
}

RangeProfiler::Session* RangeProfiler::of(void* profiler) {
  const auto found = sessions_.find(profiler);
  return found != sessions_.end() ? &found->second : nullptr;
}

// It waits for the context, which no capture survives.
void RangeProfiler::demand_no_capture(const char* call) const {
  if (captures_.load() == 0) return;
  std::fprintf(stderr, "fake CUPTI: %s while a stream is captured\n", call);
  std::abort();
}

// An image that was used before keeps its values, and one that lacks a pass has none.
void RangeProfiler::demand_pass_of(const PmImage& image, size_t pass) {
  if (image.mark == PmImage::kMark && image.passes == pass) return;
  std::fprintf(stderr, "fake CUPTI: pass %zu of an image that has %zu\n", pass, static_cast<size_t>(image.passes));
  std::abort();
}

Result RangeProfiler::enable(cupti::RangeEnableParams& params) {
  const std::lock_guard lock(mutex_);
  const uint32_t context = driver()->context_id(params.context);
  for (const auto& [_, session] : sessions_)
    if (session.context == context) return Result::InvalidOperation;
  params.profiler = std::malloc(1);
  sessions_[params.profiler].context = context;
  return Result::Success;
}

Result RangeProfiler::configure(const cupti::RangeConfigParams& params) {
  const std::lock_guard lock(mutex_);
  Session* session = of(params.profiler);
  if (session == nullptr || session->is_running) return Result::InvalidOperation;
  if (params.range != cupti::RangeMode::Auto || params.nesting_levels != 1 || params.least_nesting_level != 1)
    return Result::InvalidParameter;
  if (session->image != nullptr) return Result::InvalidOperation;  // a session is configured once
  session->config.assign(params.config, params.config + params.config_bytes);
  session->image = params.image;
  session->max_ranges = params.max_ranges;
  session->pass = params.pass;
  if (params.pass >= session->config[0] || params.target_nesting_level != 1) return Result::InvalidParameter;
  return Result::Success;
}

Result RangeProfiler::data_size(cupti::RangeDataSizeParams& params) {
  const std::lock_guard lock(mutex_);
  if (of(params.profiler) == nullptr || params.max_tree_nodes < params.max_ranges) return Result::InvalidParameter;
  params.size_bytes = sizeof(PmImage) + params.max_ranges * sizeof(PmImage::Sample);
  return Result::Success;
}

Result RangeProfiler::initialize_image(const cupti::RangeImageParams& params) {
  const std::lock_guard lock(mutex_);
  if (of(params.profiler) == nullptr) return Result::InvalidParameter;
  *reinterpret_cast<PmImage*>(params.image) = {PmImage::kMark,
                                               (params.size_bytes - sizeof(PmImage)) / sizeof(PmImage::Sample), 0, 0};
  return Result::Success;
}

Result RangeProfiler::start(void* profiler) {
  const std::lock_guard lock(mutex_);
  Session* session = of(profiler);
  if (session == nullptr || session->image == nullptr || session->is_running) return Result::InvalidOperation;
  demand_no_capture("cuptiRangeProfilerStart");
  session->is_running = true;
  session->ranges.clear();
  return Result::Success;
}

Result RangeProfiler::stop(cupti::RangeStopParams& params) {
  const std::lock_guard lock(mutex_);
  Session* session = of(params.profiler);
  if (session == nullptr || !session->is_running) return Result::InvalidOperation;
  demand_no_capture("cuptiRangeProfilerStop");
  session->is_running = false;
  params.pass = session->pass + 1;
  params.all_passes_submitted = params.pass == session->config[0] ? 1 : 0;
  return Result::Success;
}

Result RangeProfiler::decode(cupti::RangeDecodeParams& params) {
  driver()->jump_to_end_of_work();  // it waits for the context
  const std::lock_guard lock(mutex_);
  Session* session = of(params.profiler);
  if (session == nullptr || session->is_running) return Result::InvalidOperation;
  auto& image = *reinterpret_cast<PmImage*>(session->image);
  demand_pass_of(image, session->pass);
  if (session->pass > 0) image.count = 0;  // the ranges of the passes before, counted once more
  image.passes = session->pass + 1;
  for (const PmImage::Sample& range : session->ranges)
    if (image.count < session->max_ranges) image.samples()[image.count++] = range;
  params.dropped_ranges = session->ranges.size() - std::min(session->ranges.size(), session->max_ranges);
  session->ranges.clear();
  return Result::Success;
}

Result RangeProfiler::disable(void* profiler) {
  const std::lock_guard lock(mutex_);
  const Session* session = of(profiler);
  if (session == nullptr) return Result::InvalidOperation;
  if (session->image != nullptr && reinterpret_cast<const PmImage*>(session->image)->mark != PmImage::kMark) {
    std::fputs("fake CUPTI: cuptiRangeProfilerDisable after the image was freed\n", stderr);
    std::abort();
  }
  sessions_.erase(profiler);
  std::free(profiler);
  return Result::Success;
}

bool RangeProfiler::executed(const Execution& execution) {
  const std::lock_guard lock(mutex_);
  bool is_counted = false;
  for (auto& [_, session] : sessions_) {
    if (!session.is_running || session.context != execution.place.context) continue;
    PmQuantities quantities = pm_quantities_per_ns(execution.operation.name);
    for (double& each : quantities) each *= static_cast<double>(execution.span.end_ns - execution.span.start_ns);
    session.ranges.push_back({execution.span.start_ns, execution.span.end_ns, quantities});
    is_counted = true;
  }
  return is_counted;
}

void RangeProfiler::called(const ApiCall& call) {
  if (call.domain != cupti::Domain::DriverApi || call.result != cuda::Result::Success) return;
  const auto which = cupti::graph_call(call.cbid);
  captures_ += which == cupti::GraphCall::BeginCapture ? 1 : which == cupti::GraphCall::EndCapture ? -1 : 0;
}

}  // namespace bragg::fake
