#include "backends/cuda/exact/instruction_counter.h"

#include <algorithm>

namespace bragg {

bool InstructionCounter::counts(std::string_view metric) { return metric.starts_with("smsp__sass_"); }

CuptiFailure InstructionCounter::choose(const std::vector<std::string>& metrics, std::vector<std::string>& left_out) {
  if (const CuptiFailure failure = host_.look(device_)) return failure;
  for (const std::string& metric : metrics) {
    const std::string name = metric.substr(0, metric.find('.'));  // the range profiler's names end on .sum
    cupti::SassMetricParams params{sizeof params, nullptr, host_.chip().c_str(), name.c_str(), 0, nullptr, nullptr};
    if (library_.properties(&params) != cupti::Result::Success) {
      left_out.push_back(metric);
      continue;
    }
    names_.push_back(name);
    configs_.push_back({params.metric, cupti::kOfWholeGpu});
    metrics_.push_back(FrameTable::instance().intern_string(name));
  }
  return {};
}

CuptiFailure InstructionCounter::begin() {
  if (!is_configured_) {
    cupti::SassConfigParams params{cupti::kSassConfigBytes, nullptr, configs_.size(), configs_.data(), device_};
    TRY_CUPTI(library_, configure, params);
    is_configured_ = true;
  }
  no_records_.emplace();
  cupti::SassEnableParams params{cupti::kSassEnableBytes, nullptr, context_, 1};
  TRY_CUPTI(library_, enable, params);
  is_enabled_ = true;
  return {};
}

CuptiFailure InstructionCounter::end(std::vector<PcSample>& counts) {
  const CuptiFailure failure = flush(counts);
  disable();
  return failure;
}

CuptiFailure InstructionCounter::flush(std::vector<PcSample>& counts) {
  cupti::SassDataParams data{sizeof data, nullptr, context_, 0, 0};
  TRY_CUPTI(library_, data_properties, data);
  if (data.records == 0 || data.values == 0) return {};
  std::vector<cupti::SassValue> values(data.records * data.values);
  std::vector<cupti::SassRecord> records(data.records);
  for (size_t i = 0; i < records.size(); ++i)
    records[i] = {cupti::kSassFlushBytes, nullptr, 0, 0, nullptr, 0, &values[i * data.values]};
  cupti::SassFlushParams params{cupti::kSassFlushBytes, nullptr, context_, data.records, data.values, records.data()};
  TRY_CUPTI(library_, flush, params);
  for (const cupti::SassRecord& record : records) {
    if (record.function == nullptr) continue;
    const StringId function = FrameTable::instance().intern_string(record.function);
    for (size_t i = 0; i < data.values; ++i) {
      const auto config = std::ranges::find(configs_, record.values[i].metric, &cupti::SassMetricConfig::metric);
      if (config == configs_.end() || record.values[i].value == 0) continue;
      const StringId metric = metrics_[static_cast<size_t>(config - configs_.begin())];
      counts.push_back(
          {record.cubin_crc, function, metric, record.pc_offset, CorrelationId::None, record.values[i].value});
    }
  }
  return {};
}

void InstructionCounter::disable() {
  if (is_enabled_) {
    cupti::SassDisableParams params{sizeof params, nullptr, context_, 0};
    (void)library_.disable(&params);
    is_enabled_ = false;
  }
  no_records_.reset();
}

void InstructionCounter::close() {
  disable();
  if (!is_configured_) return;
  cupti::SassUnsetParams params{cupti::kSassUnsetBytes, nullptr, device_};
  (void)library_.unset(&params);
  is_configured_ = false;
}

}  // namespace bragg
