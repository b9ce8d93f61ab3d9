#include "bindings/host_sampler.h"

#include <Python.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "api/bragg_core.h"

namespace bragg {
namespace {

using Clock = std::chrono::steady_clock;

struct Sampler {
  uint32_t users = 0;             // GIL
  Clock::time_point last_sample;  // GIL
  std::atomic<bool> is_due{false};
  std::mutex mutex;
  std::condition_variable stop_signal;
  bool stopping = false;
  std::unique_ptr<std::thread> thread;
};

Sampler& sampler() {
  static Sampler& instance = *new Sampler;
  return instance;
}

// Before 3.13 a pending call from another thread waits until the main thread takes the GIL anew: make it do so.
void hurry_pending_calls() {
#if PY_VERSION_HEX < 0x030D0000
  PyGILState_Release(PyGILState_Ensure());
#endif
}

int take_sample(void*) {
  Sampler& self = sampler();
  self.is_due.store(false);
  const Clock::time_point now = Clock::now();
  bragg_sample(std::chrono::duration_cast<std::chrono::nanoseconds>(now - self.last_sample).count());
  self.last_sample = now;
  return 0;
}

void tick(std::chrono::microseconds interval) {
  pthread_setname_np(pthread_self(), "bragg-sampler");
  Sampler& self = sampler();
  std::unique_lock lock(self.mutex);
  while (!self.stop_signal.wait_for(lock, interval, [&] { return self.stopping; })) {
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
  self.last_sample = Clock::now();
  self.stopping = false;
  self.thread = std::make_unique<std::thread>(tick, std::chrono::microseconds(interval_us));
}

void stop_host_sampler() {
  Sampler& self = sampler();
  if (self.users == 0 || --self.users > 0) return;
  {
    const std::lock_guard lock(self.mutex);
    self.stopping = true;
  }
  self.stop_signal.notify_all();
  Py_BEGIN_ALLOW_THREADS;  // the sampler may be waiting for the GIL
  self.thread->join();
  Py_END_ALLOW_THREADS;
  self.thread.reset();
}

void forget_host_sampler_after_fork() {
  Sampler& self = sampler();
  (void)self.thread.release();  // that thread does not exist here
  new (&self.mutex) std::mutex;
  new (&self.stop_signal) std::condition_variable;
  self.users = 0;
}

}  // namespace bragg
