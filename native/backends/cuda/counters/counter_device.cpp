#include "backends/cuda/counters/counter_device.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "context/clock.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr int kLastDecodes = 16;

}  // namespace

CounterDevice::CounterDevice(const CuptiLibrary& cupti, const PmSamplingLibrary& library, uint32_t ordinal,
                             const Settings& settings)
    : cupti_(cupti),
      ordinal_(ordinal),
      wanted_(settings.wanted),
      sampler_(library, ordinal),
      rate_(settings.interval_ns),
      is_by_budget_(settings.interval_ns == 0) {}

void CounterDevice::refuse(const PmSampler::Failure& failure) {
  reason_ = counter_refusal(cupti_, failure.call, failure.result);
  std::fprintf(stderr, "bragg: no counters of GPU %u, its kernels are recorded without them: %s\n", ordinal_,
               reason_.c_str());
}

void CounterDevice::prepare() {
  if (const auto failure = sampler_.look()) return refuse(failure);
  const auto choose = [&](const auto& metrics, size_t& passes) { return sampler_.choose(metrics, passes); };
  if (const auto failure = choose_in_one_pass(wanted_, choose, counters_)) return refuse(failure);
  if (counters_.empty()) {
    reason_ = sampler_.chip() + " has none of the counters that are wanted";
    std::fprintf(stderr, "bragg: no counters of GPU %u: %s\n", ordinal_, reason_.c_str());
    return;
  }
}

void CounterDevice::open(size_t gpus, double cost_ns) {
  if (!reason_.empty()) return;
  if (is_by_budget_) rate_ = CounterRate(metrics_of(counters_).size(), gpus, cost_ns);
  start(gpus);
}

void CounterDevice::start(size_t gpus) {
  last_end_ns_ = 0;
  started_ns_ = static_cast<uint64_t>(system_ns(CLOCK_REALTIME));
  if (const auto failure = sampler_.open(rate_.interval_ns(), rate_.awaited_samples(gpus))) refuse(failure);
  rate_.begin(monotonic_ns());
}

// A session that has overflown stays dead, and an interval belongs to a session.
void CounterDevice::restart(CounterRate::Turn& turn) {
  turn.may_restart = false;
  ++counts_.restarts;
  if (restarted_at_ns_ == 0) restarted_at_ns_ = last_end_ns_ != 0 ? last_end_ns_ : started_ns_;
  sampler_.close();
  start(turn.gpus);
}

void CounterDevice::take(const PmSample& sample, std::vector<CounterPoint>& points) {
  // The first one begins where the last session of anybody ended; others without a time come after a full image.
  const bool is_first = last_end_ns_ == 0;
  if (sample.end_ns <= sample.start_ns || sample.start_ns < last_end_ns_) {
    ++counts_.irregular;
    return;
  }
  if (is_first || sample.values.empty()) {
    ++counts_.irregular;
    last_end_ns_ = sample.end_ns;
    return;
  }
  const uint64_t sampled_until_ns = restarted_at_ns_ != 0 ? std::exchange(restarted_at_ns_, 0) : last_end_ns_;
  if (const uint64_t gap_ns = sample.start_ns - sampled_until_ns; gap_ns > rate_.interval_ns() / 2) {
    ++counts_.gaps;
    counts_.gap_ns += gap_ns;
  }
  last_end_ns_ = sample.end_ns;
  ++counts_.samples;
  const double seconds = static_cast<double>(sample.end_ns - sample.start_ns) * 1e-9;
  size_t at = 0;
  for (uint32_t i = 0; i < counters_.size(); ++i) {
    const size_t count = counters_[i].alternatives[0].size();
    const double value = counter_value(counters_[i].scale, sample.values.subspan(at, count), seconds);
    at += count;
    if (std::isfinite(value)) {
      points.push_back({ordinal_, i, static_cast<int64_t>(sample.start_ns), value});
    } else {
      ++counts_.not_a_number;  // MIG: units that are shared
    }
  }
}

PmSampler::Decoded CounterDevice::decode(std::vector<CounterPoint>& points, CounterRate::Work& work) {
  const int64_t before_ns = system_ns(CLOCK_THREAD_CPUTIME_ID);
  const auto decoded = sampler_.decode([&](const PmSample& sample) {
    ++work.samples;
    take(sample, points);
  });
  work.cpu_ns = static_cast<uint64_t>(system_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns);
  counts_.cpu_ns += work.cpu_ns;
  counts_.images_full += decoded.is_image_full ? 1 : 0;
  return decoded;
}

void CounterDevice::drain(std::vector<CounterPoint>& points, CounterRate::Turn& turn) {
  if (!sampler_.is_open()) return;
  CounterRate::Work work;
  const auto decoded = decode(points, work);
  if (decoded.is_overflown || decoded.is_image_full) {
    counts_.overflows += decoded.is_overflown ? 1 : 0;
    rate_.lose(work, monotonic_ns(), turn.gpus);
    restart(turn);
  } else if (decoded.result != cupti::Result::Success) {
    refuse({"cuptiPmSamplingDecodeData", decoded.result});
    sampler_.close();
  } else if (!rate_.keep(work, monotonic_ns(), turn)) {
    restart(turn);
  }
}

void CounterDevice::end(std::vector<CounterPoint>& points) {
  if (!sampler_.is_open()) return;
  if (const auto failure = sampler_.stop()) {
    refuse(failure);
  } else {
    for (int i = 0; i < kLastDecodes; ++i) {
      CounterRate::Work work;
      const auto decoded = decode(points, work);
      if (decoded.result != cupti::Result::Success || decoded.is_end || decoded.is_overflown) break;
    }
  }
  sampler_.close();
}

std::string CounterDevice::description_json() const {
  JsonObject json;
  json.put("chip", sampler_.chip());
  if (!reason_.empty()) json.put("reason", reason_);
  json.raw("metrics", json_array(metrics_of(counters_), json_string));
  json.raw("left_out", json_array(left_out(wanted_, counters_), json_string));
  json.put("interval_ns", rate_.interval_ns())
      .put("samples", counts_.samples)
      .put("irregular", counts_.irregular)
      .put("not_a_number", counts_.not_a_number)
      .put("gaps", counts_.gaps)
      .put("gap_ns", counts_.gap_ns)
      .put("overflows", counts_.overflows)
      .put("images_full", counts_.images_full)
      .put("restarts", counts_.restarts)
      .put("cpu_ns", counts_.cpu_ns);
  return json.text();
}

}  // namespace bragg
