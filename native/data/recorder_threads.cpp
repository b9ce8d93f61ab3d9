// The three threads of the recorder.
#include "data/recorder_threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <ctime>
#include <memory>
#include <mutex>
#include <utility>

#include "context/clock.h"
#include "context/loaded_code.h"
#include "context/own_threads.h"
#include "data/recorder.h"
#include "data/recorder_cpu.h"
#include "data/work_lock.h"

namespace bragg {
namespace {

constexpr uint32_t kPollMs = 20;                 // idle: 50 wake-ups a second
constexpr int64_t kDeviceFlushNs = 500'000'000;  // completed records wait in a source no longer than this
constexpr int64_t kEndingFlushNs = 20'000'000;   // nor than this while a phase waits for its last ones
constexpr timespec kEndNap{.tv_sec = 0, .tv_nsec = 100'000};
constexpr int64_t kAloneLookNs = 250'000'000;  // one look costs 10 us
constexpr int64_t kEndPatienceNs = 1'000'000'000;
constexpr int64_t kBusyPatienceNs = 10'000'000'000;  // on a machine that is busy

// Signals are for the program's threads.
void begin_thread(const char* name) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  note_own_thread();
  pthread_setname_np(pthread_self(), name);
}

}  // namespace

void Recorder::begin_threads() {
  const auto threads = std::make_shared<RecorderThreads>();
  constexpr std::pair<const char*, void (Recorder::*)(RecorderThreads&)> kLoops[] = {
      {"bragg", &Recorder::read_loop},
      {"bragg sources", &Recorder::source_loop},
      {"bragg writer", &Recorder::write_loop},
  };
  for (size_t i = 0; i < threads->members.size(); ++i)
    threads->members[i].thread = std::thread([this, threads, i, loop = kLoops[i]] {
      begin_thread(loop.first);
      (this->*loop.second)(*threads);
      threads->members[i].has_ended.store(true);
    });
  const WorkLock work(work_mutex_);
  threads_ = threads;
}

bool Recorder::end_threads() {
  std::shared_ptr<RecorderThreads> threads;
  {
    const WorkLock work(work_mutex_);
    threads = std::exchange(threads_, nullptr);
  }
  threads->stopping.store(true);
  consumer_signal.wake();
  threads->source_signal.wake();
  threads->writer_signal.wake();
  const int64_t since_ns = monotonic_ns();
  for (auto& member : threads->members) {
    const bool is_of_sources = &member == &threads->members[1];  // left behind, it leaves them unstopped
    const auto patience_ns = [&] { return is_of_sources && responds(*threads) ? kBusyPatienceNs : kEndPatienceNs; };
    while (!member.has_ended.load() && monotonic_ns() < since_ns + patience_ns()) nanosleep(&kEndNap, nullptr);
    member.has_ended.load() ? member.thread.join() : member.thread.detach();
  }
  return threads->members[1].has_ended.load();
}

void Recorder::read_loop(RecorderThreads& threads) {
  const CountedThread counted;
  int64_t next_look_ns = monotonic_ns() + kAloneLookNs;
  while (!threads.stopping.load()) {
    consumer_signal.wait_ms(kPollMs);
    tend_clock();
    if (const int number = ending_signal_.load()) finish_and_end_by(number);
    if (const int64_t now = monotonic_ns(); now >= next_look_ns) {
      next_look_ns = now + kAloneLookNs;
      if (only_own_threads_are_left()) begin_ending();
    }
    for (bool has_more = true; has_more; sched_yield()) {  // others may hold the lock in between
      const std::lock_guard work(work_mutex_);
      has_more = step_some();
    }
  }
}

void Recorder::source_loop(RecorderThreads& threads) {
  const CountedThread counted;
  const OwnCalls own;
  for (;;) {
    threads.source_signal.wait_ms(kPollMs);
    if (threads.stopping.load()) return;
    threads.source_call_ns.store(monotonic_ns());
    sources_.for_each([this](EventSource& source) { source.poll(launch_count_.load()); });
    flush_in_background(threads);
    if (threads.stopping.load()) return;  // it was left behind
    threads.source_call_ns.store(0);
    if (threads.stopping.load()) return;
    update_owed_collecting(threads);
    rotate_due_sessions();
    if (recording_state.native.load() != 0) LoadedCode::instance().note_changes();
    end_drained_phases();
  }
}

// When somebody waits for it, or it is time.
void Recorder::flush_in_background(RecorderThreads& threads) {
  const uint64_t wanted = threads.flushes_wanted.load();
  const int64_t now = now_ns();
  const int64_t interval_ns = retired_.load() != 0 ? kEndingFlushNs : kDeviceFlushNs;
  const bool is_due = now >= device_flushed_ns_ + interval_ns;
  if (!is_due && wanted == threads.flushes_done.load()) return;
  if (all_drain_in_background()) drain_sources(threads.forces_flush.exchange(false));
  if (threads.stopping.load()) return;
  device_flushed_ns_ = now;
  if (is_due) samples_are_due_.store(true);  // not as often as somebody waits: samples come later than records
  threads.flushes_done.store(wanted);
  const std::lock_guard work(work_mutex_);
  add_graph_values();
  captured_paths_.trim(now);
  graph_progress_.trim();
}

void Recorder::end_drained_phases() {
  const auto drained = [&] {
    SessionMask found = 0;
    for_phases(retired_.load(), [&](Phase& phase) {
      if (phase.is_retired() && phase.is_drained(device_flushed_ns_)) found |= 1u << phase.slot();
    });
    return found;
  };
  if (retired_.load() == 0) return;
  bool are_sampled = false;
  {
    const std::lock_guard work(work_mutex_);
    step();  // what the flush brought
    add_graph_values();
    if (drained() == 0) return;
    are_sampled = !samples_of_session_.empty();
  }
  if (are_sampled)  // samples come later than the records of their kernels
    sources_.for_each([](EventSource& source) { source.drain_samples(); });
  const std::lock_guard work(work_mutex_);
  step();
  if (are_sampled) settle_samples();
  for_phases(drained(), [this](Phase& phase) { end(phase, phase.end_meta_json()); });
}

void Recorder::write_loop(RecorderThreads& threads) {
  const CountedThread counted;
  while (!threads.stopping.load()) {
    threads.writer_signal.wait_ms(kPollMs);
    flush_due_sessions();
    Outboxes::instance().write_out();
  }
  Outboxes::instance().write_out();
}

// What a session has to say is small and cumulative: it waits for a disk that is behind.
void Recorder::flush_due_sessions() {
  const std::lock_guard work(work_mutex_);
  const int64_t now = now_ns();
  for (uint32_t slot = 0; slot < kMaxSessions; ++slot) {
    if (phases_[slot] == nullptr || now < next_flush_ns_[slot] || phases_[slot]->is_behind()) continue;
    Phase& phase = *phases_[slot];
    add_graph_values();
    phase.flush(tracks_, facts_of(phase));
    next_flush_ns_[slot] = now + int64_t{phase.options().flush_interval_ms} * 1'000'000;
  }
}

}  // namespace bragg
