// Threads of the recorder, which do not keep a process alive.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "check.h"
#include "context/own_threads.h"

namespace {

TEST(threads_of_the_recorder_are_known_however_many_they_are) {
  constexpr int kThreads = 100;
  std::vector<int> ids(kThreads);
  std::latch begun(kThreads), may_end(1);
  std::vector<std::thread> threads;
  for (int& id : ids)
    threads.emplace_back([&] {
      bragg::note_own_thread();
      id = static_cast<int>(syscall(SYS_gettid));
      begun.count_down();
      may_end.wait();
    });
  begun.wait();
  for (const int id : ids) CHECK(bragg::is_own_thread(id));
  may_end.count_down();
  for (std::thread& thread : threads) thread.join();
  for (const int id : ids) CHECK(!bragg::is_own_thread(id));
}

TEST(a_thread_that_computes_has_waited_as_often_as_before_and_one_that_waits_is_not_counted) {
  std::atomic<int> id{0};
  std::atomic<bool> may_compute{true};
  std::latch may_end(1);
  std::thread thread([&] {
    id.store(static_cast<int>(syscall(SYS_gettid)));
    while (may_compute.load()) {
    }
    may_end.wait();
  });
  while (id.load() == 0) std::this_thread::yield();
  const int64_t n_waits = bragg::waits_if_runnable(id.load());
  CHECK(n_waits >= 0);
  CHECK_EQ(bragg::waits_if_runnable(id.load()), n_waits);
  may_compute.store(false);
  while (bragg::thread_state(id.load()) == 'R') std::this_thread::yield();
  CHECK_EQ(bragg::waits_if_runnable(id.load()), -1);
  may_end.count_down();
  thread.join();
  CHECK_EQ(bragg::waits_if_runnable(1 << 30), -1);
}

}  // namespace
