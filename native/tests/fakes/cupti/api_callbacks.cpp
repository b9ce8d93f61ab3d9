// Subscription and callbacks.
#include <chrono>
#include <cstring>
#include <thread>

#include "cupti/optional_symbol.h"
#include "cupti/tool.h"

namespace bragg::fake {
namespace {

void put_holder(const cupti::SubscriberParams& params) {
  if (params.old_name == nullptr || params.old_name_size_bytes == 0) return;
  std::strncpy(params.old_name, state().subscribers.holder().c_str(), params.old_name_size_bytes - 1);
  params.old_name[params.old_name_size_bytes - 1] = '\0';
}

// Before 13.3 this is version 1 with names.
Subscribers::Use use_of(const cupti::SubscriberParams* params) {
  if (emulated_release().api_version < cupti::kSharedFrom) return Subscribers::Use::Version1;
  const bool together =
      params != nullptr && params->struct_size_bytes > cupti::kSubscriberParamsBytes13_0 && params->allow_multiple != 0;
  return together ? Subscribers::Use::Together : Subscribers::Use::Alone;
}

cupti::Result subscribe_v2(cupti::Subscriber* subscriber, cupti::Callback* callback, void* user_data,
                           cupti::SubscriberParams* params) {
  return api("cuptiSubscribe_v2", Needs::Driver, [&] {
    const char* name = params != nullptr && params->name != nullptr ? params->name : "unnamed";
    const Subscribers::Use use = use_of(params);
    if (params != nullptr && use == Subscribers::Use::Together) put_holder(*params);
    const cupti::Result result = state().subscribers.subscribe(subscriber, callback, user_data, name, use);
    if (result == cupti::Result::MultipleSubscribersNotSupported && params != nullptr) put_holder(*params);
    return result;
  });
}

void deliver_late() {
  const int64_t late_ms = knob(Knob::LateMs);
  if (late_ms == 0) return;
  std::thread([late_ms] {
    std::this_thread::sleep_for(std::chrono::milliseconds(late_ms));
    state().delivery.flush(collect_all(true), true);
  }).detach();
}

}  // namespace

FAKE_CUPTI(cuptiSubscribe)(cupti::Subscriber* subscriber, cupti::Callback* callback, void* user_data) {
  return api("cuptiSubscribe", Needs::Driver, [&] {
    return state().subscribers.subscribe(subscriber, callback, user_data, "unnamed", Subscribers::Use::Version1);
  });
}
FAKE_CUPTI_IS(cuptiSubscribe, CuptiSubscribe);

FAKE_OPTIONAL_CUPTI(cuptiSubscribe_v2, CuptiSubscribe_v2, subscribe_v2, 130000)

FAKE_CUPTI(cuptiUnsubscribe)(cupti::Subscriber subscriber) {
  return api("cuptiUnsubscribe", Needs::Driver, [&] {
    const cupti::Result result = state().subscribers.unsubscribe(subscriber);
    if (result == cupti::Result::Success) deliver_late();
    return result;
  });
}
FAKE_CUPTI_IS(cuptiUnsubscribe, CuptiUnsubscribe);

FAKE_CUPTI(cuptiEnableCallback)(uint32_t enable, cupti::Subscriber subscriber, cupti::Domain domain, uint32_t cbid) {
  return api("cuptiEnableCallback", Needs::Driver,
             [&] { return state().subscribers.enable(subscriber, domain, cbid, enable != 0); });
}
FAKE_CUPTI_IS(cuptiEnableCallback, CuptiEnableCallback);

FAKE_CUPTI(cuptiEnableDomain)(uint32_t enable, cupti::Subscriber subscriber, cupti::Domain domain) {
  return api("cuptiEnableDomain", Needs::Driver,
             [&] { return state().subscribers.enable(subscriber, domain, enable != 0); });
}
FAKE_CUPTI_IS(cuptiEnableDomain, CuptiEnableDomain);

}  // namespace bragg::fake
