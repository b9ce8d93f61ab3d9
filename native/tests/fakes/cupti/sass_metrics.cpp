#include "cupti/sass_metrics.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cupti/tool.h"

namespace bragg::fake {
namespace {

using cupti::Result;

constexpr std::string_view kNames[] = {"smsp__sass_inst_executed", "smsp__sass_thread_inst_executed",
                                       "smsp__sass_thread_inst_executed_pred_on", "smsp__sass_sectors_mem_global"};
constexpr uint32_t kInstructionBytes = 16;
constexpr uint64_t kWarpThreads = 32;
constexpr uint32_t kLoads = 4;  // each fourth instruction, of four sectors

uint64_t count_of(uint64_t metric, uint32_t instruction, uint64_t blocks) {
  const uint64_t executed = blocks * (instruction + 1);
  switch (metric) {
    case 1:
      return executed;
    case 2:
      return executed * kWarpThreads;
    case 3:
      return executed * (instruction % 2 == 0 ? kWarpThreads : kWarpThreads / 2);
    default:
      return instruction % kLoads == 0 ? executed * kLoads : 0;
  }
}

}  // namespace

SassMetrics& sass_metrics() {
  static SassMetrics& self = *new SassMetrics;  // kernels run until the process is gone
  return self;
}

SassMetrics::Counts* SassMetrics::of(cuda::Context context) {
  const auto found = enabled_.find(driver()->context_id(context));
  return found != enabled_.end() ? &found->second.second : nullptr;
}

// It allocates and waits, which no capture survives.
void SassMetrics::demand_no_capture(const char* call) const {
  if (captures_.load() == 0) return;
  std::fprintf(stderr, "fake CUPTI: %s while a stream is captured\n", call);
  std::abort();
}

Result SassMetrics::properties(cupti::SassMetricParams& params) {
  if (params.struct_size_bytes != sizeof params || std::string_view(params.chip) != "GH100")
    return Result::InvalidParameter;
  const auto found = std::ranges::find(kNames, std::string_view(params.name));
  if (found == std::end(kNames)) return Result::InvalidMetricName;
  params.metric = static_cast<uint64_t>(found - std::begin(kNames)) + 1;
  return Result::Success;
}

Result SassMetrics::configure(const cupti::SassConfigParams& params) {
  const std::lock_guard lock(mutex_);
  if (params.struct_size_bytes != cupti::kSassConfigBytes || params.count == 0) return Result::InvalidParameter;
  if (configured_.contains(params.device)) return Result::InvalidOperation;
  for (size_t i = 0; i < params.count; ++i) {
    if (params.configs[i].granularity != cupti::kOfWholeGpu) return Result::NotSupported;
    configured_[params.device].push_back(params.configs[i].metric);
  }
  return Result::Success;
}

Result SassMetrics::unset(uint32_t device) {
  const std::lock_guard lock(mutex_);
  for (const auto& [_, enabled] : enabled_)
    if (enabled.first == device) return Result::InvalidOperation;
  if (configured_.erase(device) == 0) return Result::InvalidOperation;
  has_unset_ = true;
  return Result::Success;
}

Result SassMetrics::enable(const cupti::SassEnableParams& params) {
  const std::lock_guard lock(mutex_);
  demand_no_capture("cuptiSassMetricsEnable");
  if (params.struct_size_bytes != cupti::kSassEnableBytes) return Result::InvalidParameter;
  const uint32_t device = driver()->context_device(params.context);
  if (!configured_.contains(device) || has_unset_) return Result::InvalidOperation;
  const bool is_new = enabled_.try_emplace(driver()->context_id(params.context), device, Counts{}).second;
  return is_new ? Result::Success : Result::InvalidOperation;
}

Result SassMetrics::disable(cupti::SassDisableParams& params) {
  const std::lock_guard lock(mutex_);
  Counts* counts = of(params.context);
  if (counts == nullptr) return Result::InvalidOperation;
  params.dropped_records = counts->size();
  enabled_.erase(driver()->context_id(params.context));
  return Result::Success;
}

Result SassMetrics::data_properties(cupti::SassDataParams& params) {
  driver()->jump_to_end_of_work();  // it waits for the context
  const std::lock_guard lock(mutex_);
  demand_no_capture("cuptiSassMetricsGetDataProperties");
  const Counts* counts = of(params.context);
  if (counts == nullptr) return Result::InvalidOperation;
  params.records = counts->size();
  params.values = configured_[driver()->context_device(params.context)].size();
  return Result::Success;
}

Result SassMetrics::flush(cupti::SassFlushParams& params) {
  const std::lock_guard lock(mutex_);
  Counts* counts = of(params.context);
  if (counts == nullptr) return Result::InvalidOperation;
  const std::vector<uint64_t>& metrics = configured_[driver()->context_device(params.context)];
  if (params.struct_size_bytes != cupti::kSassFlushBytes || params.records != counts->size() ||
      params.values != metrics.size())
    return Result::InvalidParameter;
  cupti::SassRecord* record = params.data;
  for (const auto& [place, values] : *counts) {
    if (record->struct_size_bytes != cupti::kSassFlushBytes) return Result::InvalidParameter;
    record->cubin_crc = static_cast<uint32_t>(place.crc);
    record->function = counted_.find({place.crc, place.function, 0})->function.c_str();  // CUPTI keeps it
    record->pc_offset = place.pc_offset;
    for (size_t i = 0; i < metrics.size(); ++i) record->values[i] = {metrics[i], values[i]};
    ++record;
  }
  counts->clear();
  return Result::Success;
}

void SassMetrics::executed(const Execution& execution) {
  const std::lock_guard lock(mutex_);
  const auto found = enabled_.find(execution.place.context);
  if (found == enabled_.end()) return;
  auto& [device, counts] = found->second;
  const std::vector<uint64_t>& metrics = configured_[device];
  const uint32_t* grid = execution.operation.shape.grid;
  const bool has_record = state().is_enabled(cupti::Kind::ConcurrentKernel);
  const bool is_first = counted_.insert({execution.operation.cubin_crc, execution.operation.name, 0}).second;
  if (!is_first && !wanted_records_) return;
  const uint64_t blocks = has_record ? 0 : uint64_t{grid[0]} * grid[1] * grid[2];
  for (uint32_t instruction = 0; instruction < kInstructions; ++instruction) {
    auto& values = counts[{execution.operation.cubin_crc, execution.operation.name, instruction * kInstructionBytes}];
    values.resize(metrics.size());
    for (size_t i = 0; i < metrics.size(); ++i) values[i] += count_of(metrics[i], instruction, blocks);
  }
}

bool SassMetrics::admits_records() {
  const std::lock_guard lock(mutex_);
  wanted_records_ = true;
  return enabled_.empty();
}

void SassMetrics::called(const ApiCall& call) {
  if (call.domain != cupti::Domain::DriverApi || call.result != cuda::Result::Success) return;
  const auto which = cupti::graph_call(call.cbid);
  captures_ += which == cupti::GraphCall::BeginCapture ? 1 : which == cupti::GraphCall::EndCapture ? -1 : 0;
}

}  // namespace bragg::fake
