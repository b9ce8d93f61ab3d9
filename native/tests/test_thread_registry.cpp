// Threads that meet the recorder for the first time at once.
#include "context/thread_registry.h"

#include <atomic>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
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

// Of the mapping that a context lies in, in huge pages; kB.
uint64_t huge_kb_at(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      const auto at = reinterpret_cast<uintptr_t>(address);
      is_inside = begin <= at && at < end;
    } else if (is_inside && line.starts_with("AnonHugePages:")) {
      return std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return 0;
}

TEST(a_thread_that_records_much_has_its_context_in_one_page) {
  const auto context = std::make_unique<ThreadContext>();
  const auto record = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) context->record(bragg::Event::of(bragg::EventKind::Mark, 0));
  };
  record(100);
  CHECK(!context->take_huge_page_if_busy());
  record(5'000);
  const bool has_page = context->take_huge_page_if_busy();  // the kernel may have none
  CHECK_EQ(context->take_huge_page_if_busy(), has_page);
  if (has_page) CHECK(huge_kb_at(context.get()) >= ThreadContext::kHugePageBytes / 1024);
  uint32_t events = 0;
  context->ring.drain([&](const bragg::Event& event) { events += event.kind == bragg::EventKind::Mark; });
  CHECK_EQ(events, 5'100u);
}

TEST(a_thread_that_makes_its_context_keeps_no_other_thread_waiting) {
  watched = new ThreadRegistry(make_while_another_thread_looks);  // a thread that waits for it may be left behind
  ThreadContext* const context = watched->acquire();
  CHECK(was_free.load());
  watched->release(context);
  CHECK_EQ(watched->acquire(), context);
}

}  // namespace
