// Sessions and phases: start, advance, activate, stop.
#include "data/recorder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "context/clock.h"
#include "data/json.h"
#include "data/work_lock.h"

namespace bragg {
namespace {

// A phase that ends by itself does within some device flushes.
constexpr timespec kSlotNap{.tv_sec = 0, .tv_nsec = 500'000};
constexpr int kSlotNaps = 200;
constexpr uint8_t kNoSession = kMaxSessions;
constexpr int64_t kDiskPatienceNs = 30'000'000'000;

}  // namespace

template <class Open>
StartResult Recorder::in_free_slot(Open&& open) {
  for (int nap = 0;; ++nap) {
    {
      const std::lock_guard control(control_mutex_);
      const bool may_get_free = retired_.load() != 0;
      if (const uint32_t slot = free_slot(); slot != kNone) return open(slot);
      if (!may_get_free) return {-1, 0, "16 sessions are already open; stop one first"};
      threads_->source_signal.wake();
    }
    if (nap == kSlotNaps) {
      drain(kNone);
      const WorkLock work(work_mutex_);
      bring_all(kNone);
    }
    nanosleep(&kSlotNap, nullptr);
  }
}

uint32_t Recorder::free_slot() {
  const WorkLock work(work_mutex_);
  for (uint32_t i = 0; i < kMaxSessions; ++i) {
    const uint32_t slot = (next_slot_ + i) % kMaxSessions;
    if (phases_[slot] != nullptr) continue;
    next_slot_ = (slot + 1) % kMaxSessions;
    return slot;
  }
  return kNone;
}

uint32_t Recorder::free_session() {
  while (slot_of_session_[next_session_] != kNone) next_session_ = (next_session_ + 1) % kMaxSessions;
  return std::exchange(next_session_, (next_session_ + 1) % kMaxSessions);
}

void Recorder::install(std::unique_ptr<Phase> phase, uint32_t slot) {
  const SessionMask bit = 1u << slot;
  const SessionOptions& options = phase->options();
  recording_state.session_of_slot[slot].store(static_cast<uint8_t>(phase->session()));
  slot_of_session_[phase->session()] = slot;
  if (options.python_context) recording_state.python.fetch_or(bit);
  if (options.native_context) recording_state.native.fetch_or(bit);
  if (options.trace) recording_state.trace.fetch_or(bit);
  if (options.trace || options.folds_idle) recording_state.returns.fetch_or(bit);
  if (options.api_level == ApiLevel::All) recording_state.api_calls.fetch_or(bit);
  if (options.api_level == ApiLevel::Sync) recording_state.sync_calls.fetch_or(bit);
  if (phase->samples_instructions()) samples_of_session_.try_emplace(phase->session());
  phase->before = thread_totals();
  next_flush_ns_[slot] = now_ns();
  sources_.for_each(options.uses_devices, [&](EventSource& source) { source.begin_phase(options.of_sources); });
  phases_[slot] = std::move(phase);
  recording_state.existing.fetch_or(bit);
  uint64_t tree_limit_bytes = 0;  // all share the tree
  for (const auto& each : phases_)
    if (each != nullptr) tree_limit_bytes = std::max(tree_limit_bytes, each->options().tree_limit_bytes);
  CallingContextTree::instance().set_limit(tree_limit_bytes);
}

// With a session that is about to start.
bool Recorder::all_want_whole_graphs(const Phase& next) {
  const WorkLock work(work_mutex_);
  const bool others_do = std::ranges::all_of(phases_, [](const auto& each) {
    return each == nullptr || !each->options().uses_devices || each->options().of_sources.whole_graphs;
  });
  const bool wants_it = next.options().of_sources.whole_graphs;
  if (wants_it && !others_do)
    std::fputs("bragg: graphs are recorded by their nodes, not as a whole: another session wants the nodes\n", stderr);
  return wants_it && others_do;
}

StartResult Recorder::start(SessionOptions options) {
  return in_free_slot([&](uint32_t slot) -> StartResult {
    auto phase = std::make_unique<Phase>(std::move(options), slot, free_session());
    if (const int error = phase->open()) return {-1, error, {}};
    SourceOptions of_sources = phase->options().of_sources;
    of_sources.whole_graphs = phase->options().uses_devices && all_want_whole_graphs(*phase);
    of_sources.launches_before = launch_count_.load();
    sources_.for_each(phase->options().uses_devices, [&](EventSource& source) { source.start(of_sources); });
    const SessionMask mask = phase->mask();
    const auto session = static_cast<int>(phase->session());
    {
      const WorkLock work(work_mutex_);
      step();  // what is left of earlier sessions is not this one's
      install(std::move(phase), slot);
    }
    recording_state.active.fetch_or(mask);
    update_collecting();
    if (threads_ == nullptr) begin_threads();
    return {session, 0, {}};
  });
}

StartResult Recorder::advance(int session, const std::string& part_path, const std::string& meta_json,
                              const std::string& end_meta_json) {
  return in_free_slot([&](uint32_t slot) -> StartResult {
    Phase* phase = current(session);
    if (phase == nullptr) return {-1, 0, "this session was stopped"};
    const int error = begin_phase(slot, *phase, part_path, meta_json, end_meta_json);
    return {error == 0 ? session : -1, error, {}};
  });
}

void Recorder::end_in_sources(const Phase& phase) {
  sources_.for_each(phase.options().uses_devices,
                    [&](EventSource& source) { source.end_phase(phase.options().of_sources); });
}

int Recorder::begin_phase(uint32_t slot, Phase& ended, const std::string& part_path, const std::string& meta_json,
                          const std::string& end_meta_json) {
  SessionOptions options = ended.options();
  options.part_path = part_path;
  options.meta_json = meta_json;
  auto next = std::make_unique<Phase>(std::move(options), slot, ended.session());
  if (const int error = next->open()) return error;
  const SessionMask old_mask = ended.mask();
  const SessionMask mask = next->mask();
  const WorkLock work(work_mutex_);
  next->follow(ended);
  end_in_sources(ended);
  ended.retire(thread_totals(), end_meta_json);
  retired_.fetch_or(1u << ended.slot());
  install(std::move(next), slot);
  SessionMask active = recording_state.active.load();  // at once: a launch is in one phase or the other
  while (!recording_state.active.compare_exchange_weak(
      active, (active & old_mask) == old_mask ? (active & ~old_mask) | mask : active)) {
  }
  return 0;
}

// The control lock's holder may wait for this thread: then it is done at the next poll.
void Recorder::rotate_due_sessions() {
  const std::unique_lock control(control_mutex_, std::try_to_lock);
  if (!control) return;
  const int64_t now = now_ns();
  for (const uint32_t slot : slot_of_session_) {
    if (slot == kNone || now < phases_[slot]->rotates_at_ns()) continue;
    const uint32_t next_slot = free_slot();
    if (next_slot == kNone) return;
    Phase& ended = *phases_[slot];
    const std::string path = ended.next_part_path();
    const std::string end_meta = JsonObject().put("stopped_ns", now).text();
    if (const int error = begin_phase(next_slot, ended, path, ended.next_meta_json(), end_meta)) {
      std::fprintf(stderr, "bragg: %s: the phase continues: %s\n", path.c_str(), std::strerror(error));
      ended.postpone_rotation();
    }
  }
}

void Recorder::activate(int session) {
  const std::lock_guard control(control_mutex_);
  const Phase* phase = current(session);
  if (phase == nullptr) return;
  recording_state.active.fetch_or(phase->mask());
  update_collecting();
}

// Nothing of it is recorded any more; false: there is no such session.
bool Recorder::switch_off(int session) {
  const std::lock_guard control(control_mutex_);
  const Phase* phase = current(session);
  if (phase != nullptr) recording_state.active.fetch_and(~phase->mask());
  return phase != nullptr;
}

void Recorder::deactivate(int session, bool flush) {
  if (!switch_off(session)) return;
  if (flush) {
    drain(static_cast<uint32_t>(session));
    {
      const WorkLock work(work_mutex_);
      bring_all(static_cast<uint32_t>(session));
    }
    wait_until_written();
  }
  const std::lock_guard control(control_mutex_);
  update_collecting();
}

void Recorder::update_collecting() {
  if (threads_ != nullptr && !responds(*threads_)) {  // a source hangs, and would here too; or the machine is busy
    threads_->owes_collecting.store(true);
    return;
  }
  sources_.for_each([](EventSource& source) { source.collect({recording(), wanted_api_level()}); });
}

// On the thread of the sources, which respond again.
void Recorder::update_owed_collecting(RecorderThreads& threads) {
  if (!threads.owes_collecting.load()) return;
  const std::unique_lock control(control_mutex_, std::try_to_lock);
  if (!control) return;  // at the next poll
  threads.owes_collecting.store(false);
  update_collecting();
}

void Recorder::flush(int session) {
  drain(static_cast<uint32_t>(session));
  sources_.for_each([](EventSource& source) { source.look(); });
  {
    const WorkLock work(work_mutex_);
    Phase* phase = current(session);
    if (phase == nullptr) return;
    bring_all(phase->session());
    phase->flush(tracks_, facts_of(*phase));
  }
  wait_until_written();
}

void Recorder::stop(int session, const std::string& meta_json) {
  if (!switch_off(session)) return;
  {
    const std::lock_guard control(control_mutex_);
    if (const Phase* phase = current(session)) end_in_sources(*phase);
  }
  drain(static_cast<uint32_t>(session));
  bring_by_force(static_cast<uint32_t>(session));
  {
    const std::lock_guard control(control_mutex_);
    Phase* phase = current(session);
    if (phase == nullptr) return;  // another thread was faster
    if (responds(*threads_)) {
      sources_.for_each(phase->options().uses_devices,
                        [&](EventSource& source) { source.end_session(phase->options().of_sources); });
      sources_.for_each([](EventSource& source) { source.look(); });
    }
    update_collecting();
    {
      const WorkLock work(work_mutex_);
      const uint32_t stopped = phase->session();
      bring_all(stopped);
      end(*phase, meta_json);
      slot_of_session_[stopped] = kNone;
      for (auto& session_of_slot : recording_state.session_of_slot)  // late events of this session meet no other
        if (session_of_slot.load() == stopped) session_of_slot.store(kNoSession);
    }
    if (recording_state.existing.load() == 0) finish();
  }
  wait_until_written();
}

void Recorder::wait_until_written() {
  {
    const WorkLock work(work_mutex_);
    if (threads_ != nullptr) threads_->writer_signal.wake();  // else it has written all before it ended
  }
  if (!Outboxes::instance().wait_until_written(kDiskPatienceNs))
    std::fputs("bragg: the disk takes nothing for 30 s: the capture is not complete yet\n", stderr);
}

void Recorder::bring_all(uint32_t session) {
  step();
  settle_samples();
  add_graph_values();
  for_phases(retired_.load(), [&](Phase& phase) {
    if (session == kNone || phase.session() == session) end(phase, phase.end_meta_json());
  });
}

void Recorder::end(Phase& phase, const std::string& meta_json) {
  phase.awaited().give_up_all();
  end_samples(phase);
  phase.finish(tracks_, last_facts_of(phase), meta_json);
  const uint32_t slot = phase.slot();
  phases_[slot].reset();
  for (auto* mask : recording_state.masks_of_existing()) mask->fetch_and(~(1u << slot));
  retired_.fetch_and(~(1u << slot));
}

// The last session has ended.
void Recorder::finish() {
  if (end_threads()) sources_.for_each([](EventSource& source) { source.stop(); });
  const WorkLock work(work_mutex_);
  launches_.clear();
  captured_paths_.clear();
  copy_waits_.clear();
  graph_progress_.clear();
}

std::string Recorder::statistics(int session) {
  const WorkLock work(work_mutex_);
  step();
  Phase* phase = current(session);
  return phase != nullptr ? facts_of(*phase).text() : "{}";
}

// The driver holds its own locks here, so this must not wait for a control call that may be waiting for the driver; if
// one is under way the consumer's poll attaches half a second later.
void Recorder::on_source_initialized() {
  const std::unique_lock control(control_mutex_, std::try_to_lock);
  if (!control) return;
  sources_.for_each([](EventSource& source) { source.on_initialized(); });
  update_collecting();
}

}  // namespace bragg
