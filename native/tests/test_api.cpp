// The C functions of the core, called as they should not be.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "api/bragg_core.h"
#include "check.h"
#include "context/loaded_library.h"
#include "recording.h"

namespace {

using bragg::test::Recording;

TEST(a_forked_child_may_call_the_session_that_is_its_parents) {
  const Recording recording("fork");
  const pid_t child = fork();
  if (child == 0) {
    recording.activate();
    recording.flush();
    recording.deactivate();
    _exit(recording.count("launches") == ~0ull && bragg_is_recording() == 0 ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(recording.count("launches"), 0);
}

TEST(a_child_forked_while_a_thread_walks_the_libraries_may_walk_them_too) {
  const Recording recording("fork_in_walk");
  std::atomic<bool> walks{false};
  std::thread walking([&walks] {
    bragg::library_walks.walk(
        [](dl_phdr_info*, size_t, void* begun) {
          static_cast<std::atomic<bool>*>(begun)->store(true);
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          return 1;
        },
        &walks);
  });
  while (!walks.load()) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // else it would wait for ever
    _exit(bragg::libraries_loaded() > 0 ? 0 : 1);
  }
  walking.join();
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

TEST(sessions_that_do_not_exist_are_left_alone) {
  for (const int session : {-1, 3, 15, 16, 1000}) {
    bragg_session_activate(session);
    bragg_session_deactivate(session, 1);
    bragg_session_flush(session);
    bragg_session_stop(session, "{}");
    int os_error = 0;
    char reason[64] = "";
    CHECK_EQ(bragg_session_advance(session, "/nowhere", "{}", "{}", &os_error, reason, sizeof reason), -1);
    CHECK_EQ(std::string(reason), "this session was stopped");
  }
}

TEST(a_reason_that_is_cut_ends_with_a_whole_character) {
  const std::string library = "\u4E2D\u4E2D\u4E2D";  // three bytes each
  char reason[9] = "";
  bragg_begin_operator_trial(library.c_str(), reason, sizeof reason);
  CHECK_EQ(std::string(reason), library.substr(0, 6));
}

}  // namespace
