#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/bragg_core.h"
#include "bindings/thread_place.h"
#include "context/thread_turns.h"

namespace bragg {

// Samples of the Python threads beside the main one. Who has the GIL tells nothing of them, and nobody may wait for
// it at each tick: a thread is looked at without it, in its turn, and sampled, with it, only if it was found on a core.
// What its clock of the processor says that it has run since its last sample counts for where it was found. Threads: as
// the owner locks.
class OtherThreads {
 public:
  explicit OtherThreads(int64_t interval_us) : threads_(interval_us) {}
  // Without the GIL. Whether `sample` has something to do.
  // `sampler`: the thread that takes the GIL for `sample`, as Python numbers it.
  [[nodiscard]] bool look(const PyThreadState* main_thread, unsigned long sampler) noexcept;
  [[nodiscard]] bool is_due() const noexcept { return wants_threads_ || !seen_.empty(); }
  // GIL: all threads stand still, or run what is no Python code.
  void sample(const PyThreadState* main_thread);

  // What was sampled, by the thread's name.
  [[nodiscard]] const std::map<std::string, int64_t>& ran_ns() const noexcept { return ran_ns_; }

 private:
  struct Seen {
    ThreadPlace place;  // without code: it is where it is when it is sampled
    bragg_open_entry entry;
    int64_t at_ns;
    int64_t ran_ns;  // until then
  };
  struct Thread {
    const PyThreadState* state = nullptr;
    uint64_t number = 0;          // of the state, of all that the interpreter had
    unsigned long python_id = 0;  // of its thread; before that begins of the one that made it, or 0
    uint32_t id = 0;              // as the system numbers it; 0: it has not begun, or is not known
    int64_t sampled_ns = 0;       // of its clock of the processor
    int64_t looked_ns = 0;        // the same, when its place was last looked for
    int64_t n_waits = -1;         // until then, if it wanted a core
    RawFrame frame{};             // where it then was
    std::vector<Seen> seen;       // since its last sample
    std::string name;
    uint64_t ran_tick = 0;
  };
  [[nodiscard]] Look look_at(Thread& thread, bool may_read_place) noexcept;
  [[nodiscard]] static bool is_computing(Thread& thread, const RawFrame& frame, int64_t ran_ns) noexcept;
  [[nodiscard]] const PyThreadState* newest_state() const noexcept;
  static void leave_out(Thread& thread, int64_t ran_ns) noexcept;
  void note(Thread& thread, const Seen& seen);
  void record_seen();
  void forget_shorter_half();  // names of threads that ran less
  void find_threads(const PyThreadState* main_thread);
  [[nodiscard]] std::unique_ptr<Thread> begin(const PyThreadState* state, uint32_t id, int64_t now_ns) const;
  [[nodiscard]] bool may_find() const noexcept;
  [[nodiscard]] static bool is_of(const Thread& thread, const PyThreadState* state) noexcept;
  void record(Thread& thread, const Seen& seen, bool has_ended);

  ThreadTurns<Thread> threads_;
  std::vector<Thread*> seen_;  // of them
  std::map<std::string, int64_t> ran_ns_;
  unsigned long sampler_ = 0;
  const PyThreadState* newest_ = nullptr;  // when the threads were found; not the sampler's
  int64_t known_ns_ = bragg_now_ns();      // when these were all threads that there are
  uint32_t n_tries_ = 0;                   // to tell those that had not
  size_t n_ticks_ = 0;                     // since they were found
  bool are_known_ = true;                  // none has ended since, and all had begun
  bool wants_threads_ = false;
};

}  // namespace bragg
