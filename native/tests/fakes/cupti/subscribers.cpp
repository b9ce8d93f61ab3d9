#include "cupti/subscribers.h"

#include "cupti/tool.h"
#include "cupti/version.h"
#include "settings.h"

namespace bragg::fake {
namespace {

// Callback ids of a domain, and one more than the last; 0: no such domain.
uint32_t id_count(cupti::Domain domain) {
  switch (domain) {
    case cupti::Domain::DriverApi:
      return emulated_release().driver_call_count;
    case cupti::Domain::Resource:
      return 24;
    case cupti::Domain::RuntimeApi:
    case cupti::Domain::Nvtx:
      return cupti::SubscriberHandle::kIds;
    case cupti::Domain::Synchronize:
    case cupti::Domain::State:
      return 4;
  }
  return 0;
}

}  // namespace

bool Subscribers::has_any() const {
  bool found = false;
  for_each([&](size_t, cupti::Subscriber) { found = true; });
  return found;
}

// One that is alone may use either version, unless records of version 1 are wanted, subscribed or not.
bool Subscribers::may_subscribe(Use use) const {
  if (knob(Knob::SlotTaken) != 0 || (use == Use::Together && knob(Knob::NoSharing) != 0)) return false;
  if (has_any()) return use_.load() == use && use == Use::Together;
  return use == Use::Version1 || state().sinks.kinds.load() == 0;
}

cupti::Result Subscribers::subscribe(cupti::Subscriber* subscriber, cupti::Callback* callback, void* user_data,
                                     const std::string& name, Use use) {
  if (subscriber == nullptr) return cupti::Result::InvalidParameter;
  const std::lock_guard lock(mutex_);
  if (!may_subscribe(use) || !attach_to_driver()) return cupti::Result::MultipleSubscribersNotSupported;
  for (size_t slot = 0; slot < kMax; ++slot) {
    if (current_[slot].load() != nullptr) continue;
    cupti::SubscriberHandle& handle = all_.emplace_back(slot);
    handle.callback = callback;
    handle.user_data = user_data;
    handle.name = name;
    handle.sinks.per_thread.store(state().sinks.per_thread.load());
    handle.sinks.in_launch_order.store(state().sinks.in_launch_order.load());
    *subscriber = &handle;
    use_.store(use);
    used_version1_ |= use == Use::Version1;
    current_[slot].store(*subscriber, std::memory_order_release);
    return cupti::Result::Success;
  }
  return cupti::Result::OutOfMemory;
}

cupti::Result Subscribers::unsubscribe(cupti::Subscriber subscriber) {
  const std::lock_guard lock(mutex_);
  if (!is_current(subscriber)) return cupti::Result::InvalidParameter;
  for (auto& each : current_)
    if (each.load() == subscriber) each.store(nullptr, std::memory_order_release);
  return cupti::Result::Success;
}

bool Subscribers::is_current(cupti::Subscriber subscriber) const {
  bool found = false;
  for_each([&](size_t, cupti::Subscriber each) { found = found || each == subscriber; });
  return subscriber != nullptr && found;
}

bool Subscribers::may_use_version1() {
  const std::lock_guard lock(mutex_);
  if (!has_any()) use_.store(Use::Version1);
  used_version1_ |= use_.load() == Use::Version1;
  return use_.load() == Use::Version1;
}

bool Subscribers::may_use_version2(cupti::Subscriber subscriber) {
  const std::lock_guard lock(mutex_);
  return use_.load() != Use::Version1 && is_current(subscriber);
}

bool Subscribers::gives_records_by_version2() {
  const std::lock_guard lock(mutex_);
  return !used_version1_;
}

cupti::Result Subscribers::enable(cupti::Subscriber subscriber, cupti::Domain domain, uint32_t cbid, bool on) {
  const std::lock_guard lock(mutex_);
  if (!is_current(subscriber) || cbid == 0 || cbid >= id_count(domain)) return cupti::Result::InvalidParameter;
  subscriber->enabled[static_cast<size_t>(domain)][cbid].store(on, std::memory_order_relaxed);
  return cupti::Result::Success;
}

cupti::Result Subscribers::enable(cupti::Subscriber subscriber, cupti::Domain domain, bool on) {
  const std::lock_guard lock(mutex_);
  if (!is_current(subscriber) || id_count(domain) == 0) return cupti::Result::InvalidParameter;
  for (uint32_t cbid = 1; cbid < id_count(domain); ++cbid)
    subscriber->enabled[static_cast<size_t>(domain)][cbid].store(on, std::memory_order_relaxed);
  return cupti::Result::Success;
}

std::string Subscribers::holder() {
  const std::lock_guard lock(mutex_);
  std::string name;
  for_each([&](size_t, cupti::Subscriber subscriber) { name = name.empty() ? "CUPTI for " + subscriber->name : name; });
  return !name.empty() ? name : setting("SLOT_HOLDER", "Nsight Systems");
}

}  // namespace bragg::fake
