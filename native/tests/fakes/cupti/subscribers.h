// Who is called back: one subscriber of version 1, or of version 2 one or several.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>

#include "backends/cuda/driver/cupti_abi.h"
#include "cupti/sinks.h"

namespace bragg::cupti {

struct SubscriberHandle {
  static constexpr size_t kDomains = 7, kIds = 1024;
  explicit SubscriberHandle(size_t slot) : sinks(slot + 1) {}

  Callback* callback = nullptr;
  void* user_data = nullptr;
  std::string name;
  fake::Sinks sinks;  // of version 2
  std::array<std::array<std::atomic<bool>, kIds>, kDomains> enabled{};
};

}  // namespace bragg::cupti

namespace bragg::fake {

// Threads: any.
class Subscribers {
 public:
  static constexpr size_t kMax = Sinks::kMax - 1;

  // How a process uses CUPTI: the first of those that subscribe at a time decides.
  enum class Use : uint8_t { None, Version1, Alone, Together };

  // MultipleSubscribersNotSupported: another holds the only subscription, or uses CUPTI otherwise.
  [[nodiscard]] cupti::Result subscribe(cupti::Subscriber* subscriber, cupti::Callback* callback, void* user_data,
                                        const std::string& name, Use use);
  // Callbacks that have begun may still run when this returns, as with the real one.
  [[nodiscard]] cupti::Result unsubscribe(cupti::Subscriber subscriber);
  [[nodiscard]] cupti::Result enable(cupti::Subscriber subscriber, cupti::Domain domain, uint32_t cbid, bool on);
  [[nodiscard]] cupti::Result enable(cupti::Subscriber subscriber, cupti::Domain domain, bool on);
  [[nodiscard]] std::string holder();

  // Records and buffers of all, as functions of version 1 know them, and of one subscriber. False: these functions may
  // not be used here.
  [[nodiscard]] bool may_use_version1();
  [[nodiscard]] bool may_use_version2(cupti::Subscriber subscriber);
  // Never again once version 1 was used (13.5 on an H100).
  [[nodiscard]] bool gives_records_by_version2();
  [[nodiscard]] Use use() const { return use_.load(); }

  [[nodiscard]] bool wants(cupti::Domain domain, uint32_t cbid) const {
    bool wants = false;
    for_each_wanting(domain, cbid, [&](size_t, cupti::Subscriber) { wants = true; });
    return wants;
  }
  // Calls `give(slot, subscriber)`.
  template <class Give>
  void for_each_wanting(cupti::Domain domain, uint32_t cbid, Give&& give) const {
    for_each([&](size_t slot, cupti::Subscriber subscriber) {
      const auto& enabled = subscriber->enabled[static_cast<size_t>(domain)][cbid];
      if (enabled.load(std::memory_order_relaxed)) give(slot, subscriber);
    });
  }
  template <class Give>
  void for_each(Give&& give) const {
    for (size_t slot = 0; slot < kMax; ++slot)
      if (const cupti::Subscriber subscriber = current_[slot].load(std::memory_order_acquire)) give(slot, subscriber);
  }

 private:
  [[nodiscard]] bool is_current(cupti::Subscriber subscriber) const;
  [[nodiscard]] bool has_any() const;
  [[nodiscard]] bool may_subscribe(Use use) const;

  std::mutex mutex_;
  std::deque<cupti::SubscriberHandle> all_;  // never freed: a call may still be using a former one
  std::array<std::atomic<cupti::Subscriber>, kMax> current_{};
  std::atomic<Use> use_{Use::None};
  bool used_version1_ = false;
};

}  // namespace bragg::fake
