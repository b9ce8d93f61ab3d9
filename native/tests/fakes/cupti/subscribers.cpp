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

cupti::Result Subscribers::subscribe(cupti::Subscriber* subscriber, cupti::Callback* callback, void* user_data,
                                     const std::string& name) {
  if (subscriber == nullptr) return cupti::Result::InvalidParameter;
  const std::lock_guard lock(mutex_);
  if (knob(Knob::SlotTaken) != 0 || current_.load() != nullptr || !attach_to_driver())
    return cupti::Result::MultipleSubscribersNotSupported;
  cupti::SubscriberHandle& handle = all_.emplace_back();
  handle.callback = callback;
  handle.user_data = user_data;
  handle.name = name;
  *subscriber = &handle;
  current_.store(*subscriber, std::memory_order_release);
  return cupti::Result::Success;
}

cupti::Result Subscribers::unsubscribe(cupti::Subscriber subscriber) {
  const std::lock_guard lock(mutex_);
  if (subscriber == nullptr || subscriber != current_.load()) return cupti::Result::InvalidParameter;
  current_.store(nullptr, std::memory_order_release);
  return cupti::Result::Success;
}

cupti::Result Subscribers::enable(cupti::Subscriber subscriber, cupti::Domain domain, uint32_t cbid, bool on) {
  const std::lock_guard lock(mutex_);
  if (subscriber == nullptr || subscriber != current_.load() || cbid == 0 || cbid >= id_count(domain))
    return cupti::Result::InvalidParameter;
  subscriber->enabled[static_cast<size_t>(domain)][cbid].store(on, std::memory_order_relaxed);
  return cupti::Result::Success;
}

cupti::Result Subscribers::enable(cupti::Subscriber subscriber, cupti::Domain domain, bool on) {
  const std::lock_guard lock(mutex_);
  if (subscriber == nullptr || subscriber != current_.load() || id_count(domain) == 0)
    return cupti::Result::InvalidParameter;
  for (uint32_t cbid = 1; cbid < id_count(domain); ++cbid)
    subscriber->enabled[static_cast<size_t>(domain)][cbid].store(on, std::memory_order_relaxed);
  return cupti::Result::Success;
}

std::string Subscribers::holder() {
  const std::lock_guard lock(mutex_);
  const cupti::Subscriber subscriber = current_.load();
  return subscriber != nullptr ? "CUPTI for " + subscriber->name : setting("SLOT_HOLDER", "Nsight Systems");
}

}  // namespace bragg::fake
