#include "bindings/gil_taker.h"

#include <Python.h>
#include <pthread.h>

#include <atomic>
#include <utility>

#include "api/bragg_core.h"
#include "bindings/gil_fields.h"
#include "context/peeked_memory.h"

namespace bragg {
namespace {

constexpr std::chrono::microseconds kTurn{6'000};  // CPython's own, and what waking takes
constexpr unsigned long kLongestUs = 5'000;        // a program that sets more wants no switches
constexpr unsigned long kShortUs = 21;             // with the timer's 50: less than what passes between two signs
std::atomic<unsigned long> switch_interval_us{0};  // the program's, when it was last shortened; 0: never

bool interpreter_ends() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

unsigned long switches() noexcept {
  bragg_gil_fields gil{};
  return bragg_find_gil(&gil) != 0 ? __atomic_load_n(gil.n_switches, __ATOMIC_RELAXED) : 0;
}

// Where it was, who waits has its turn soon, and would only wake more often.
bool is_requested(const bragg_gil_fields& gil) noexcept {
  uint32_t request = 0;
  return gil.request != nullptr && peek_bytes(gil.request, &request, sizeof request) && (request & 1) != 0;
}

// Who waits sees it at the next sign.
void shorten_switch_interval() noexcept {
  bragg_gil_fields gil{};
  if (bragg_find_gil(&gil) == 0 || is_requested(gil)) return;
  unsigned long programs_us = __atomic_load_n(gil.interval_us, __ATOMIC_RELAXED);
  if (programs_us <= kShortUs || programs_us > kLongestUs) return;
  switch_interval_us.store(programs_us);
  __atomic_compare_exchange_n(gil.interval_us, &programs_us, kShortUs, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

}  // namespace

void restore_switch_interval() noexcept {
  const unsigned long programs_us = switch_interval_us.load();
  bragg_gil_fields gil{};
  if (programs_us == 0 || bragg_find_gil(&gil) == 0) return;
  unsigned long short_us = kShortUs;  // else the program has set another one meanwhile
  __atomic_compare_exchange_n(gil.interval_us, &short_us, programs_us, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

GilTaker::GilTaker(std::function<void(Clock::duration)> call) : call_(std::move(call)), thread_([this] { run(); }) {}

void GilTaker::take() noexcept {
  Lock lock(mutex_);
  if (is_stopping_) return;
  const unsigned long n_switches = switches();
  is_asked_ = true;
  question_.notify_one();
  if (is_done_after(lock, kTurn) || switches() != n_switches) return;
  shorten_switch_interval();
  (void)is_done_after(lock, kTurn);
  restore_switch_interval();
}

unsigned long GilTaker::python_id() noexcept { return static_cast<unsigned long>(thread_.native_handle()); }

void GilTaker::tell_to_stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  question_.notify_one();
}

void GilTaker::run() {
  bragg_note_own_thread();
  pthread_setname_np(pthread_self(), "bragg-gil");
  Lock lock(mutex_);
  while (true) {
    question_.wait(lock, [this] { return is_asked_ || is_stopping_; });
    is_stopping_ = is_stopping_ || interpreter_ends();
    if (is_stopping_) return;
    lock.unlock();
    const Clock::time_point asked = Clock::now();
    const PyGILState_STATE state = PyGILState_Ensure();  // where the interpreter ends meanwhile, the thread does
    restore_switch_interval();
    call_(Clock::now() - asked);
    PyGILState_Release(state);
    lock.lock();
    is_asked_ = false;
    answer_.notify_one();
  }
}

}  // namespace bragg
