// A thread whose events nobody reads.
#include <sys/resource.h>

#include <cstdint>
#include <thread>

#include "check.h"
#include "context/thread_context.h"

namespace {

using bragg::Event;
using bragg::EventKind;
using bragg::Ring;
using bragg::ThreadContext;

// How often this thread gave its core away.
int64_t naps() {
  rusage usage{};
  CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

constexpr Event kEvent = Event::spanning(EventKind::Scope, 0, {}, {0, 0});

TEST(a_thread_waits_once_for_a_consumer_that_does_not_come_and_recovers_when_it_does) {
  std::thread([] {
    ThreadContext& thread = ThreadContext::current();
    for (uint32_t i = 0; i < Ring::kCapacity; ++i) thread.record(kEvent);
    CHECK_EQ(thread.dropped.load(), 0);
    const int64_t before = naps();
    for (int i = 0; i < 1000; ++i) thread.record(kEvent);
    CHECK(naps() - before < 100'000);  // some 20,000; 20 million when each one waits
    CHECK_EQ(thread.dropped.load(), 1000);
    CHECK_EQ(thread.ring.drain([](const Event&) {}), Ring::kCapacity);
    for (uint32_t i = 0; i < Ring::kCapacity; ++i) thread.record(kEvent);
    CHECK_EQ(thread.dropped.load(), 1000);
    CHECK_EQ(thread.ring.drain([](const Event&) {}), Ring::kCapacity);
  }).join();
}

}  // namespace
