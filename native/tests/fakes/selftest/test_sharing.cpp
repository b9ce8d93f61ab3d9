// Several subscribers in a process: version 2 of CUPTI's functions, from 13.3.
#include <atomic>
#include <cstdlib>

#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {
namespace {

constexpr auto kTaken = cupti::Result::MultipleSubscribersNotSupported;
constexpr size_t kBufferBytes = 1 << 14;

std::atomic<size_t> bytes_of[2];

void on_requested(uint8_t** buffer, size_t* size_bytes, size_t* max_records, cupti::BufferRequestInfo*) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size_bytes = kBufferBytes;
  *max_records = 0;
}

template <size_t kNumber>
void on_completed(uint8_t* buffer, size_t, size_t valid_bytes, cupti::BufferCompleteInfo*) {
  bytes_of[kNumber] += valid_bytes;
  std::free(buffer);
}

cupti::Result subscribe_v2(const Profiler& profiler, cupti::Subscriber* subscriber, bool together) {
  cupti::SubscriberParams params{};
  params.struct_size_bytes = sizeof params;
  params.allow_multiple = together ? 1 : 0;
  return profiler.call<cupti::CuptiSubscribe_v2>("cuptiSubscribe_v2", subscriber, on_callback, nullptr, &params);
}

cupti::Result subscribe(const Profiler& profiler, cupti::Subscriber* subscriber) {
  return profiler.call<cupti::CuptiSubscribe>("cuptiSubscribe", subscriber, on_callback, nullptr);
}

cupti::Result enable_v2(const Profiler& profiler, cupti::Subscriber subscriber, cupti::Kind kind) {
  return profiler.call<cupti::CuptiActivityEnable_v2>("cuptiActivityEnable_v2", subscriber, kind,
                                                      static_cast<void*>(nullptr));
}

template <size_t kNumber>
cupti::Subscriber collecting(const Profiler& profiler, cupti::Kind kind) {
  cupti::Subscriber subscriber = nullptr;
  CHECK_EQ(subscribe_v2(profiler, &subscriber, true), Profiler::kOk);
  CHECK_EQ(profiler.call<cupti::CuptiActivityRegisterCallbacks_v2>("cuptiActivityRegisterCallbacks_v2", subscriber,
                                                                   on_requested, on_completed<kNumber>),
           Profiler::kOk);
  CHECK_EQ(enable_v2(profiler, subscriber, kind), Profiler::kOk);
  return subscriber;
}

}  // namespace

SCENARIO_FOR(each_subscriber_has_the_records_that_it_asked_for, "13.3", "13.4", "13.5") {
  const Program program;
  const Profiler profiler;
  (void)collecting<0>(profiler, cupti::Kind::ConcurrentKernel);
  (void)collecting<1>(profiler, cupti::Kind::Memset);
  for (int i = 0; i < 1000; ++i) program.launch(program.function("k"));
  program.set(64, nullptr);
  program.synchronize();
  profiler.flush();  // of one is of all
  CHECK_EQ(bytes_of[0].load(), 1000 * cupti::record_size(cupti::Kind::ConcurrentKernel, profiler.version()));
  CHECK_EQ(bytes_of[1].load(), cupti::record_size(cupti::Kind::Memset, profiler.version()));
}

SCENARIO(versions_do_not_mix_and_the_first_decides, {"CUPTI_VERSION", "13.3"}) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber first = nullptr, other = nullptr;
  CHECK_EQ(subscribe_v2(profiler, &first, true), Profiler::kOk);
  CHECK_EQ(subscribe_v2(profiler, &other, true), Profiler::kOk);
  CHECK_EQ(subscribe_v2(profiler, &other, false), kTaken);
  CHECK_EQ(subscribe(profiler, &other), kTaken);
  CHECK_EQ(profiler.call<cupti::CuptiActivityEnable>("cuptiActivityEnable", cupti::Kind::ConcurrentKernel), kTaken);
  uint8_t state = 9;
  size_t size = sizeof state;
  CHECK_EQ(profiler.call<cupti::CuptiActivityGetAttribute_v2>("cuptiActivityGetAttribute_v2", first,
                                                              cupti::Attribute::MultipleSubscriberState, &size,
                                                              static_cast<void*>(&state)),
           Profiler::kOk);
  CHECK_EQ(state, 1);
}

SCENARIO(beside_version_1_there_is_no_version_2, {"CUPTI_VERSION", "13.3"}) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber first = nullptr, other = nullptr;
  CHECK_EQ(subscribe(profiler, &first), Profiler::kOk);
  CHECK_EQ(subscribe_v2(profiler, &other, true), kTaken);
  CHECK_EQ(enable_v2(profiler, first, cupti::Kind::ConcurrentKernel), kTaken);
  CHECK_EQ(profiler.call<cupti::CuptiUnsubscribe>("cuptiUnsubscribe", first), Profiler::kOk);
  CHECK_EQ(subscribe_v2(profiler, &other, true), Profiler::kOk);
  CHECK_EQ(enable_v2(profiler, other, cupti::Kind::ConcurrentKernel), cupti::Result::NotCompatible);
  CHECK_EQ(subscribe(profiler, &first), kTaken);
}

SCENARIO(version_1_works_after_version_2_was_left, {"CUPTI_VERSION", "13.3"}) {
  const Program program;
  const Profiler profiler;
  const cupti::Subscriber other = collecting<0>(profiler, cupti::Kind::ConcurrentKernel);
  CHECK_EQ(profiler.call<cupti::CuptiUnsubscribe>("cuptiUnsubscribe", other), Profiler::kOk);
  cupti::Subscriber first = nullptr;
  CHECK_EQ(subscribe(profiler, &first), Profiler::kOk);
  CHECK_EQ(profiler.call<cupti::CuptiActivityEnable>("cuptiActivityEnable", cupti::Kind::ConcurrentKernel),
           Profiler::kOk);
}

SCENARIO(records_without_a_subscription_are_version_1, {"CUPTI_VERSION", "13.3"}) {
  const Program program;
  const Profiler profiler;
  CHECK_EQ(profiler.call<cupti::CuptiActivityEnable>("cuptiActivityEnable", cupti::Kind::ConcurrentKernel),
           Profiler::kOk);
  cupti::Subscriber subscriber = nullptr;
  CHECK_EQ(subscribe_v2(profiler, &subscriber, true), kTaken);
}

SCENARIO(several_subscribers_need_a_driver_that_allows_them, {"CUPTI_VERSION", "13.3"}, {"NO_SHARING", "1"}) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber subscriber = nullptr;
  CHECK_EQ(subscribe_v2(profiler, &subscriber, true), kTaken);
  CHECK_EQ(subscribe_v2(profiler, &subscriber, false), Profiler::kOk);
}

SCENARIO(whole_graphs_are_recorded_for_all_subscribers_or_none, {"CUPTI_VERSION", "13.3"}) {
  const Program program;
  const Profiler profiler;
  const cupti::Subscriber subscriber = collecting<0>(profiler, cupti::Kind::ConcurrentKernel);
  CHECK_EQ(enable_v2(profiler, subscriber, cupti::Kind::GraphTrace), kTaken);
  uint8_t on = 1;
  size_t size = sizeof on;
  CHECK_EQ(profiler.call<cupti::CuptiActivitySetAttribute_v2>("cuptiActivitySetAttribute_v2", subscriber,
                                                              cupti::Attribute::GraphTraceForAll, &size,
                                                              static_cast<void*>(&on)),
           Profiler::kOk);
  CHECK_EQ(enable_v2(profiler, subscriber, cupti::Kind::GraphTrace), Profiler::kOk);
}

SCENARIO(each_subscriber_is_called_back_and_keeps_its_own_word, {"CUPTI_VERSION", "13.3"}) {
  const Program program;
  const Profiler profiler;
  constexpr uint32_t launch = cupti::cbid_of("cuLaunchKernel");
  cupti::Subscriber subscribers[2] = {};
  for (cupti::Subscriber& subscriber : subscribers) {
    CHECK_EQ(subscribe_v2(profiler, &subscriber, true), Profiler::kOk);
    CHECK_EQ(profiler.call<cupti::CuptiEnableCallback>("cuptiEnableCallback", 1u, subscriber, cupti::Domain::DriverApi,
                                                       launch),
             Profiler::kOk);
  }
  program.launch(program.function("k"));
  const std::vector<SeenCallback> callbacks = Profiler::callbacks();
  REQUIRE(callbacks.size() == 4);
  for (const SeenCallback& callback : callbacks) CHECK(callback.data_kept && callback.correlation == 1);
}

}  // namespace bragg::fake::selftest
