// Hundreds of threads, of which a tick looks at a few.
#include <algorithm>
#include <memory>
#include <vector>

#include "check.h"
#include "context/thread_turns.h"

namespace {

using bragg::Look;

struct Watched {
  explicit Watched(int number) : name(number) {}
  int name;
  uint64_t ran_tick = 0;
};

// Threads that run from some tick on, and how often each was looked at.
struct Program {
  Program(int n_threads, int64_t interval_us) : turns(interval_us), n_looks(n_threads), n_places(n_threads) {
    std::vector<std::unique_ptr<Watched>> threads;
    for (int i = 0; i < n_threads; ++i) threads.push_back(std::make_unique<Watched>(i));
    runs.resize(n_threads);
    turns.replace(std::move(threads));
  }
  void tick() {
    n_in_tick = n_placed_in_tick = 0;
    turns.look_in_turn([&](const Watched& thread, bool may_read_place) {
      const int name = thread.name;
      ++n_looks[name], ++n_in_tick;
      if (!runs[name]) return Look::Idle;
      if (!may_read_place) return Look::Ran;
      ++n_places[name], ++n_placed_in_tick;
      return Look::Placed;
    });
  }
  [[nodiscard]] int fewest_looks() const { return *std::min_element(n_looks.begin(), n_looks.end()); }

  bragg::ThreadTurns<Watched> turns;
  std::vector<bool> runs;
  std::vector<int> n_looks, n_places;
  int n_in_tick = 0, n_placed_in_tick = 0;
};

TEST(a_tick_looks_at_five_of_hundreds_of_idle_threads_and_each_has_its_turn) {
  Program program(500, 1000);
  for (int i = 0; i < 100; ++i) {
    program.tick();
    CHECK_EQ(program.n_in_tick, 5);
  }
  CHECK_EQ(program.fewest_looks(), 1);
  Program slower(500, 10'000);
  slower.tick();
  CHECK_EQ(slower.n_in_tick, 50);
}

TEST(of_hundreds_of_threads_that_run_a_tick_reads_one_place) {
  Program program(300, 1000);
  program.runs.assign(300, true);
  for (int i = 0; i < 1000; ++i) {
    program.tick();
    CHECK_EQ(program.n_placed_in_tick, 1);
    CHECK(program.n_in_tick <= 10);
  }
  CHECK_EQ(*std::min_element(program.n_places.begin(), program.n_places.end()), 3);
}

TEST(a_thread_that_runs_among_hundreds_that_wait_is_looked_at_in_each_tick) {
  Program program(300, 1000);
  program.runs[200] = true;
  for (int i = 0; i < 60; ++i) program.tick();
  CHECK(program.n_places[200] >= 1);
  const int before = program.n_places[200];
  for (int i = 0; i < 100; ++i) program.tick();
  CHECK_EQ(program.n_places[200] - before, 100);
  CHECK(program.fewest_looks() >= 2);
}

TEST(few_threads_are_all_looked_at_in_each_tick_whether_they_run_or_not) {
  Program program(5, 1000);
  program.runs[0] = true;
  for (int i = 0; i < 300; ++i) program.tick();
  for (const int n : program.n_looks) CHECK_EQ(n, 300);
  CHECK_EQ(program.n_places[0], 300);
}

TEST(a_thread_that_no_longer_runs_waits_for_its_turn_again) {
  Program program(300, 1000);
  program.runs[7] = true;
  for (int i = 0; i < 60; ++i) program.tick();
  program.runs[7] = false;
  for (int i = 0; i < 100; ++i) program.tick();
  const int before = program.n_looks[7];
  for (int i = 0; i < 600; ++i) program.tick();
  CHECK(program.n_looks[7] - before <= 11);
  CHECK(program.n_looks[7] - before >= 9);
}

}  // namespace
