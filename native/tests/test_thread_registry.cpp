// Threads that meet the recorder for the first time at once.
#include "context/thread_registry.h"

#include <atomic>
#include <memory>
#include <thread>

#include "api/bragg_core.h"
#include "check.h"
#include "context/thread_context.h"

namespace {

using bragg::ThreadContext;
using bragg::ThreadRegistry;

ThreadRegistry* watched = nullptr;
std::atomic<bool> was_free{false};

// 600 KB are allocated and partly written to: 0.1 ms, during which the registry must be free for others.
std::unique_ptr<ThreadContext> make_while_another_thread_looks() {
  static std::thread looker;
  looker = std::thread([] {
    watched->for_each([](const ThreadContext&) {});
    was_free.store(true);
  });
  (void)bragg::test::comes_true([] { return was_free.load(); });
  looker.detach();
  return std::make_unique<ThreadContext>();
}

TEST(a_thread_that_makes_its_context_keeps_no_other_thread_waiting) {
  watched = new ThreadRegistry(make_while_another_thread_looks);  // a thread that waits for it may be left behind
  ThreadContext* const context = watched->acquire();
  CHECK(was_free.load());
  watched->release(context);
  CHECK_EQ(watched->acquire(), context);
}

constexpr bragg::FrameId kFrame{1};

TEST(another_thread_sees_the_entry_that_a_thread_is_in_while_it_enters_and_leaves) {
  std::atomic<uint32_t> id{0};
  std::atomic<bool> is_seen{false}, is_outside{false}, is_over{false};
  std::thread worker([&] {
    ThreadContext& self = ThreadContext::current();
    id.store(self.system_id);
    while (!is_seen.load()) {
      bragg::push_context(bragg::Source::Api, kFrame);
      bragg::pop_context(bragg::Source::Api);
    }
    is_outside.store(true);
    (void)bragg::test::comes_true([&] { return is_over.load(); });
  });
  CHECK(bragg::test::comes_true([&] {
    const bragg_open_entry entry = bragg_open_entry_of(id.load());
    return entry.shadow != 0 && entry.python != 0;
  }));
  is_seen.store(true);
  CHECK(bragg::test::comes_true([&] { return is_outside.load(); }));
  CHECK_EQ(bragg_open_entry_of(id.load()).shadow, 0u);
  is_over.store(true);
  worker.join();
}

TEST(another_thread_sees_an_entry_whole) {
  constexpr int kLooks = 200'000;
  ThreadContext& self = ThreadContext::current();
  bragg::push_context(bragg::Source::Api, kFrame);
  const bragg::ContextNodes whole = self.open_entry();
  bragg::pop_context(bragg::Source::Api);
  std::atomic<bool> is_over{false};
  int n_torn = 0;
  std::thread other([&] {
    for (int i = 0; i < kLooks; ++i) {
      const bragg::ContextNodes entry = self.open_entry();
      n_torn += entry != whole && entry != bragg::ContextNodes{};
    }
    is_over.store(true);
  });
  while (!is_over.load()) {
    bragg::push_context(bragg::Source::Api, kFrame);
    bragg::pop_context(bragg::Source::Api);
  }
  other.join();
  CHECK_EQ(n_torn, 0);
}

TEST(a_context_without_a_thread_is_nobodys) {
  ThreadRegistry registry;
  ThreadContext* const context = registry.acquire();
  CHECK(context->system_id != 0);
  registry.release(context);
  CHECK_EQ(context->system_id, 0u);
}

}  // namespace
