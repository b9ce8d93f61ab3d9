// Threads that meet the recorder for the first time at once.
#include "context/thread_registry.h"

#include <atomic>
#include <memory>
#include <thread>

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

}  // namespace
