// Threads of the recorder, which do not keep a process alive.
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace
