// The counters of one GPU, whose thread is away for a while.
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/counters/counter_device.h"
#include "backends/cuda/cuda.h"
#include "check.h"
#include "recording.h"

namespace {

constexpr uint64_t kIntervalNs = 500'000, kShortNs = 20'000'000, kLongNs = 300'000'000;  // the image holds 0.18 s

void work(uint64_t lasts_ns) {
  bragg::test::set_kernel_ns("copy", lasts_ns);
  bragg::test::device().launch(bragg::test::device().kernel("copy"), bragg::test::device().stream());
  bragg::test::device().must("cuCtxSynchronize");
}

TEST(counters_whose_thread_was_away_go_on_with_a_gap) {
  const bragg::test::Recording recording("counters");
  bragg::test::device().use();
  work(kShortNs);
  bragg::PmSamplingLibrary library;
  std::string reason;
  REQUIRE(bragg::load_pm_sampling(bragg::cuda_backend::cupti_library(), library, reason));
  bragg::CounterDevice device(bragg::cuda_backend::cupti_library(), library, 0,
                              {bragg::counters_of("dram"), kIntervalNs});
  device.prepare();
  device.open(1, 0);
  std::vector<bragg::CounterPoint> points;
  bragg::CounterRate::Turn turn{1, true};
  const auto drain = [&] {
    points.clear();
    device.drain(points, turn);
    return points.size();
  };
  const auto says = [&](const std::string& what) { return device.description_json().find(what) != std::string::npos; };
  work(kLongNs);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // longer than the image is meant for
  CHECK(bragg::test::comes_true([&] { return drain() > 0 && says("\"images_full\":1,"); }));
  CHECK(says("\"restarts\":0,"));
  work(kShortNs);
  CHECK(bragg::test::comes_true([&] { return drain() > 0; }));
  CHECK(says("\"gaps\":1,"));
  CHECK(says("\"restarts\":0,"));
  device.end(points);
}

}  // namespace
