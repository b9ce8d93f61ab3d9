#include "backends/cuda/samples/pc_sampler.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace bragg {
namespace {

constexpr size_t kPcsPerCall = 4096;        // with 40 reasons 1.5 MB
constexpr size_t kLeftOverPcs = 1024;       // at `disable`, after everything was drained
constexpr uint32_t kMaxCallsPerDrain = 64;  // 260,000 instructions
// The hardware's 512 MB hold 0.1 s of samples at a period of 2^11 cycles; CUPTI empties them this often.
constexpr uint32_t kWorkerSleepMs = 10;
constexpr size_t kMaxReasons = 256;
// Each reason comes twice: in all its samples, and in those of cycles in which nothing was issued.
constexpr std::string_view kNotIssued = "_not_issued";

void count(const cupti::SamplingData& data, SampleCounters& counters) {
  counters.total += data.total_samples;
  counters.dropped += data.dropped_samples;
  counters.other += data.other_samples;
}

cupti::SamplingSetting setting(cupti::SamplingAttribute attribute, uint64_t value) {
  return {attribute, cupti::Result::Success, value, {}};
}

}  // namespace

PcSampler::Buffer::Buffer(size_t pc_count, size_t reason_count)
    : pcs(pc_count), stalls(pc_count * reason_count), reasons(reason_count) {
  reset();
}

void PcSampler::Buffer::reset() {
  for (size_t i = 0; i < pcs.size(); ++i) {
    pcs[i] = {};
    pcs[i].struct_size_bytes = sizeof(cupti::PcSamples);
    pcs[i].reason_count = reasons;
    pcs[i].reasons = stalls.data() + i * reasons;
  }
  data = {};
  data.struct_size_bytes = sizeof data;
  data.capacity_pcs = pcs.size();
  data.pcs = pcs.data();
}

PcSampler::PcSampler(const PcSamplingLibrary& library, cuda::Context context) : library_(library), context_(context) {}

PcSampler::~PcSampler() {
  if (!is_enabled_) return;
  static auto& given_up = *new std::vector<std::unique_ptr<Buffer>>;  // CUPTI still writes there
  given_up.push_back(std::move(left_over_));
}

template <class Call>
cupti::Result PcSampler::call(Call* function) const {
  cupti::SamplingParams params{sizeof params, nullptr, context_};
  return function(&params);
}

cupti::Result PcSampler::enable(const Settings& settings) {
  if (const auto result = call(library_.enable); result != cupti::Result::Success) return result;
  auto result = reasons_.empty() ? read_reasons() : cupti::Result::Success;
  if (result == cupti::Result::Success) result = configure(settings);
  if (result != cupti::Result::Success) (void)call(library_.disable);
  is_enabled_ = result == cupti::Result::Success;
  return result;
}

cupti::Result PcSampler::read_reasons() {
  size_t count = 0;
  cupti::StallReasonCount counted{sizeof counted, nullptr, context_, &count};
  if (const auto result = library_.count_reasons(&counted); result != cupti::Result::Success) return result;
  std::vector<uint32_t> numbers(count);
  std::vector<char> texts(count * cupti::kStallReasonNameBytes);
  std::vector<char*> names(count);
  for (size_t i = 0; i < count; ++i) names[i] = &texts[i * cupti::kStallReasonNameBytes];
  cupti::StallReasonNames named{sizeof named, nullptr, context_, count, numbers.data(), names.data()};
  if (const auto result = library_.name_reasons(&named); result != cupti::Result::Success) return result;
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] >= kMaxReasons) return cupti::Result::Unknown;
    if (numbers[i] >= reasons_.size()) reasons_.resize(numbers[i] + 1, StringId::None);
    const std::string_view name(names[i], strnlen(names[i], cupti::kStallReasonNameBytes));
    if (!name.ends_with(kNotIssued)) reasons_[numbers[i]] = FrameTable::instance().intern_string(name);
  }
  buffer_ = std::make_unique<Buffer>(kPcsPerCall, count);
  left_over_ = std::make_unique<Buffer>(kLeftOverPcs, count);
  return cupti::Result::Success;
}

// With start and stop control: the third of a second that the first start takes is then paid by the thread that calls
// it, not by the program's next launch.
cupti::Result PcSampler::configure(const Settings& settings) {
  mode_ = settings.mode;
  left_over_->reset();
  std::vector<cupti::SamplingSetting> rows = {
      setting(cupti::SamplingAttribute::Mode, static_cast<uint64_t>(settings.mode)),
      setting(cupti::SamplingAttribute::StartStopControl, 1),
      setting(cupti::SamplingAttribute::WorkerSleepMs, kWorkerSleepMs),
      setting(cupti::SamplingAttribute::DataBuffer, reinterpret_cast<uintptr_t>(&left_over_->data)),
  };
  if (settings.period != 0) rows.push_back(setting(cupti::SamplingAttribute::Period, settings.period));
  cupti::SamplingConfiguration configuration{sizeof configuration, nullptr, context_, rows.size(), rows.data()};
  return library_.configure(&configuration);
}

cupti::Result PcSampler::start() {
  const auto result = call(library_.start);
  if (result != cupti::Result::Success) is_enabled_ = call(library_.disable) != cupti::Result::Success;
  return result;
}
cupti::Result PcSampler::stop() { return call(library_.stop); }

DrainResult PcSampler::drain(std::vector<PcSample>& samples, SampleCounters& counters) {
  DrainResult drained;
  for (uint32_t calls = 0; calls < kMaxCallsPerDrain; ++calls) {
    buffer_->reset();
    cupti::SamplingDataParams params{sizeof params, nullptr, context_, &buffer_->data};
    drained.result = library_.get_data(&params);
    const cupti::SamplingData& data = buffer_->data;
    drained.buffer_full |= data.hardware_buffer_full != 0 || drained.result == cupti::Result::OutOfMemory;
    if (drained.result != cupti::Result::Success) break;
    count(data, counters);
    take(*buffer_, samples);
    if (data.remaining_pcs == 0) break;
  }
  return drained;
}

void PcSampler::take(const Buffer& buffer, std::vector<PcSample>& samples) const {
  const char* last_name = nullptr;
  StringId function = StringId::None;
  for (size_t i = 0; i < std::min(buffer.data.pc_count, buffer.pcs.size()); ++i) {
    const cupti::PcSamples& pc = buffer.pcs[i];
    if (pc.function_name != last_name || function == StringId::None) {  // those of one function come together
      function = FrameTable::instance().intern_string(pc.function_name != nullptr ? pc.function_name : "");
      last_name = pc.function_name;
    }
    for (size_t k = 0; k < std::min(pc.reason_count, buffer.reasons); ++k) {
      const cupti::StallSamples& stall = pc.reasons[k];
      if (stall.samples == 0 || stall.reason >= reasons_.size() || reasons_[stall.reason] == StringId::None) continue;
      samples.push_back({pc.cubin_crc, function, reasons_[stall.reason], static_cast<uint32_t>(pc.pc_offset),
                         CorrelationId{pc.correlation}, stall.samples});
    }
  }
}

// Serialized samples are in CUPTI's buffer at any time, also those that were handed out.
cupti::Result PcSampler::disable(std::vector<PcSample>& samples, SampleCounters& counters) {
  left_over_->data.pc_count = 0;
  const auto result = call(library_.disable);
  is_enabled_ = is_enabled_ && result != cupti::Result::Success;
  if (result != cupti::Result::Success || mode_ == cupti::CollectionMode::Serialized) return result;
  count(left_over_->data, counters);
  take(*left_over_, samples);
  return result;
}

}  // namespace bragg
