// The state of the fake CUPTI, and its connection to the fake driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include "cupti/delivery.h"
#include "cupti/sinks.h"
#include "cupti/subscribers.h"
#include "cupti/version.h"
#include "link.h"
#include "settings.h"

namespace bragg::fake {

struct State {
  Subscribers subscribers;
  Sinks sinks{0};  // of version 1
  Delivery delivery;
  std::atomic<uint32_t> last_correlation{0};
  std::atomic<bool> traces_graphs_for_all{false};
  std::mutex traceable_graphs_mutex;
  std::set<uint32_t> traceable_graphs;  // executable graphs that were made while GraphTrace was enabled
  std::atomic<bool> latency_timestamps{false};
  std::atomic<cupti::ThreadIdType> thread_id_type{cupti::ThreadIdType::Default};

  // Of all who use CUPTI.
  template <class Give>
  void for_each_sinks(Give&& give) {
    give(sinks);
    if (subscribers.use() == Subscribers::Use::Version1) return;
    subscribers.for_each([&](size_t, cupti::Subscriber subscriber) { give(subscriber->sinks); });
  }
  [[nodiscard]] bool is_enabled(cupti::Kind kind) {
    bool enabled = false;
    for_each_sinks([&](const Sinks& each) { enabled = enabled || each.is_enabled(kind); });
    return enabled;
  }
  [[nodiscard]] bool has_enabled() {
    bool enabled = false;
    for_each_sinks([&](const Sinks& each) { enabled = enabled || each.kinds.load(std::memory_order_relaxed) != 0; });
    return enabled;
  }
};

[[nodiscard]] State& state();
// This thread: one of the program's.
[[nodiscard]] bool has_launched() noexcept;
// The buffers of all who use CUPTI.
[[nodiscard]] std::vector<Buffer> collect_all(bool everything);

// Null while no fake libcuda.so.1 can be found.
[[nodiscard]] const Driver* driver();
// False if another copy of the fake CUPTI is attached.
[[nodiscard]] bool attach_to_driver();
[[nodiscard]] uint64_t now_ns() noexcept;

enum class Needs { Nothing, Driver };

// Why an entry point cannot do its work: a failure that was ordered, no driver, a forked process. Success: it can.
[[nodiscard]] cupti::Result obstacle(const char* entry_point, Needs needs);

// The body of an entry point.
template <class Body>
cupti::Result api(const char* entry_point, Needs needs, Body&& body) {
  const cupti::Result result = obstacle(entry_point, needs);
  return result != cupti::Result::Success ? result : body();
}

}  // namespace bragg::fake

#define FAKE_CUPTI(name) BRAGG_FAKE_EXPORT bragg::cupti::Result name
// static_assert that an entry point has the signature that bragg declares for it.
#define FAKE_CUPTI_IS(name, type) static_assert(std::is_same_v<decltype(name), bragg::cupti::type>)
