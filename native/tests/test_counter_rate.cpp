// How often counters are sampled: what a search for the interval costs.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/cuda/counters/counter_rate.h"
#include "check.h"

namespace {

using bragg::CounterRate;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kNapNs = 50 * kMs;
constexpr int64_t kOpenNs = 300 * kMs, kRestartNs = 350 * kMs;  // as on an H200
constexpr size_t kMetrics = 9;

// GPUs whose samples one thread takes, which opens them, decodes and begins again.
class Thread {
 public:
  Thread(size_t gpus, uint64_t sample_cost_ns, uint64_t call_cost_ns = 0, size_t weight = kMetrics)
      : gpus_(gpus), cost_ns_(sample_cost_ns), call_cost_ns_(call_cost_ns), weight_(weight) {}

  void run_until(int64_t end_ns) {
    while (now_ns_ < end_ns) {
      const bool is_open = devices_.size() == gpus_;
      if (is_open) now_ns_ += devices_[0].rate.nap_ns(gpus_);
      CounterRate::Turn turn{gpus_, is_open};
      if (!is_open) open();
      for (Device& device : devices_) drain(device, turn);
    }
  }

  struct Device {
    CounterRate rate;
    int64_t taken_ns;  // samples until here were taken, or lost
    int restarts = 0;
    int64_t unsampled_ns = 0;
  };
  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }
  [[nodiscard]] double spent_share() const { return static_cast<double>(spent_ns_) / static_cast<double>(now_ns_); }

 private:
  void open() {
    now_ns_ += kOpenNs;
    double cost_ns = 0;
    for (const Device& device : devices_) cost_ns = std::max(cost_ns, device.rate.cost_ns());
    devices_.push_back({CounterRate(weight_, gpus_, cost_ns), now_ns_});
    devices_.back().rate.begin(now_ns_);
  }

  void drain(Device& device, CounterRate::Turn& turn) {
    const uint64_t came = static_cast<uint64_t>(now_ns_ - device.taken_ns) / device.rate.interval_ns();
    const uint64_t fits = device.rate.awaited_samples(gpus_);
    const CounterRate::Work work{std::min(came, fits), call_cost_ns_ + std::min(came, fits) * cost_ns_};
    device.unsampled_ns += static_cast<int64_t>((came - work.samples) * device.rate.interval_ns());
    device.taken_ns = now_ns_;
    now_ns_ += static_cast<int64_t>(work.cpu_ns);
    spent_ns_ += work.cpu_ns;
    bool is_right = came == work.samples;
    if (is_right)
      is_right = device.rate.keep(work, now_ns_, turn);
    else
      is_right = device.rate.lose(work, now_ns_, gpus_);
    if (is_right) return;
    turn.may_restart = false;
    ++device.restarts;
    device.unsampled_ns += now_ns_ - device.taken_ns + kRestartNs;
    device.taken_ns = now_ns_ += kRestartNs;
    device.rate.begin(now_ns_);
  }

  size_t gpus_;
  uint64_t cost_ns_, call_cost_ns_;
  size_t weight_;
  int64_t now_ns_ = 0;
  uint64_t spent_ns_ = 0;
  std::vector<Device> devices_;
};

TEST(counters_that_the_first_interval_affords_are_sampled_without_a_restart) {
  for (const size_t gpus : {1, 2, 8}) {
    Thread thread(gpus, 86'000);
    thread.run_until(12'000 * kMs);
    for (const auto& device : thread.devices()) {
      CHECK_EQ(device.restarts, 0);
      CHECK_EQ(device.unsampled_ns, 0);
    }
    CHECK(thread.spent_share() <= bragg::kCounterBudget);
  }
}

TEST(counters_find_what_they_afford_with_one_restart_at_most) {
  for (const size_t gpus : {1, 2, 4})
    for (const uint64_t cost_ns : {140'000, 200'000}) {
      Thread thread(gpus, cost_ns);
      thread.run_until(20'000 * kMs);
      for (const auto& device : thread.devices()) {
        CHECK(device.restarts <= 1);
        CHECK(device.unsampled_ns < 3 * kRestartNs);
      }
      CHECK_EQ(thread.devices()[0].restarts, 1);
      CHECK(thread.spent_share() <= 1.5 * bragg::kCounterBudget);  // with the search
    }
}

TEST(gpus_that_share_a_thread_keep_their_interval_though_decoding_costs_by_the_call_too) {
  Thread thread(2, 90'000, 1'100'000);
  thread.run_until(20'000 * kMs);
  for (const auto& device : thread.devices()) {
    CHECK_EQ(device.restarts, 0);
    CHECK_EQ(device.rate.interval_ns(), 2'592'000u);
  }
  CHECK(thread.spent_share() <= bragg::kCounterBudget);
}

TEST(gpus_share_the_budget_though_each_alone_affords_the_interval_that_was_asked_for) {
  constexpr uint64_t kAskedNs = 500'000, kCostNs = 40'000;  // 8 % of a core
  constexpr CounterRate::Work kSecond{1'000'000'000 / kAskedNs, 1'000'000'000 / kAskedNs * kCostNs};
  CounterRate alone(kAskedNs);
  alone.begin(0);
  CHECK(alone.keep(kSecond, 1000 * kMs, {1, true}));
  CounterRate shared(kAskedNs);
  shared.begin(0);
  CHECK(shared.keep(kSecond, 1000 * kMs, {2, false}));  // another one begins
  CHECK(!shared.keep(kSecond, 2000 * kMs, {2, true}));
  CHECK_EQ(shared.interval_ns(), 960'000u);  // with a margin of a fifth
  CounterRate late(kAskedNs);
  late.begin(0);
  CHECK(!late.lose(kSecond, 2000 * kMs, 2));
  CHECK_EQ(late.interval_ns(), 960'000u);
}

// Its image holds 0.18 s then, and to begin another GPU takes 0.3 s.
TEST(a_gpu_that_began_alone_is_looked_at_in_time_and_keeps_its_interval_when_another_begins) {
  CounterRate rate(500'000);
  const uint32_t fits = rate.awaited_samples(1);
  rate.begin(0);
  CHECK(rate.nap_ns(2) * 3 <= int64_t{fits} * 500'000);
  CHECK(rate.lose({fits, fits * 10'000ull}, 300 * kMs, 2));
  CHECK_EQ(rate.interval_ns(), 500'000u);
}

// As with a throughput on an H100, where shorter naps made each sample dearer the longer its interval was.
TEST(counters_that_cost_by_the_call_find_their_interval_with_one_restart_at_most) {
  Thread thread(1, 140'000, 6'000'000, 18);
  thread.run_until(20'000 * kMs);
  CHECK(thread.devices()[0].restarts <= 1);
  CHECK(thread.devices()[0].rate.interval_ns() <= 4 * uint64_t{kMs});
  CHECK(thread.spent_share() <= bragg::kCounterBudget);
}

TEST(samples_that_are_lost_while_the_thread_was_away_do_not_slow_sampling) {
  CounterRate rate(kMetrics, 1, 0);
  const uint64_t interval_ns = rate.interval_ns();
  rate.begin(0);
  CHECK(rate.keep({60, 60 * 40'000}, kNapNs, {1, true}));
  CHECK(rate.lose({250, 250 * 40'000}, 20 * kNapNs, 1));
  CHECK_EQ(rate.interval_ns(), interval_ns);
  CHECK(!rate.lose({250, 250 * 40'000}, 40 * kNapNs, 1));  // again: it is always late
  CHECK_EQ(rate.interval_ns(), 2 * interval_ns);
  rate.begin(40 * kNapNs);
  CHECK(!rate.lose({250, 250 * 40'000}, 41 * kNapNs, 1));  // the hardware's buffer is too small
  CHECK_EQ(rate.interval_ns(), 4 * interval_ns);
}

TEST(counters_are_not_sampled_less_often_than_the_longest_interval) {
  CounterRate rate(kMetrics, 1, 0);
  rate.begin(0);
  CHECK(!rate.keep({10, 500 * uint64_t{kMs}}, kNapNs, {1, true}));
  CHECK_EQ(rate.interval_ns(), 10 * uint64_t{kMs});
  rate.begin(kNapNs);
  CHECK(rate.keep({10, 500 * uint64_t{kMs}}, 2 * kNapNs, {1, true}));
  CounterRate chosen(50 * uint64_t{kMs});
  chosen.begin(0);
  CHECK(chosen.lose({1, 1}, kMs, 1));
  CHECK_EQ(chosen.interval_ns(), 50 * uint64_t{kMs});
}

}  // namespace
