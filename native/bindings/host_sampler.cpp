#include "bindings/host_sampler.h"

#include <Python.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "api/bragg_core.h"
#include "bindings/pending_calls.h"
#include "bindings/thread_waits.h"

namespace bragg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFreeGil = std::chrono::microseconds(50);
constexpr int64_t kLongestInterruptionNs = 200'000;  // what is longer was a thread that had the GIL meanwhile

// Asks for samples until it is told to stop.
class Ticker {
 public:
  explicit Ticker(std::chrono::microseconds interval) : thread_([this, interval] { run(interval); }) {}

  void tell_to_stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_signal_.notify_all();
  }
  void join() { thread_.join(); }

 private:
  void run(std::chrono::microseconds interval);

  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stopping_ = false;
  std::thread thread_;
};

struct Sampler {
  uint32_t users = 0;              // GIL
  int64_t sampled_ns = 0;          // the last time; GIL
  ThreadWaits waits;               // main thread
  std::unique_ptr<Ticker> ticker;  // GIL
  std::atomic<const void*> main_thread{nullptr};
  std::atomic<bool> is_due{false};
  std::atomic<int64_t> taken_ns{0};  // when the ticker took the GIL away from a thread that ran; 0: it did not
};

Sampler& sampler() {
  static Sampler& instance = *new Sampler;
  return instance;
}

// Before 3.13 a pending call from another thread waits until the main thread takes the GIL anew: where another thread
// runs, make it give the GIL away.
void hurry_pending_calls() {
#if PY_VERSION_HEX < 0x030D0000
  if (bragg_remind_main_thread(sampler().main_thread.load()) != 0) return;
  const Clock::time_point asked = Clock::now();
  const PyGILState_STATE state = PyGILState_Ensure();
  const Clock::time_point taken = Clock::now();
  if (taken - asked > kFreeGil) sampler().taken_ns.store(taken.time_since_epoch() / std::chrono::nanoseconds(1));
  PyGILState_Release(state);
#endif
}

// The thread that ran gave the GIL away and takes it back: it waits twice as long as it takes from the one to the
// other.
int64_t interruption_ns() {
  const int64_t now_ns = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  const int64_t taken_ns = sampler().taken_ns.exchange(0);
  return taken_ns != 0 ? std::clamp<int64_t>(2 * (now_ns - taken_ns), 0, kLongestInterruptionNs) : 0;
}

int take_sample(void*) {
  Sampler& self = sampler();
  self.is_due.store(false);
  const int64_t held_up_ns = interruption_ns();
  const int64_t now_ns = bragg_now_ns();
  const int64_t elapsed_ns = now_ns - std::exchange(self.sampled_ns, now_ns);
  bragg_sample(now_ns, elapsed_ns, self.waits.since_last(elapsed_ns), held_up_ns);
  return 0;
}

void Ticker::run(std::chrono::microseconds interval) {
  pthread_setname_np(pthread_self(), "bragg-sampler");
  Sampler& self = sampler();
  std::unique_lock lock(mutex_);
  while (!stop_signal_.wait_for(lock, interval, [&] { return stopping_; })) {
    if (self.is_due.exchange(true)) continue;
    lock.unlock();
    if (Py_AddPendingCall(take_sample, nullptr) == 0) {
      hurry_pending_calls();
    } else {
      self.is_due.store(false);
    }
    lock.lock();
  }
}

}  // namespace

void start_host_sampler(uint32_t interval_us) {
  Sampler& self = sampler();
  if (self.users++ > 0) return;
  self.sampled_ns = bragg_now_ns();
  self.main_thread.store(bragg_main_thread_state());
  self.ticker = std::make_unique<Ticker>(std::chrono::microseconds(interval_us));
}

// Another thread may start the next one while this one is waited for.
void stop_host_sampler() {
  Sampler& self = sampler();
  if (self.users == 0 || --self.users > 0) return;
  const std::unique_ptr<Ticker> stopped = std::move(self.ticker);
  stopped->tell_to_stop();
  Py_BEGIN_ALLOW_THREADS;  // it may be waiting for the GIL
  stopped->join();
  Py_END_ALLOW_THREADS;
}

void forget_host_sampler_after_fork() {
  Sampler& self = sampler();
  (void)self.ticker.release();  // its thread does not exist here
  self.waits.forget();
  self.is_due.store(false);  // a sample that the parent's thread had asked for would be waited for without end
  self.taken_ns.store(0);
  self.users = 0;
}

}  // namespace bragg
