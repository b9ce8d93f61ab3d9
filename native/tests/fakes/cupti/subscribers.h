// The one subscription to callbacks.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>

#include "backends/cuda/driver/cupti_abi.h"

namespace bragg::cupti {

struct SubscriberHandle {
  static constexpr size_t kDomains = 7, kIds = 1024;
  Callback* callback = nullptr;
  void* user_data = nullptr;
  std::string name;
  std::array<std::array<std::atomic<bool>, kIds>, kDomains> enabled{};
};

}  // namespace bragg::cupti

namespace bragg::fake {

// Threads: any.
class Subscribers {
 public:
  // MultipleSubscribersNotSupported while another holds the subscription.
  [[nodiscard]] cupti::Result subscribe(cupti::Subscriber* subscriber, cupti::Callback* callback, void* user_data,
                                        const std::string& name);
  // Callbacks that have begun may still run when this returns, as with the real one.
  [[nodiscard]] cupti::Result unsubscribe(cupti::Subscriber subscriber);
  [[nodiscard]] cupti::Result enable(cupti::Subscriber subscriber, cupti::Domain domain, uint32_t cbid, bool on);
  [[nodiscard]] cupti::Result enable(cupti::Subscriber subscriber, cupti::Domain domain, bool on);
  [[nodiscard]] std::string holder();

  // The subscriber that wants this callback, or null.
  [[nodiscard]] cupti::Subscriber wanting(cupti::Domain domain, uint32_t cbid) const {
    const cupti::Subscriber subscriber = current_.load(std::memory_order_acquire);
    if (subscriber == nullptr) return nullptr;
    const auto& enabled = subscriber->enabled[static_cast<size_t>(domain)][cbid];
    return enabled.load(std::memory_order_relaxed) ? subscriber : nullptr;
  }

 private:
  std::mutex mutex_;
  std::deque<cupti::SubscriberHandle> all_;  // never freed: a call may still be using a former one
  std::atomic<cupti::Subscriber> current_{nullptr};
};

}  // namespace bragg::fake
