// A thread whose events nobody reads.
#include <chrono>
#include <cstdint>
#include <thread>

#include "check.h"
#include "context/thread_context.h"

namespace {

using bragg::Event;
using bragg::EventKind;
using bragg::Ring;
using bragg::ThreadContext;

constexpr Event kEvent = Event::spanning(EventKind::Scope, 0, {}, {0, 0});

TEST(a_thread_waits_once_for_a_consumer_that_does_not_come_and_recovers_when_it_does) {
  std::thread([] {
    ThreadContext& thread = ThreadContext::current();
    for (uint32_t i = 0; i < Ring::kCapacity; ++i) thread.record(kEvent);
    CHECK_EQ(thread.dropped.load(), 0);
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) thread.record(kEvent);
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));  // 200 s when each one waits
    CHECK_EQ(thread.dropped.load(), 1000);
    CHECK_EQ(thread.ring.drain([](const Event&) {}), Ring::kCapacity);
    for (uint32_t i = 0; i < Ring::kCapacity; ++i) thread.record(kEvent);
    CHECK_EQ(thread.dropped.load(), 1000);
    CHECK_EQ(thread.ring.drain([](const Event&) {}), Ring::kCapacity);
  }).join();
}

}  // namespace
