#include "bindings/host_sampler.h"

#include <Python.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "api/bragg_core.h"
#include "bindings/code_object.h"
#include "bindings/gil_taker.h"
#include "bindings/other_threads.h"
#include "bindings/pending_calls.h"
#include "bindings/thread_place.h"
#include "bindings/thread_waits.h"
#include "context/due_sample.h"

namespace bragg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFreeGil = std::chrono::microseconds(50);
constexpr auto kMainsTurn = std::chrono::milliseconds(1);  // to sample the other threads, when it has the GIL anyway
constexpr int64_t kLongestInterruptionNs = 200'000;        // what is longer was a thread that had the GIL meanwhile

// Asks for samples until it is told to stop.
class Ticker {
 public:
  explicit Ticker(std::chrono::microseconds interval)
      : others_(interval.count()),
        taker_([this](Clock::duration waited) { use_gil(waited); }),
        thread_([this, interval] { run(interval); }) {}

  void tell_to_stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_signal_.notify_all();
    taker_.tell_to_stop();
  }
  void join() {
    thread_.join();
    taker_.join();
  }

  // What was seen since this was last asked.
  [[nodiscard]] ThreadPlaces take_places() {
    const std::lock_guard lock(places_mutex_);
    return std::exchange(places_, {});
  }
  [[nodiscard]] std::map<std::string, int64_t> sampled_threads() {  // GIL
    const std::lock_guard lock(others_mutex_);
    return others_.ran_ns();
  }
  // GIL. Not while the ticker looks at them: nobody waits for that.
  void sample_others();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void run(std::chrono::microseconds interval);
  void see_main_thread();
  [[nodiscard]] bool look_at_others();
  [[nodiscard]] bool has_others_due();
  void ask_main_thread();
  void hurry_main_thread();
  void use_gil(Clock::duration waited);                     // the taker's thread
  bool waits(Lock& lock, std::chrono::microseconds time) {  // false: it was told to stop
    return !stop_signal_.wait_for(lock, time, [&] { return stopping_; });
  }

  std::mutex others_mutex_;  // nor this one
  OtherThreads others_;
  std::mutex places_mutex_;  // never held while anything is waited for
  ThreadPlaces places_;
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stopping_ = false;
  std::atomic<bool> is_hurrying_{false};
  GilTaker taker_;
  std::thread thread_;
};

struct Sampler {
  uint32_t users = 0;              // GIL
  int64_t sampled_ns = 0;          // the last time; GIL
  ThreadWaits waits;               // main thread
  std::unique_ptr<Ticker> ticker;  // GIL
  std::atomic<const void*> main_thread{nullptr};
  std::atomic<bool> is_queued{false};  // take_queued_sample is one of the interpreter's pending calls
  std::atomic<int64_t> taken_ns{0};    // when the ticker took the GIL away from a thread that ran; 0: it did not
};

Sampler& sampler() {
  static Sampler& instance = *new Sampler;
  return instance;
}

const PyThreadState* main_thread_state() { return static_cast<const PyThreadState*>(sampler().main_thread.load()); }

// The thread that ran gave the GIL away and takes it back: it waits twice as long as it takes from the one to the
// other.
int64_t interruption_ns() {
  const int64_t now_ns = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  const int64_t taken_ns = sampler().taken_ns.exchange(0);
  return taken_ns != 0 ? std::clamp<int64_t>(2 * (now_ns - taken_ns), 0, kLongestInterruptionNs) : 0;
}

struct Span {
  int64_t start_ns;
  int64_t end_ns;
};

// One sample for each place in which the thread was, of the time in which it was there.
void record_stays(const ThreadPlaces& places, Span whole, int64_t waited_ns, int64_t held_up_ns) {
  const double waited_share =
      static_cast<double>(waited_ns) / static_cast<double>(std::max<int64_t>(whole.end_ns - whole.start_ns, 1));
  const std::span<const ThreadPlaces::Stay> stays = places.stays();
  int64_t start_ns = whole.start_ns;
  for (size_t i = 0; i < std::max<size_t>(stays.size(), 1); ++i) {
    const bool is_last = i + 1 >= stays.size();
    const int64_t end_ns = is_last ? whole.end_ns : std::clamp(stays[i].until_ns, start_ns, whole.end_ns);
    const ThreadPlace place = stays.empty() ? ThreadPlace{} : stays[i].place;
    const auto waited_here_ns = static_cast<int64_t>(waited_share * static_cast<double>(end_ns - start_ns));
    const LivingFrames seen(place, PythonFrameIterator());
    const bragg_host_sample sample{end_ns, end_ns - start_ns, waited_here_ns, seen.data(), seen.size()};
    if (is_last || end_ns > start_ns) bragg_sample(&sample, i == 0 ? held_up_ns : 0);
    start_ns = end_ns;
  }
}

void take_sample() {
  Sampler& self = sampler();
  const int64_t held_up_ns = interruption_ns();
  const int64_t now_ns = bragg_now_ns();
  const int64_t sampled_ns = std::exchange(self.sampled_ns, now_ns);
  const int64_t waited_ns = self.waits.since_last(now_ns - sampled_ns);
  record_stays(self.ticker ? self.ticker->take_places() : ThreadPlaces{}, {sampled_ns, now_ns}, waited_ns, held_up_ns);
  if (self.ticker) self.ticker->sample_others();
}

// A scope may have taken it meanwhile.
int take_queued_sample(void*) {
  sampler().is_queued.store(false);
  if (due_sample.is_due.exchange(false)) take_sample();
  return 0;
}

// Whether the caller is the main thread and has the GIL: code that begins ranges may be anywhere.
bool is_running_main_thread() {
#if PY_VERSION_HEX >= 0x030D0000
  const PyThreadState* current = PyThreadState_GetUnchecked();
#else
  const PyThreadState* current = _PyThreadState_UncheckedGet();  // before 3.12: of whichever thread has the GIL
#endif
  return current != nullptr && current == sampler().main_thread.load() && current == PyGILState_GetThisThreadState();
}

void take_due_sample() noexcept {
  if (is_running_main_thread() && due_sample.is_due.exchange(false)) take_sample();
}

void Ticker::see_main_thread() {
  const std::lock_guard lock(places_mutex_);
  places_.see(place_of(sampler().main_thread.load()), bragg_now_ns());
}

bool Ticker::look_at_others() {
  const std::lock_guard lock(others_mutex_);
  return others_.look(main_thread_state(), taker_.python_id());
}

bool Ticker::has_others_due() {
  const std::lock_guard lock(others_mutex_);
  return others_.is_due();
}

void Ticker::sample_others() {
  const std::unique_lock lock(others_mutex_, std::try_to_lock);
  if (lock && others_.is_due()) others_.sample(main_thread_state());
}

// Before 3.13 a pending call from another thread waits until the main thread takes the GIL anew: where another thread
// runs, make it give the GIL away.
void Ticker::hurry_main_thread() {
#if PY_VERSION_HEX < 0x030D0000
  if (bragg_remind_main_thread(sampler().main_thread.load()) != 0) return;
  is_hurrying_.store(true);
  taker_.take();
#endif
}

void Ticker::use_gil(Clock::duration waited) {
  if (is_hurrying_.exchange(false) && waited > kFreeGil)
    sampler().taken_ns.store(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  sample_others();
}

void Ticker::ask_main_thread() {
  Sampler& self = sampler();
  if (due_sample.is_due.exchange(true)) return;
  if (self.is_queued.exchange(true) || Py_AddPendingCall(take_queued_sample, nullptr) == 0) {
    hurry_main_thread();
  } else {
    self.is_queued.store(false);
    due_sample.is_due.store(false);
  }
}

void Ticker::run(std::chrono::microseconds interval) {
  bragg_note_own_thread();
  pthread_setname_np(pthread_self(), "bragg-sampler");
  Lock lock(mutex_);
  while (waits(lock, interval)) {
    lock.unlock();
    see_main_thread();
    const bool was_due = look_at_others();
    ask_main_thread();
    const bool is_due = was_due && has_others_due();
    lock.lock();
    if (!is_due || !waits(lock, kMainsTurn)) continue;
    lock.unlock();
    if (has_others_due()) taker_.take();
    lock.lock();
  }
}

}  // namespace

void start_host_sampler(uint32_t interval_us) {
  Sampler& self = sampler();
  if (self.users++ > 0) return;
  self.sampled_ns = bragg_now_ns();
  self.main_thread.store(bragg_main_thread_state());
  due_sample.take.store(take_due_sample, std::memory_order_release);
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

std::map<std::string, int64_t> sampled_threads() {
  Sampler& self = sampler();
  return self.ticker ? self.ticker->sampled_threads() : std::map<std::string, int64_t>{};
}

void forget_host_sampler_after_fork() {
  Sampler& self = sampler();
  (void)self.ticker.release();  // its thread does not exist here
  self.waits.forget();
  self.is_queued.store(false);  // a sample that the parent's thread had asked for would be waited for without end
  due_sample.is_due.store(false);
  self.taken_ns.store(0);
  restore_switch_interval();  // the parent's thread may have been at it
  self.users = 0;
}

}  // namespace bragg
