// A process that ends by a signal, and one that forks.
#include "data/recorder.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <new>

#include "backends/code_images.h"
#include "backends/code_numbers.h"
#include "backends/threaded_source.h"
#include "context/call_names.h"
#include "context/clock.h"
#include "context/consumer_signal.h"
#include "context/kernel_names.h"
#include "context/loaded_code.h"
#include "context/loaded_library.h"
#include "context/metric_names.h"
#include "context/own_threads.h"
#include "context/python_frame_ids.h"
#include "context/stream_captures.h"
#include "data/capture_writer.h"

namespace bragg {
namespace {

constexpr long kEndingPollNs = 10'000'000;
constexpr int kEndingPolls = 300;  // 3 s
constexpr int64_t kEndingDiskNs = 2'000'000'000;

}  // namespace

bool Recorder::finish_on_signal(int number) {
  struct sigaction current{};
  if (sigaction(number, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return false;
  struct sigaction ours{};
  ours.sa_handler = on_ending_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  return sigaction(number, &ours, nullptr) == 0;
}

// The thread that was interrupted goes no further, as without us. It may hold a lock that the consumer needs
// (malloc's), so it waits for its end no longer than it takes to write a large capture. What is stopping already may
// still be on its way to the file.
void Recorder::on_ending_signal(int number) {
  const auto is_incomplete = [] { return recording_state.existing.load() != 0 || Outbox::any_waits(); };
  if (is_incomplete()) {
    instance().ending_signal_.store(number);
    consumer_signal.wake();
    for (int poll = 0; poll < kEndingPolls && is_incomplete(); ++poll) {
      const timespec pause{.tv_sec = 0, .tv_nsec = kEndingPollNs};
      nanosleep(&pause, nullptr);
    }
  }
  signal(number, SIG_DFL);
  raise(number);
}

void Recorder::finish_and_end_by(int number) {
  is_leaving_.store(true);
  Drain drain;
  {
    const std::lock_guard work(work_mutex_);
    drain.threads = threads_;
    if (drain.threads == nullptr) return;
    for_phases(recording_state.existing.load(), [this](const Phase& phase) { end_in_sources(phase); });
  }
  drain.threads->forces_flush.store(true);
  drain.interrupt_looked_ns = drain.progress_ns = std::numeric_limits<int64_t>::max() / 2;  // no Python here
  if (flush_sources(drain)) sources_.for_each([](EventSource& source) { source.drain_samples(); });
  {
    const std::lock_guard work(work_mutex_);
    step();
    settle_samples();
    add_graph_values();
    for_phases(recording_state.existing.load(), [this](Phase& phase) {
      phase.awaited().give_up_all();
      phase.finish(tracks_, last_facts_of(phase), phase.end_meta_json());
    });
  }
  Outboxes::instance().write_out();
  (void)Outboxes::instance().wait_until_written(kEndingDiskNs);  // where the writing thread was faster
  signal(number, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, number);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(number);
  std::abort();  // not reached: the default of the signals that we take is to end the process
}

// On a thread of its own, since it ends the others.
void Recorder::begin_ending() {
  if (ends_alone_.exchange(true)) return;
  interrupt_look_.store(nullptr);  // who held the GIL may be gone
  begin_detached_thread([this] {
    for (int session = 0; session < static_cast<int>(kMaxSessions); ++session) stop(session, "{}");
    std::exit(0);  // as the last thread of a program does
  });
}

void Recorder::prepare_fork() {
  // Whoever needs these first makes them: the child would wait for ever for a thread that is in the middle of it.
  (void)ticks_are_steady();
  (void)Outboxes::instance();
  control_mutex_.lock();
  work_mutex_.lock();
  sources_.for_each([](EventSource& source) { source.lock_for_fork(); });
  CallingContextTree::instance().lock_for_fork();
  CodeImages::instance().lock_for_fork();
  CodeNumbers::instance().lock_for_fork();
  GraphRegistry::instance().lock_for_fork();
  StreamCaptures::instance().lock_for_fork();
  CallNames::instance().lock_for_fork();
  KernelNames::instance().lock_for_fork();
  MetricNames::instance().lock_for_fork();
  LoadedCode::instance().lock_for_fork();
  PythonFrameIds::instance().lock_for_fork();
  FrameTable::instance().lock_for_fork();
  library_walks.lock_for_fork();
}

void Recorder::after_fork_in_parent() {
  library_walks.unlock_after_fork();
  FrameTable::instance().unlock_after_fork();
  PythonFrameIds::instance().unlock_after_fork();
  LoadedCode::instance().unlock_after_fork();
  MetricNames::instance().unlock_after_fork();
  KernelNames::instance().unlock_after_fork();
  CallNames::instance().unlock_after_fork();
  StreamCaptures::instance().unlock_after_fork();
  GraphRegistry::instance().unlock_after_fork();
  CodeNumbers::instance().unlock_after_fork();
  CodeImages::instance().unlock_after_fork();
  CallingContextTree::instance().unlock_after_fork();
  sources_.for_each([](EventSource& source) { source.unlock_after_fork(); });
  work_mutex_.unlock();
  control_mutex_.unlock();
}

void Recorder::after_fork_in_child() {
  recording_state.active.store(0);
  for (auto* mask : recording_state.masks_of_existing()) mask->store(0);
  for (auto& phase : phases_) {
    if (phase != nullptr) phase->abandon();
    phase.reset();
  }
  retired_.store(0);
  slot_of_session_.fill(kNone);
  new (&threads_) std::shared_ptr<RecorderThreads>;  // they do not exist here
  Outboxes::instance().forget_all();
  forget_counted_threads();
  forget_own_threads();
  ends_alone_.store(false);
  cpu_ = cpu_times();
  cpu_at_ns_ = 0;
  consumer_signal.reset();
  ending_signal_.store(0);
  sources_.for_each([](EventSource& source) { source.after_fork_in_child(); });
  launches_.clear();
  captured_paths_.clear();
  copy_waits_.clear();
  graph_progress_.clear();
  samples_of_session_.clear();
  tracks_.clear();
  range_track_ = TrackId::None;
  stream_tracks_.clear();
  after_fork_in_parent();
  GraphRegistry::instance().clear();
  StreamCaptures::instance().clear();
}

}  // namespace bragg
