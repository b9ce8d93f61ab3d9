#include "backends/cuda/counters/counter_device.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <utility>

#include "context/clock.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr int kLastDecodes = 16;
constexpr int kMostUntimedDecodes = 3;  // the first is that of a full image
// Between turns 0.35 s are not sampled (H200). The first ones are short, so that a short program has all sets.
constexpr int64_t kFirstTurnNs = 500'000'000, kLongestTurnNs = 4'000'000'000;

}  // namespace

CounterDevice::CounterDevice(const CuptiLibrary& cupti, const PmSamplingLibrary& library, uint32_t ordinal,
                             const Settings& settings)
    : cupti_(cupti), library_(library), ordinal_(ordinal), settings_(settings) {}

void CounterDevice::refuse(const PmSampler::Failure& failure) {
  reason_ = counter_refusal(cupti_, failure.call, failure.result);
  std::fprintf(stderr, "bragg: no counters of GPU %u, its kernels are recorded without them: %s\n", ordinal_,
               reason_.c_str());
}

void CounterDevice::prepare() {
  std::vector<Counter> wanted = settings_.wanted;
  while (!wanted.empty()) {
    if (const CuptiFailure failure = add_set(take_together(wanted), wanted)) return refuse(failure);
  }
  if (sets_.empty()) {
    reason_ = chip_ + " has none of the counters that are wanted";
    std::fprintf(stderr, "bragg: no counters of GPU %u: %s\n", ordinal_, reason_.c_str());
  }
}

// What does not fit is added to `others`, or left out if nothing does.
CuptiFailure CounterDevice::add_set(const std::vector<Counter>& wanted, std::vector<Counter>& others) {
  auto set = std::make_unique<Set>(library_, ordinal_, settings_.interval_ns);
  if (const CuptiFailure failure = set->sampler.look()) return failure;
  chip_ = set->sampler.chip();
  const auto choose = [&](const auto& metrics, size_t& passes) { return set->sampler.choose(metrics, passes); };
  if (const CuptiFailure failure = choose_in_one_pass(wanted, choose, set->counters)) return failure;
  if (set->counters.empty()) {
    std::ranges::copy(tracks_of(wanted), std::back_inserter(left_out_));
    return {};
  }
  std::ranges::copy(others_than(set->counters, wanted), std::back_inserter(others));
  set->first = static_cast<uint32_t>(counters().size());
  sets_.push_back(std::move(set));
  return {};
}

std::vector<Counter> CounterDevice::counters() const {
  std::vector<Counter> all;
  for (const auto& set : sets_) all.insert(all.end(), set->counters.begin(), set->counters.end());
  return all;
}

void CounterDevice::open(size_t gpus, double cost_ns) {
  if (!reason_.empty()) return;
  if (settings_.interval_ns == 0)
    for (const auto& set : sets_) set->rate = CounterRate(decoding_weight(set->counters), gpus, cost_ns);
  start(gpus);
}

void CounterDevice::start(size_t gpus) {
  Set& set = current();
  last_end_ns_ = 0;
  untimed_decodes_ = 0;
  started_ns_ = static_cast<uint64_t>(system_ns(CLOCK_REALTIME));
  if (const auto failure = set.sampler.open(set.rate.interval_ns(), set.rate.awaited_samples(gpus))) refuse(failure);
  const int64_t now_ns = monotonic_ns();
  set.rate.begin(now_ns);
  const uint64_t rounds = std::min<uint64_t>(turns_ / sets_.size(), 8);
  turn_end_ns_ = now_ns + static_cast<int64_t>(gpus) * std::min(kFirstTurnNs << rounds, kLongestTurnNs);
}

// A session that has overflown stays dead, and an interval belongs to a session.
void CounterDevice::restart(CounterRate::Turn& turn) {
  turn.may_restart = false;
  ++counts_.restarts;
  if (restarted_at_ns_ == 0) restarted_at_ns_ = last_end_ns_ != 0 ? last_end_ns_ : started_ns_;
  current().sampler.close();
  start(turn.gpus);
}

void CounterDevice::begin_next_turn(CounterRate::Turn& turn) {
  turn.may_restart = false;
  ++turns_;
  restarted_at_ns_ = 0;
  current().sampler.close();
  current_ = (current_ + 1) % sets_.size();
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
  Set& set = current();
  if (const uint64_t gap_ns = sample.start_ns - sampled_until_ns; gap_ns > set.rate.interval_ns() / 2) {
    ++counts_.gaps;
    counts_.gap_ns += gap_ns;
  }
  last_end_ns_ = sample.end_ns;
  ++set.samples;
  set.sampled_ns += sample.end_ns - sample.start_ns;
  const double seconds = static_cast<double>(sample.end_ns - sample.start_ns) * 1e-9;
  size_t at = 0;
  for (uint32_t i = 0; i < set.counters.size(); ++i) {
    const size_t count = set.counters[i].alternatives[0].size();
    const double value = counter_value(set.counters[i].scale, sample.values.subspan(at, count), seconds);
    at += count;
    if (std::isfinite(value)) {
      points.push_back({ordinal_, set.first + i, static_cast<int64_t>(sample.start_ns), value});
    } else {
      ++counts_.not_a_number;  // MIG: units that are shared
    }
  }
}

PmSampler::Decoded CounterDevice::decode(std::vector<CounterPoint>& points, CounterRate::Work& work) {
  const int64_t before_ns = system_ns(CLOCK_THREAD_CPUTIME_ID);
  const auto decoded = current().sampler.decode([&](const PmSample& sample) {
    ++work.samples;
    take(sample, points);
  });
  work.cpu_ns = static_cast<uint64_t>(system_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns);
  counts_.cpu_ns += work.cpu_ns;
  counts_.images_full += decoded.is_image_full ? 1 : 0;
  return decoded;
}

// After a full image the first samples have no time, and what came meanwhile is a gap; a session that brings no others
// is dead.
bool CounterDevice::has_times_again(const PmSampler::Decoded& decoded, const CounterRate::Work& work, bool is_timed) {
  if (decoded.is_image_full)
    untimed_decodes_ = 1;
  else if (is_timed)
    untimed_decodes_ = 0;
  else if (untimed_decodes_ != 0 && work.samples != 0)
    ++untimed_decodes_;
  return untimed_decodes_ < kMostUntimedDecodes;
}

void CounterDevice::drain(std::vector<CounterPoint>& points, CounterRate::Turn& turn) {
  if (sets_.empty() || !current().sampler.is_open()) return;
  CounterRate& rate = current().rate;
  CounterRate::Work work;
  const uint64_t samples_before = current().samples;
  const auto decoded = decode(points, work);
  if (decoded.result != cupti::Result::Success && !decoded.is_overflown) {
    refuse({"cuptiPmSamplingDecodeData", decoded.result});
    return current().sampler.close();
  }
  counts_.overflows += decoded.is_overflown ? 1 : 0;
  const bool has_lost = decoded.is_overflown || decoded.is_image_full;
  const bool is_right = has_lost ? rate.lose(work, monotonic_ns(), turn.gpus) : rate.keep(work, monotonic_ns(), turn);
  if (decoded.is_overflown || !is_right || !has_times_again(decoded, work, current().samples != samples_before))
    restart(turn);
  else if (sets_.size() > 1 && turn.may_restart && monotonic_ns() >= turn_end_ns_)
    begin_next_turn(turn);
}

void CounterDevice::end(std::vector<CounterPoint>& points) {
  if (sets_.empty() || !current().sampler.is_open()) return;
  if (const auto failure = current().sampler.stop()) {
    refuse(failure);
  } else {
    for (int i = 0; i < kLastDecodes; ++i) {
      CounterRate::Work work;
      const auto decoded = decode(points, work);
      if (decoded.result != cupti::Result::Success || decoded.is_end || decoded.is_overflown) break;
    }
  }
  current().sampler.close();
}

std::string CounterDevice::description_json() const {
  JsonObject json;
  json.put("chip", chip_);
  if (!reason_.empty()) json.put("reason", reason_);
  json.raw("metrics", json_array(metrics_of(counters()), json_string));
  json.raw("left_out", json_array(left_out_, json_string));
  uint64_t samples = 0;
  for (const auto& set : sets_) samples += set->samples;
  if (!sets_.empty()) json.put("interval_ns", sets_[current_]->rate.interval_ns());
  json.put("samples", samples)
      .put("irregular", counts_.irregular)
      .put("not_a_number", counts_.not_a_number)
      .put("gaps", counts_.gaps)
      .put("gap_ns", counts_.gap_ns)
      .put("overflows", counts_.overflows)
      .put("images_full", counts_.images_full)
      .put("restarts", counts_.restarts)
      .put("cpu_ns", counts_.cpu_ns);
  if (sets_.size() > 1) json.put("turns", turns_ + 1).raw("sets", json_array(sets_, set_json));
  return json.text();
}

std::string CounterDevice::set_json(const std::unique_ptr<Set>& set) {
  return JsonObject()
      .raw("metrics", json_array(metrics_of(set->counters), json_string))
      .put("interval_ns", set->rate.interval_ns())
      .put("samples", set->samples)
      .put("sampled_ns", set->sampled_ns)
      .text();
}

}  // namespace bragg
