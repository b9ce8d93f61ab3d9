// Who gets callbacks, and which.
#include <algorithm>
#include <cstring>
#include <string>

#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {
namespace {

constexpr auto kTaken = cupti::Result::MultipleSubscribersNotSupported;

size_t count(const std::vector<SeenCallback>& callbacks, uint32_t cbid, cupti::CallbackSite site) {
  return static_cast<size_t>(std::count_if(callbacks.begin(), callbacks.end(), [&](const SeenCallback& callback) {
    return callback.domain == cupti::Domain::DriverApi && callback.cbid == cbid && callback.site == site;
  }));
}

cupti::Result subscribe(const Profiler& profiler, cupti::Subscriber* subscriber) {
  return profiler.call<cupti::CuptiSubscribe>("cuptiSubscribe", subscriber, on_callback, nullptr);
}

cupti::Result unsubscribe(const Profiler& profiler, cupti::Subscriber subscriber) {
  return profiler.call<cupti::CuptiUnsubscribe>("cuptiUnsubscribe", subscriber);
}

}  // namespace

SCENARIO(second_subscriber_is_refused_until_the_first_leaves) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber first = nullptr, second = nullptr;
  CHECK_EQ(subscribe(profiler, &first), Profiler::kOk);
  CHECK_EQ(subscribe(profiler, &second), kTaken);
  CHECK_EQ(unsubscribe(profiler, first), Profiler::kOk);
  CHECK_EQ(unsubscribe(profiler, first), cupti::Result::InvalidParameter);
  CHECK_EQ(subscribe(profiler, &second), Profiler::kOk);
}

SCENARIO(second_copy_of_cupti_is_refused) {
  const Program program;
  const Profiler ours("libcupti.so.13"), other("libcupti.so.12");
  cupti::Subscriber subscriber = nullptr;
  CHECK_EQ(subscribe(ours, &subscriber), Profiler::kOk);
  CHECK_EQ(subscribe(other, &subscriber), kTaken);
}

SCENARIO(holder_of_the_slot_is_named) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber subscriber = nullptr;
  char holder[cupti::kOldSubscriberNameBytes] = "";
  cupti::SubscriberParams params{};
  params.struct_size_bytes = cupti::kSubscriberParamsBytes13_0;
  params.name = "first";
  params.old_name = holder;
  params.old_name_size_bytes = sizeof holder;
  const auto subscribe_v2 = [&] {
    return profiler.call<cupti::CuptiSubscribe_v2>("cuptiSubscribe_v2", &subscriber, on_callback, nullptr, &params);
  };
  CHECK_EQ(subscribe_v2(), Profiler::kOk);
  CHECK_EQ(subscribe_v2(), kTaken);
  CHECK_EQ(std::string(holder), "CUPTI for first");
}

SCENARIO(slot_taken_by_another_tool, {"SLOT_TAKEN", "1"}, {"SLOT_HOLDER", "Other Profiler"}) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber subscriber = nullptr;
  CHECK_EQ(subscribe(profiler, &subscriber), kTaken);
  char holder[8] = "";
  cupti::SubscriberParams params{};
  params.old_name = holder;
  params.old_name_size_bytes = sizeof holder;
  CHECK_EQ(profiler.call<cupti::CuptiSubscribe_v2>("cuptiSubscribe_v2", &subscriber, on_callback, nullptr, &params),
           kTaken);
  CHECK_EQ(std::string(holder), "Other P");  // cut to the space there is
}

SCENARIO(callbacks_surround_each_call_with_one_correlation_id) {
  const Program program;
  Profiler profiler;
  profiler.start({});
  const cuda::Function kernel = program.function("kernel_name");
  for (int i = 0; i < 3; ++i) program.launch(kernel);
  std::vector<SeenCallback> callbacks = Profiler::callbacks();
  std::erase_if(callbacks, [](const SeenCallback& each) { return each.cbid != cupti::cbid_of("cuLaunchKernel"); });
  REQUIRE(callbacks.size() == 6);
  for (size_t i = 0; i < callbacks.size(); ++i) {
    CHECK_EQ(callbacks[i].site, i % 2 == 0 ? cupti::CallbackSite::Enter : cupti::CallbackSite::Exit);
    CHECK_EQ(callbacks[i].correlation, callbacks[0].correlation + i / 2);
    CHECK_EQ(callbacks[i].symbol, "kernel_name");
    CHECK(callbacks[i].data_kept);
  }
}

SCENARIO(callbacks_come_only_for_enabled_ids) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber subscriber = nullptr;
  constexpr uint32_t launch = cupti::cbid_of("cuLaunchKernel"), set = cupti::cbid_of("cuMemsetD8Async");
  CHECK_EQ(subscribe(profiler, &subscriber), Profiler::kOk);
  const auto enable = [&](uint32_t on, uint32_t cbid) {
    return profiler.call<cupti::CuptiEnableCallback>("cuptiEnableCallback", on, subscriber, cupti::Domain::DriverApi,
                                                     cbid);
  };
  const auto launch_and_set = [&] {
    program.launch(program.function("k"));
    program.set(64, nullptr);
  };
  launch_and_set();
  CHECK(Profiler::callbacks().empty());
  CHECK_EQ(enable(1, launch), Profiler::kOk);
  launch_and_set();
  CHECK_EQ(count(Profiler::callbacks(), launch, cupti::CallbackSite::Enter), 1);
  CHECK_EQ(count(Profiler::callbacks(), set, cupti::CallbackSite::Enter), 0);
  CHECK_EQ(enable(0, launch), Profiler::kOk);
  launch_and_set();
  CHECK_EQ(count(Profiler::callbacks(), launch, cupti::CallbackSite::Exit), 1);
  CHECK_EQ(enable(1, 807), cupti::Result::InvalidParameter);  // 13.0 knows 806 and fewer
}

SCENARIO(calls_of_the_driver_within_calls_of_the_runtime_share_their_correlation_id) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  CHECK_EQ(
      profiler.call<cupti::CuptiEnableDomain>("cuptiEnableDomain", 1u, profiler.subscriber, cupti::Domain::RuntimeApi),
      Profiler::kOk);
  const size_t before = Profiler::callbacks().size();
  program.must("cudaDeviceSynchronize");
  program.synchronize();
  std::vector<SeenCallback> callbacks = Profiler::callbacks();
  callbacks.erase(callbacks.begin(), callbacks.begin() + static_cast<ptrdiff_t>(before));
  constexpr cupti::Domain kDomains[] = {cupti::Domain::RuntimeApi, cupti::Domain::DriverApi, cupti::Domain::DriverApi,
                                        cupti::Domain::RuntimeApi, cupti::Domain::DriverApi, cupti::Domain::DriverApi};
  REQUIRE(callbacks.size() == std::size(kDomains));
  for (size_t i = 0; i < callbacks.size(); ++i) {
    CHECK_EQ(callbacks[i].domain, kDomains[i]);
    CHECK_EQ(callbacks[i].correlation, callbacks[0].correlation + i / 4);
    CHECK_EQ(callbacks[i].site, i == 0 || i == 1 || i == 4 ? cupti::CallbackSite::Enter : cupti::CallbackSite::Exit);
  }
}

SCENARIO(callbacks_have_names_with_their_version) {
  const Profiler profiler;
  const char* name = nullptr;
  CHECK_EQ(profiler.call<cupti::CuptiGetCallbackName>("cuptiGetCallbackName", cupti::Domain::RuntimeApi, 211u, &name),
           Profiler::kOk);
  CHECK_EQ(std::string(name), "cudaLaunchKernel_v7000");
  CHECK_EQ(profiler.call<cupti::CuptiGetCallbackName>("cuptiGetCallbackName", cupti::Domain::DriverApi, 245u, &name),
           Profiler::kOk);
  CHECK_EQ(std::string(name), "cuMemFree_v2");
  CHECK_EQ(profiler.call<cupti::CuptiGetCallbackName>("cuptiGetCallbackName", cupti::Domain::DriverApi, 1023u, &name),
           cupti::Result::InvalidParameter);
}

SCENARIO(only_calls_that_are_followed_use_up_correlation_ids) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber subscriber = nullptr;
  CHECK_EQ(subscribe(profiler, &subscriber), Profiler::kOk);
  CHECK_EQ(profiler.call<cupti::CuptiEnableCallback>("cuptiEnableCallback", 1u, subscriber, cupti::Domain::DriverApi,
                                                     cupti::cbid_of("cuLaunchKernel")),
           Profiler::kOk);
  for (int i = 0; i < 3; ++i) {
    program.launch(program.function("k"));
    program.synchronize();
  }
  CHECK_EQ(Profiler::callbacks().back().correlation, 3);
}

SCENARIO_FOR(symbols_appear_with_the_release_that_brought_them, "12.4", "13.0", "13.3") {
  const Profiler profiler;
  const std::string release = getenv("BRAGG_FAKE_CUPTI_VERSION");
  CHECK(profiler.find<cupti::CuptiSubscribe>("cuptiSubscribe") != nullptr);
  CHECK_EQ(profiler.find<cupti::CuptiSubscribe_v2>("cuptiSubscribe_v2") != nullptr, release >= "13.0");
  CHECK_EQ(profiler.find<cupti::CuptiActivityGetStructSize>("cuptiActivityGetStructSize") != nullptr,
           release >= "13.2");
}

SCENARIO(symbols_can_be_left_out, {"CUPTI_VERSION", "13.3"},
         {"OMIT", "cuptiGetGraphExecId,cuptiActivityGetStructSize"}) {
  const Profiler profiler;
  CHECK(profiler.find<cupti::CuptiActivityGetStructSize>("cuptiActivityGetStructSize") == nullptr);
  CHECK(profiler.find<cupti::CuptiGetGraphExecId>("cuptiGetGraphExecId") == nullptr);
  CHECK(profiler.find<cupti::CuptiSubscribe_v2>("cuptiSubscribe_v2") != nullptr);
}

SCENARIO(ordered_failures_of_cupti_calls, {"FAIL", "cuptiSubscribe=35,cuptiActivityEnable=999"}) {
  const Program program;
  const Profiler profiler;
  cupti::Subscriber subscriber = nullptr;
  CHECK_EQ(subscribe(profiler, &subscriber), cupti::Result::InsufficientPrivileges);
  CHECK_EQ(profiler.call<cupti::CuptiActivityEnable>("cuptiActivityEnable", cupti::Kind::Memcpy),
           cupti::Result::Unknown);
}

SCENARIO_FOR(without_a_driver, "12.8", "13.0", "13.2", "13.5") {
  const Profiler profiler;
  const std::string release = getenv("BRAGG_FAKE_CUPTI_VERSION");
  uint32_t version = 0;
  cupti::Subscriber subscriber = nullptr;
  const cupti::Result answers = release >= "13.2" ? cupti::Result::Unknown : Profiler::kOk;
  CHECK_EQ(profiler.call<cupti::CuptiGetVersion>("cuptiGetVersion", &version), answers);
  CHECK_EQ(subscribe(profiler, &subscriber), release >= "13" ? cupti::Result::Unknown : cupti::Result::NotInitialized);
}

}  // namespace bragg::fake::selftest
