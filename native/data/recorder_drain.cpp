// Waiting for the GPU without touching the program's contexts: a synchronisation would destroy the stream captures of
// other threads.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <utility>

#include "context/clock.h"
#include "data/recorder.h"
#include "data/work_lock.h"

namespace bragg {
namespace {

// A drain waits as long as records come, however much work is queued. If none comes for this time, the GPU hangs, or
// one kernel takes as long: users with such kernels set BRAGG_DRAIN_S.
constexpr int64_t kPatienceNs = 5'000'000'000;
constexpr const char* kPatienceVariable = "BRAGG_DRAIN_S";
// Copies of no bytes have no record, records that were dropped do not come, and a process that was interrupted leaves.
constexpr int64_t kShortPatienceNs = 300'000'000;
// A flush takes that long, too, on a machine that is busy: it says little of what the next one brings.
constexpr uint32_t kPatientFlushes = 4;
// A program that continues to launch graphs is always in the middle of one.
constexpr int64_t kGraphPatienceNs = 30'000'000'000;
constexpr int64_t kFirstNapNs = 100'000;
constexpr int64_t kLongestNapNs = 8'000'000;
constexpr int64_t kInterruptLookNs = 50'000'000;
constexpr int64_t kFlushNapNs = 50'000;

void sleep_ns(int64_t ns) {
  const timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

int64_t chosen_patience_ns() {
  const char* text = std::getenv(kPatienceVariable);
  const double seconds = text != nullptr ? std::strtod(text, nullptr) : 0;
  return seconds > 0 ? static_cast<int64_t>(std::min(seconds, 1e6) * 1e9) : kPatienceNs;
}

}  // namespace

void Recorder::drain(uint32_t session) {
  Drain drain;
  drain.session = session;
  drain.patience_ns = chosen_patience_ns();
  {
    const WorkLock work(work_mutex_);
    step();
    drain.threads = threads_;
    drain.round = round_++;
    drain.is_confirmed = missing_of(drain) == Missing::Nothing;
  }
  if (drain.threads == nullptr) return;  // nothing records
  drain.progress_ns = drain.interrupt_looked_ns = monotonic_ns();
  int64_t nap_ns = kFirstNapNs;
  while (flush_sources(drain) && !has_arrived(drain) && !is_out_of_patience(drain)) {
    sleep_ns(nap_ns);
    nap_ns = std::min(2 * nap_ns, kLongestNapNs);
  }
  if (responds(*drain.threads)) sources_.for_each([](EventSource& source) { source.drain_samples(); });
  const WorkLock work(work_mutex_);
  step();
  for_phases_of(session, [&](Phase& phase) { phase.awaited().give_up(drain.round, round_); });
}

void Recorder::bring_by_force(uint32_t session) {
  Drain drain;
  {
    const WorkLock work(work_mutex_);
    drain.threads = threads_;
    bool is_last = threads_ != nullptr, has_missing = false;
    for_phases_of(kNone, [&](Phase& phase) {
      is_last &= phase.session() == session;
      has_missing |= phase.gave_up();
    });
    if (!is_last || !has_missing) return;
  }
  drain.threads->forces_flush.store(true);
  drain.interrupt_looked_ns = std::numeric_limits<int64_t>::max() - kInterruptLookNs;  // an interrupted wait leads here
  (void)flush_sources(drain);
  const WorkLock work(work_mutex_);
  step();
}

// A copy may have several records: all have come when the flush after the first one has brought no more.
bool Recorder::has_arrived(Drain& drain) {
  const WorkLock work(work_mutex_);
  (void)step_some();
  ++drain.flushes;
  drain.missing = missing_of(drain);
  if (drain.missing != Missing::Nothing) return false;
  return std::exchange(drain.is_confirmed, true);
}

// Progress is what is missing less, not any record: a program that continues to launch always has some.
Recorder::Missing Recorder::missing_of(Drain& drain) {
  uint64_t kernels = 0, others = 0, lost = sources_.dropped_records();
  for_phases_of(drain.session, [&](Phase& phase) {
    kernels += phase.awaited().kernels.until(drain.round, round_);
    others += phase.awaited().others.until(drain.round, round_);
    lost += phase.counters.unattributed;
  });
  const int64_t now = monotonic_ns();
  const uint64_t pending = sources_.pending();
  const uint64_t awaited = kernels + others + pending;
  const auto note_progress = [&] {
    drain.progress_ns = now;
    drain.flushes = 0;
  };
  if (awaited < drain.awaited) note_progress();
  drain.awaited = std::min(drain.awaited, awaited);
  drain.graphs_ns = awaited > 0 ? 0 : drain.graphs_ns != 0 ? drain.graphs_ns : now;
  const bool has_more = std::exchange(drain.records, records_taken_) != records_taken_;
  if (has_more && drain.graphs_ns != 0) note_progress();
  if (pending > 0) return Missing::Records;
  if (!sources_.tells_records()) return Missing::Nothing;
  if (kernels > lost) return Missing::Records;
  if (kernels + others > 0) return Missing::PerhapsRecords;
  return graph_progress_.is_complete(now) ? Missing::Nothing : Missing::GraphRecords;
}

bool Recorder::is_out_of_patience(Drain& drain) {
  if (is_interrupted(drain)) return true;
  if (drain.flushes < kPatientFlushes) return false;
  const bool is_leaving = is_leaving_.load();
  if (drain.missing == Missing::GraphRecords && monotonic_ns() > drain.graphs_ns + kGraphPatienceNs) return true;
  const bool is_short = drain.missing == Missing::PerhapsRecords || is_leaving;
  return monotonic_ns() >
         drain.progress_ns + (is_short ? std::min(kShortPatienceNs, drain.patience_ns) : drain.patience_ns);
}

bool Recorder::is_interrupted(Drain& drain) {
  const int64_t now = monotonic_ns();
  if (now < drain.interrupt_looked_ns + kInterruptLookNs) return false;
  drain.interrupt_looked_ns = now;
  const InterruptLook look = interrupt_look_.load();
  return look != nullptr && look() != 0;
}

bool Recorder::all_drain_in_background() {
  return std::ranges::all_of(sources_.rows(), [](const SourceRow& row) { return row.source().drains_in_background(); });
}

void Recorder::drain_sources(bool is_last) {
  const int64_t deadline_ns = monotonic_ns() + kPatienceNs;
  sources_.for_each([&](EventSource& source) { source.drain(deadline_ns, is_last); });
}

// On the thread that is for it, as a vendor's library has been seen to hang in it, if all sources allow that.
bool Recorder::flush_sources(Drain& drain) {
  RecorderThreads& threads = *drain.threads;
  if (!all_drain_in_background()) {
    drain_sources(threads.forces_flush.exchange(false));
    return true;
  }
  const uint64_t ticket = threads.flushes_wanted.fetch_add(1) + 1;
  threads.source_signal.wake();
  for (const int64_t since_ns = monotonic_ns(); threads.flushes_done.load() < ticket; sleep_ns(kFlushNapNs)) {
    const int64_t patience_ns = is_leaving_.load() ? kShortPatienceNs : kPatienceNs;
    if (threads.stopping.load() || monotonic_ns() > since_ns + patience_ns || is_interrupted(drain)) return false;
  }
  return true;
}

// On a machine that is busy a call takes long and does not hang: more patience if it owes no flush.
bool Recorder::responds(const RecorderThreads& threads) {
  const int64_t since_ns = threads.source_call_ns.load();
  const bool owes_flush = threads.flushes_done.load() < threads.flushes_wanted.load();
  return since_ns == 0 || monotonic_ns() < since_ns + (owes_flush ? kPatienceNs / 5 : kPatienceNs);
}

void Recorder::reclaim_device_records() {
  sources_.for_each([](EventSource& source) { source.reclaim(); });
  const WorkLock work(work_mutex_);
  step();
  for_phases_of(kNone, [](Phase& phase) {  // the other tool has taken them
    phase.awaited().give_up_all();
  });
}

}  // namespace bragg
