#include "bindings/other_threads.h"

#include <time.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "bindings/code_object.h"
#include "bindings/thread_names.h"
#include "context/peeked_memory.h"

namespace bragg {
namespace {

constexpr int64_t kLeastRanNs = 20'000;  // less is a thread that looked up and went on waiting
constexpr int64_t kOverdueNs = 5'000'000;
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

template <class See>
void for_each_state(See&& see) {
  const auto* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  for (; state != nullptr; state = PyThreadState_Next(const_cast<PyThreadState*>(state))) see(state);
}

uint64_t number_of(const PyThreadState* state) noexcept {
  return PyThreadState_GetID(const_cast<PyThreadState*>(state));
}

// Without the GIL.
bool has_the_gil(const PyThreadState* state) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  decltype(state->_status) status{};
  return peek_bytes(&state->_status, &status, sizeof status) && status.active != 0;
#else
  return _PyThreadState_UncheckedGet() == state;  // of whichever thread has it
#endif
}

// With the GIL: as long as a state is among the interpreter's, nobody frees it.
bool is_linked(const PyThreadState* state, uint64_t number) noexcept {
  PyThreadState copy;
  if (!peek_bytes(state, &copy, sizeof copy) || copy.id != number) return false;
  if (copy.prev == nullptr) return PyInterpreterState_ThreadHead(PyInterpreterState_Main()) == state;
  const PyThreadState* next = nullptr;
  return peek_bytes(&copy.prev->next, &next, sizeof next) && next == state;
}

// Up to 3.11 a state has the number of the thread that made it, until its own one begins: those that only one has.
std::vector<unsigned long> begun_threads(const std::vector<const PyThreadState*>& states) {
  std::vector<unsigned long> all, found;
  for (const PyThreadState* state : states) all.push_back(state->thread_id);
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_repeated = (i > 0 && all[i - 1] == all[i]) || (i + 1 < all.size() && all[i + 1] == all[i]);
    if (all[i] != 0 && !is_repeated) found.push_back(all[i]);
  }
  return found;
}

}  // namespace

bool OtherThreads::look(const PyThreadState* main_thread, unsigned long sampler) noexcept {
  sampler_ = sampler;
  const PyThreadState* newest = newest_state();
  if (newest == main_thread && threads_.size() == 0) {
    newest_ = newest;
    known_ns_ = bragg_now_ns();
    return false;
  }
  if (newest == newest_) known_ns_ = bragg_now_ns();
  ++n_ticks_;
  threads_.look_in_turn([this](Thread& thread, bool may_read_place) { return look_at(thread, may_read_place); });
  wants_threads_ = (newest != newest_ || !are_known_) && may_find();
  return is_due();
}

// Not the sampler's, which has one while it waits for the GIL.
const PyThreadState* OtherThreads::newest_state() const noexcept {
  const PyThreadState* newest = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  if (newest == newest_ || newest == nullptr) return newest;
  unsigned long thread = 0;
  const PyThreadState* next = nullptr;
  const bool is_samplers = peek_bytes(&newest->thread_id, &thread, sizeof thread) && thread == sampler_;
  return is_samplers && peek_bytes(&newest->next, &next, sizeof next) ? next : newest;
}

// The threads that are found are a few in a tick, too, on average. With the GIL: 50 to 100 ns for each.
bool OtherThreads::may_find() const noexcept {
  constexpr size_t kFoundForClock = 8;
  return n_ticks_ * threads_.clocks_per_tick() * kFoundForClock >= threads_.size();
}

Look OtherThreads::look_at(Thread& thread, bool may_read_place) noexcept {
  if (thread.id == 0) return Look::Idle;
  const std::optional<int64_t> ran_ns = processor_ns(thread.id);
  are_known_ = are_known_ && ran_ns.has_value();
  if (!ran_ns || *ran_ns - thread.looked_ns < kLeastRanNs) return Look::Idle;
  if (!may_read_place) return Look::Ran;
  thread.looked_ns = *ran_ns;
  unsigned long python_id = 0;
  if (!peek_bytes(&thread.state->thread_id, &python_id, sizeof python_id) || python_id != thread.python_id) {
    are_known_ = false;
    return Look::Ran;
  }
  const std::optional<ThreadPlace> place = passing_place_of(thread.state);
  const bragg_open_entry entry = bragg_open_entry_of(thread.id);
  if (!is_computing(thread, place.value_or(ThreadPlace{}).innermost(), *ran_ns)) return Look::Placed;
  if (!place) {
    leave_out(thread, *ran_ns);  // native code alone
    return Look::Placed;
  }
  note(thread, {*place, entry, bragg_now_ns(), *ran_ns});
  return Look::Placed;
}

// What it ran since it was last seen.
void OtherThreads::leave_out(Thread& thread, int64_t ran_ns) noexcept {
  const int64_t left_out_ns = ran_ns - (thread.seen.empty() ? thread.sampled_ns : thread.seen.back().ran_ns);
  thread.sampled_ns += left_out_ns;
  for (Seen& seen : thread.seen) seen.ran_ns += left_out_ns;
}

void OtherThreads::note(Thread& thread, const Seen& seen) {
  constexpr size_t kMaxSeen = 16;  // of 300 bytes
  if (thread.seen.empty())
    seen_.push_back(&thread);
  else if (thread.seen.size() == kMaxSeen || thread.seen.back().place == seen.place)
    thread.seen.pop_back();
  thread.seen.push_back(seen);
}

// It is on a core if its clock goes on while it is looked at. On a busy machine this thread takes the core from it each
// time: then it is enough that it wants one. But it may want one where it waited, or gave the GIL away to who took its
// core: it has to have the GIL, or to be in the same call as when it was last looked at, and not to have waited since.
bool OtherThreads::is_computing(Thread& thread, const RawFrame& frame, int64_t ran_ns) noexcept {
  if (processor_ns(thread.id).value_or(ran_ns) > ran_ns) return true;
  if (ran_ns - thread.sampled_ns <= kOverdueNs) return false;
  const bool has_gil = has_the_gil(thread.state);
  const int64_t n_waits = bragg_waits_if_runnable(thread.id);
  const int64_t n_waits_before = std::exchange(thread.n_waits, n_waits);
  const RawFrame frame_before = std::exchange(thread.frame, frame);
  return n_waits >= 0 && (has_gil || (n_waits == n_waits_before && frame == frame_before));
}

void OtherThreads::sample(const PyThreadState* main_thread) {
  record_seen();
  if (!std::exchange(wants_threads_, false)) return;
  find_threads(main_thread);
  record_seen();  // that have just begun
}

void OtherThreads::record_seen() {
  for (Thread* thread : std::exchange(seen_, {})) {
    const bool has_ended = !is_linked(thread->state, thread->number);
    for (const Seen& seen : std::exchange(thread->seen, {})) record(*thread, seen, has_ended);
  }
}

// Those that are known keep what was seen of them.
void OtherThreads::find_threads(const PyThreadState* main_thread) {
  const int64_t now_ns = bragg_now_ns();
  std::vector<const PyThreadState*> states;
  for_each_state([&](const PyThreadState* state) {
    if (state->thread_id != sampler_) states.push_back(state);
  });
  newest_ = states.empty() ? nullptr : states.front();
  std::unordered_map<const PyThreadState*, std::unique_ptr<Thread>> known;
  for (auto& thread : threads_.take_threads()) known.emplace(thread->state, std::move(thread));
  const std::vector<unsigned long> begun = begun_threads(states);
  std::vector<std::unique_ptr<Thread>> found;
  are_known_ = true;
  for (const PyThreadState* state : states) {
    if (state == main_thread) continue;
    std::unique_ptr<Thread>& thread = known[state];
    if (thread == nullptr || !is_of(*thread, state)) {
      const bool has_begun = std::binary_search(begun.begin(), begun.end(), state->thread_id);
      thread = begin(state, has_begun ? thread_id_of(state) : 0, now_ns);
    }
    are_known_ = are_known_ && thread->id != 0;
    if (thread->id != 0 && bragg_is_own_thread(thread->id) != 0) continue;
    if (!thread->seen.empty()) seen_.push_back(thread.get());
    found.push_back(std::move(thread));
  }
  threads_.replace(std::move(found));
  n_tries_ = are_known_ ? 0 : n_tries_ + 1;
  are_known_ = are_known_ || n_tries_ >= kMaxTries;
  n_ticks_ = 0;
  known_ns_ = now_ns;
}

bool OtherThreads::is_of(const Thread& thread, const PyThreadState* state) noexcept {
  return thread.number == number_of(state) && thread.python_id == state->thread_id && thread.id != 0;
}

// One that began since the last look may have ended at the next one, so it is sampled where it is. Another one has come
// to Python from native code, whose time that is.
std::unique_ptr<OtherThreads::Thread> OtherThreads::begin(const PyThreadState* state, uint32_t id,
                                                          int64_t now_ns) const {
  const int64_t ran_ns = id != 0 ? processor_ns(id).value_or(0) : 0;
  auto thread = std::make_unique<Thread>();
  thread->state = state;
  thread->number = number_of(state);
  thread->python_id = state->thread_id;
  thread->id = id;
  thread->sampled_ns = ran_ns <= now_ns - known_ns_ ? 0 : ran_ns;
  thread->looked_ns = ran_ns;
  if (ran_ns - thread->sampled_ns >= kLeastRanNs) thread->seen = {{{}, bragg_open_entry_of(id), now_ns, ran_ns}};
  return thread;
}

// Code that has died since cannot be told; where the thread is now, it can. Of a thread that has ended only the time
// is told: who called the frames that were seen is not known.
void OtherThreads::record(Thread& thread, const Seen& seen, bool has_ended) {
  const ThreadPlace place = has_ended ? ThreadPlace{} : seen.place;
  const void* state = has_ended ? nullptr : thread.state;
  const LivingFrames frames(place, PythonFrameIterator::of_thread(state));
  const bragg_thread_sample sample{thread.id,
                                   state,
                                   seen.at_ns,
                                   seen.ran_ns - thread.sampled_ns,
                                   frames.size() > 0 || has_ended ? seen.entry : bragg_open_entry_of(thread.id),
                                   frames.data(),
                                   frames.size()};
  thread.sampled_ns = seen.ran_ns;
  if (bragg_sample_thread(&sample) == 0) return;
  if (thread.name.empty() && !has_ended) thread.name = name_of(thread.state);
  const std::string name = thread.name.empty() ? kUnnamed : thread.name;
  if (ran_ns_.size() >= kMaxNames && !ran_ns_.contains(name)) forget_shorter_half();
  ran_ns_[name] += sample.ran_ns;
}

void OtherThreads::forget_shorter_half() {
  std::vector<int64_t> all;
  for (const auto& [name, ran_ns] : ran_ns_) all.push_back(ran_ns);
  const auto middle = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  int64_t unnamed_ns = 0;
  std::erase_if(ran_ns_, [&](const auto& each) {
    const bool is_short = each.second <= *middle;
    if (is_short) unnamed_ns += each.second;
    return is_short;
  });
  ran_ns_[kUnnamed] += unnamed_ns;
}

}  // namespace bragg
