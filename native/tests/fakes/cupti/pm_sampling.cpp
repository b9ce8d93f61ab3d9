#include "cupti/pm_sampling.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cupti/tool.h"
#include "cupti/version.h"
#include "settings.h"

namespace bragg::fake {
namespace {

using cupti::Result;

constexpr uint64_t kBytesPerSample = 7000;        // of the hardware's buffer: 4 to 7 KB were seen
constexpr uint64_t kFirstSampleNs = 700'000'000;  // 0.3 to 1.4 s were seen: since the last session
constexpr double kGarbage = 1e15;                 // what the first sample says
constexpr uint32_t kAppendModeSince = 26;         // 12.8

}  // namespace

PmQuantities pm_quantities_per_ns(std::string_view name) {
  if (name.find("copy") != name.npos) return {1000, 1000, 0, 1, 10};
  if (name.find("matmul") != name.npos) return {100, 50, 0.9, 1, 20};
  return {10, 5, 0, 1, 10};
}

PmSampling& pm_sampling() {
  static PmSampling& self = *new PmSampling;  // kernels run until the process is gone
  return self;
}

PmSampling::Session* PmSampling::of(void* sampler) {
  const auto found = sessions_.find(sampler);
  return found != sessions_.end() ? &found->second : nullptr;
}

// CUPTI keeps the pointer to the configuration: freeing it hangs or crashes.
void PmSampling::demand_config(const Session& session, const char* call) {
  if (session.config == nullptr ||
      std::memcmp(session.config, session.config_then.data(), session.config_then.size()) == 0)
    return;
  std::fprintf(stderr, "fake CUPTI: %s after the configuration image was freed\n", call);
  std::abort();
}

Result PmSampling::enable(cupti::PmEnableParams& params) {
  const std::lock_guard lock(mutex_);
  for (const auto& [_, session] : sessions_)
    if (session.device == params.device) return Result::InvalidOperation;
  params.sampler = std::malloc(1);
  sessions_[params.sampler].device = static_cast<uint32_t>(params.device);
  return Result::Success;
}

Result PmSampling::configure(const cupti::PmConfigParams& params) {
  const std::lock_guard lock(mutex_);
  Session* session = of(params.sampler);
  if (session == nullptr || params.interval == 0) return Result::InvalidParameter;
  if (params.struct_size_bytes > cupti::kPmConfigBytes && emulated_release().api_version < kAppendModeSince)
    return Result::InvalidParameter;
  if (session->config != nullptr) return Result::InvalidOperation;  // a session is configured once
  session->config = params.config;
  session->config_then.assign(params.config, params.config + params.config_bytes);
  session->interval_ns = params.interval;
  const int64_t ordered = knob(Knob::PmBuffer);
  session->capacity = ordered > 0 ? static_cast<uint64_t>(ordered) : params.hardware_buffer_bytes / kBytesPerSample;
  return Result::Success;
}

Result PmSampling::data_size(cupti::PmDataSizeParams& params) {
  const std::lock_guard lock(mutex_);
  Session* session = of(params.sampler);
  if (session == nullptr) return Result::InvalidParameter;
  if (session->max_samples == 0) session->max_samples = params.max_samples;
  params.size_bytes = sizeof(PmImage) + params.max_samples * sizeof(PmImage::Sample);
  return Result::Success;
}

Result PmSampling::initialize_image(const cupti::PmImageParams& params) {
  const std::lock_guard lock(mutex_);
  Session* session = of(params.sampler);
  if (session == nullptr) return Result::InvalidParameter;
  const uint64_t capacity = (params.size_bytes - sizeof(PmImage)) / sizeof(PmImage::Sample);
  if (capacity != session->max_samples) return Result::Unknown;
  *reinterpret_cast<PmImage*>(params.image) = {PmImage::kMark, capacity, 0, 0};
  return Result::Success;
}

Result PmSampling::start(void* sampler) {
  const std::lock_guard lock(mutex_);
  Session* session = of(sampler);
  if (session == nullptr || session->config == nullptr || session->is_running) return Result::InvalidOperation;
  session->is_running = true;
  session->next_ns = now_ns();
  return Result::Success;
}

Result PmSampling::stop(void* sampler) {
  const std::lock_guard lock(mutex_);
  Session* session = of(sampler);
  if (session == nullptr || !session->is_running) return Result::InvalidOperation;
  session->is_running = false;
  session->end_ns = driver()->all_placed_until_ns();
  return Result::Success;
}

Result PmSampling::disable(void* sampler) {
  const std::lock_guard lock(mutex_);
  Session* session = of(sampler);
  if (session == nullptr) return Result::InvalidOperation;
  demand_config(*session, "cuptiPmSamplingDisable");
  sessions_.erase(sampler);
  std::free(sampler);
  return Result::Success;
}

PmQuantities PmSampling::integral(const Session& session, uint64_t start_ns, uint64_t end_ns) {
  PmQuantities sum{};
  for (const Kernel& kernel : session.kernels) {
    const uint64_t from = std::max(start_ns, kernel.span.start_ns), to = std::min(end_ns, kernel.span.end_ns);
    if (from >= to) continue;
    for (size_t i = 0; i < kLength; ++i) sum[i] += kernel.per_ns[i] * static_cast<double>(to - from);
  }
  return sum;
}

Result PmSampling::decode(cupti::PmDecodeParams& params) {
  const std::lock_guard lock(mutex_);
  Session* session = of(params.sampler);
  auto& image = *reinterpret_cast<PmImage*>(params.image);
  if (session == nullptr || image.mark != PmImage::kMark) return Result::InvalidParameter;
  demand_config(*session, "cuptiPmSamplingDecodeData");
  params.stop = session->is_running ? cupti::DecodeStop::Other : cupti::DecodeStop::EndOfRecords;
  const uint64_t until_ns = session->is_running ? driver()->all_placed_until_ns() : session->end_ns;
  const uint64_t ready = until_ns > session->next_ns ? (until_ns - session->next_ns) / session->interval_ns : 0;
  session->is_overflown |= ready > session->capacity;
  params.overflow = session->is_overflown ? 1 : 0;
  if (session->is_overflown) return Result::OutOfMemory;  // for ever
  const auto add = [&](uint64_t start_ns, uint64_t end_ns, const PmQuantities& quantities) {
    if (image.count == image.capacity) return false;
    image.samples()[image.count++] = {start_ns, end_ns, quantities};
    return true;
  };
  take_cpu_time(static_cast<int64_t>(std::min(ready, image.capacity - image.count)) * knob(Knob::PmDecodeNs));
  if (session->has_lost) add(0, 0, {});
  session->has_lost = false;
  for (uint64_t i = 0; i < ready; ++i) {
    const uint64_t start_ns = session->next_ns, end_ns = start_ns + session->interval_ns;
    PmQuantities quantities = integral(*session, start_ns, end_ns);
    if (!session->has_begun) quantities.fill(kGarbage);
    if (!add(session->has_begun ? start_ns : start_ns - kFirstSampleNs, end_ns, quantities)) {
      session->has_lost = true;
      params.stop = cupti::DecodeStop::ImageFull;
      session->next_ns += (ready - i) * session->interval_ns;
      break;
    }
    session->has_begun = true;
    session->next_ns = end_ns;
  }
  if (params.stop == cupti::DecodeStop::EndOfRecords) add(session->end_ns, session->end_ns, {});
  std::erase_if(session->kernels, [&](const Kernel& kernel) { return kernel.span.end_ns <= session->next_ns; });
  return Result::Success;
}

void PmSampling::executed(const Execution& execution) {
  const std::lock_guard lock(mutex_);
  for (auto& [_, session] : sessions_)
    if (session.is_running && session.device == execution.place.device)
      session.kernels.push_back({execution.span, pm_quantities_per_ns(execution.operation.name)});
}

}  // namespace bragg::fake
