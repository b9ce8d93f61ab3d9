#include "bindings/other_threads.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "bindings/code_object.h"
#include "bindings/thread_names.h"

namespace bragg {
namespace {

constexpr int64_t kLeastRanNs = 20'000;  // less is a thread that looked up and went on waiting
constexpr int64_t kOverdueNs = 10'000'000;
constexpr uint32_t kMaxTries = 1000;  // where a thread may stay unknown
constexpr size_t kMaxNames = 200;     // programs may make threads without end
constexpr const char* kUnnamed = "without a name";

// Of any thread of this process, in whatever state it is; nothing: it has ended.
std::optional<int64_t> processor_ns(uint32_t thread) noexcept {
  constexpr clockid_t kOfThread = 6;  // as the kernel numbers the clocks of threads by their ids
  timespec time{};
  if (clock_gettime(static_cast<clockid_t>(~thread << 3) | kOfThread, &time) != 0) return {};
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// It is on a core if its clock goes on while it is looked at. On a busy machine this thread takes the core from it each
// time: then it is enough that it wants one, though it may be where it has just stopped waiting.
bool is_running(uint32_t thread, int64_t before_ns, int64_t unsampled_ns) noexcept {
  if (processor_ns(thread).value_or(before_ns) > before_ns) return true;
  return unsampled_ns > kOverdueNs && bragg_is_running(thread) != 0;
}

template <class See>
void for_each_state(See&& see) {
  const auto* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  for (; state != nullptr; state = PyThreadState_Next(const_cast<PyThreadState*>(state))) see(state);
}

uint64_t number_of(const PyThreadState* state) noexcept {
  return PyThreadState_GetID(const_cast<PyThreadState*>(state));
}

// Up to 3.11 a state has the number of the thread that made it, until its own one begins.
bool has_begun(const PyThreadState* state) {
  bool is_own = state->thread_id != 0;
  for_each_state(
      [&](const PyThreadState* other) { is_own = is_own && (other == state || other->thread_id != state->thread_id); });
  return is_own;
}

}  // namespace

bool OtherThreads::look(const PyThreadState* main_thread) noexcept {
  sampler_ = pthread_self();
  const PyThreadState* newest = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  if (newest == main_thread && threads_.empty()) {
    newest_ = newest;
    known_ns_ = bragg_now_ns();
    return false;
  }
  if (newest == newest_) known_ns_ = bragg_now_ns();
  is_due_ = newest != newest_;
  for (Thread& thread : threads_) look_at(thread);
  return is_due_;
}

void OtherThreads::look_at(Thread& thread) noexcept {
  thread.seen.reset();
  unsigned long python_id = 0;
  const bool is_same =
      peek_bytes(&thread.state->thread_id, &python_id, sizeof python_id) && python_id == thread.python_id;
  if (!is_same || thread.id == 0) {
    is_due_ = is_due_ || !is_same || n_tries_ < kMaxTries;
    return;
  }
  const std::optional<int64_t> ran_ns = processor_ns(thread.id);
  if (!ran_ns || *ran_ns - thread.sampled_ns < kLeastRanNs) return;
  const std::optional<ThreadPlace> place = passing_place_of(thread.state);
  const bragg_open_entry entry = bragg_open_entry_of(thread.id);
  if (!is_running(thread.id, *ran_ns, *ran_ns - thread.sampled_ns)) return;
  if (!place) {
    thread.sampled_ns = *ran_ns;  // native code alone
    return;
  }
  thread.seen = Seen{*place, entry, bragg_now_ns(), *ran_ns};
  is_due_ = true;
}

void OtherThreads::sample(const PyThreadState* main_thread) {
  is_due_ = false;
  find_threads(main_thread);
  for (Thread& thread : threads_)
    if (const auto seen = std::exchange(thread.seen, std::nullopt)) record(thread, *seen);
}

// Those that are known keep what was seen of them.
void OtherThreads::find_threads(const PyThreadState* main_thread) {
  const int64_t now_ns = bragg_now_ns();
  std::vector<Thread> found;
  bool has_newest = false, are_known = true;
  for_each_state([&](const PyThreadState* state) {
    if (state->thread_id == sampler_) return;
    if (!std::exchange(has_newest, true)) newest_ = state;
    if (state == main_thread) return;
    const auto known = std::find_if(threads_.begin(), threads_.end(), [&](const Thread& thread) {
      return thread.state == state && thread.number == number_of(state) && thread.python_id == state->thread_id &&
             thread.id != 0;
    });
    found.push_back(known != threads_.end() ? std::move(*known) : begin(state, now_ns));
    are_known = are_known && found.back().id != 0;
    if (found.back().id != 0 && bragg_is_own_thread(found.back().id) != 0) found.pop_back();
  });
  threads_ = std::move(found);
  n_tries_ = are_known ? 0 : n_tries_ + 1;
  known_ns_ = now_ns;
}

// One that began since the last look may have ended at the next one, so it is sampled where it is. Another one has come
// to Python from native code, whose time that is.
OtherThreads::Thread OtherThreads::begin(const PyThreadState* state, int64_t now_ns) const {
  const uint32_t id = has_begun(state) ? thread_id_of(state) : 0;
  const int64_t ran_ns = id != 0 ? processor_ns(id).value_or(0) : 0;
  Thread thread{state, number_of(state), state->thread_id, id, ran_ns <= now_ns - known_ns_ ? 0 : ran_ns, {}, {}};
  if (ran_ns - thread.sampled_ns >= kLeastRanNs) thread.seen = Seen{{}, bragg_open_entry_of(id), now_ns, ran_ns};
  return thread;
}

// Code that has died since cannot be told; where the thread is now, it can.
void OtherThreads::record(Thread& thread, const Seen& seen) {
  const ThreadPlace& place = seen.place;
  const bool is_code = lives(place.frame.code) && has_instruction(place.frame);
  const bragg_thread_sample sample{thread.id,
                                   thread.state,
                                   seen.at_ns,
                                   seen.ran_ns - thread.sampled_ns,
                                   is_code ? seen.entry : bragg_open_entry_of(thread.id),
                                   as_sampled(is_code ? place.frame : RawFrame{}),
                                   as_sampled(is_code ? place.caller : RawFrame{})};
  thread.sampled_ns = seen.ran_ns;
  if (bragg_sample_thread(&sample) == 0) return;
  if (thread.name.empty()) thread.name = name_of(thread.state);
  const bool is_told = !thread.name.empty() && (ran_ns_.contains(thread.name) || ran_ns_.size() < kMaxNames);
  ran_ns_[is_told ? thread.name : kUnnamed] += sample.ran_ns;
}

}  // namespace bragg
