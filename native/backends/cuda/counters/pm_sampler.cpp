#include "backends/cuda/counters/pm_sampler.h"

namespace bragg {
namespace {

using cupti::Result;

// 4 to 10 KB a sample: 12,000 samples, more than a second at 100 us.
constexpr size_t kHardwareBufferBytes = 128u << 20;

}  // namespace

PmSampler::Failure PmSampler::look() {
  if (const Failure failure = host_.look(device_)) return failure;
  cupti::CounterAvailabilityParams asked{sizeof asked, nullptr, device_, 0, nullptr};
  TRY_CUPTI(library_, availability, asked);
  availability_.resize(asked.image_size_bytes);
  asked.image = availability_.data();
  TRY_CUPTI(library_, availability, asked);
  return {};
}

PmSampler::Failure PmSampler::open(uint64_t interval_ns, uint32_t max_samples) {
  cupti::PmEnableParams enable{sizeof enable, nullptr, device_, nullptr};
  TRY_CUPTI(library_, enable, enable);
  sampler_ = enable.sampler;
  const Failure failure = start(interval_ns, max_samples);
  if (failure) close();
  return failure;
}

PmSampler::Failure PmSampler::start(uint64_t interval_ns, uint32_t max_samples) {
  cupti::PmConfigParams config{cupti::kPmConfigBytes,
                               nullptr,
                               sampler_,
                               host_.config().size(),
                               host_.config().data(),
                               kHardwareBufferBytes,
                               interval_ns,
                               counts_cycles() ? cupti::TriggerMode::SysClock : cupti::TriggerMode::GpuTime,
                               0};
  TRY_CUPTI(library_, configure, config);
  // Asked once for each sampler: another number of samples breaks the image.
  std::vector<const char*>& names = host_.names();
  cupti::PmDataSizeParams size{sizeof size, nullptr, sampler_, names.data(), names.size(), max_samples, 0, 0};
  TRY_CUPTI(library_, data_size, size);
  image_.assign(size.size_bytes, 0);
  if (const Failure failure = reset_image()) return failure;
  cupti::PmSamplerParams params{sizeof params, nullptr, sampler_};
  TRY_CUPTI(library_, start, params);
  return {};
}

PmSampler::Failure PmSampler::reset_image() {
  cupti::PmImageParams image{sizeof image, nullptr, sampler_, image_.size(), image_.data()};
  TRY_CUPTI(library_, initialize_image, image);
  return {};
}

PmSampler::Failure PmSampler::stop() {
  cupti::PmSamplerParams params{sizeof params, nullptr, sampler_};
  TRY_CUPTI(library_, stop, params);
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
  std::vector<double> values;
  for (size_t i = 0; i < info.completed; ++i) {
    cupti::PmSampleInfoParams sample{sizeof sample, nullptr, sampler_, image_.data(), image_.size(), i, 0, 0};
    if ((decoded.result = library_.sample_info(&sample)) != Result::Success) return decoded;
    if (sample.end_ns <= sample.start_ns) {
      take({sample.start_ns, sample.end_ns, {}});
      continue;
    }
    if (const Failure failure = host_.evaluate(image_, i, values)) {
      decoded.result = failure.result;
      return decoded;
    }
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

}  // namespace bragg
