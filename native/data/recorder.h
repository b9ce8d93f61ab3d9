// The recorder of the process: sessions, the consumer thread, and the join of launches with device records.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "backends/sources.h"
#include "context/event_ring.h"
#include "context/thread_context.h"
#include "data/captured_paths.h"
#include "data/clock_readings.h"
#include "data/clock_steps.h"
#include "data/copy_waits.h"
#include "data/correlation_map.h"
#include "data/graph_progress.h"
#include "data/phase.h"
#include "data/recorder_threads.h"
#include "data/sample_attribution.h"

namespace bragg {

struct StartResult {
  int session = -1;    // >= 0: its number, the same in all of its phases
  int os_error = 0;    // errno of the capture file
  std::string reason;  // why not, with what to do
};

// Threads: the public functions from any thread, one control call at a time (control lock), except while it waits for
// the GPU. The recorder's own threads and control calls share the consumer-side state under the work lock; application
// threads touch neither. Whoever holds the work lock calls neither a vendor's library nor the disk.
class Recorder final : private EventSink {
 public:
  static Recorder& instance();

  [[nodiscard]] StartResult start(SessionOptions options);
  // The session's next phase, in a slot and a capture of its own. The one before ends by itself as soon as the device
  // records of its launches have come. With 16 slots taken this waits for the device.
  [[nodiscard]] StartResult advance(int session, const std::string& part_path, const std::string& meta_json,
                                    const std::string& end_meta_json);
  void activate(int session);
  void deactivate(int session, bool flush);
  void flush(int session);
  void stop(int session, const std::string& meta_json);
  [[nodiscard]] std::string statistics(int session);  // JSON object, of the current phase

  void on_source_initialized();  // within a call of its vendor's library

  // Finishes all sessions when the signal would end the process, unless the program handles it; then it ends by it.
  static bool finish_on_signal(int number);

  // Another tool of the process takes the records from now on: brings those of what was launched until now.
  void bring_device_records() { drain(kNone); }
  void reclaim_device_records();

  // Called every 50 ms while a control call waits, on its thread, without a lock; a result other than 0 ends the wait.
  using InterruptLook = int (*)();
  void set_interrupt_look(InterruptLook look) { interrupt_look_.store(look); }
  // The process was told to end: nothing waits long for the GPU any more.
  void hurry() { is_leaving_.store(true); }

  // The parent's sessions stay the parent's: a forked child starts with none.
  void prepare_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  Recorder() { slot_of_session_.fill(kNone); }
  // Signals whose handlers need what it guards are blocked while it is held, never over a wait.
  class WorkLock;

  // What a control call waits for.
  enum class Missing : uint8_t {
    Nothing,
    GraphRecords,    // further ones of a graph's launch
    PerhapsRecords,  // of launches that may have none
    Records,
  };
  struct Drain {
    uint32_t session = kNone;  // of the session whose launches count; kNone: all
    DrainRound round = 0;      // the last one that counts
    std::shared_ptr<RecorderThreads> threads;
    bool is_confirmed = false;
    Missing missing = Missing::Nothing;
    uint64_t awaited = ~uint64_t{0};  // the least that was missing at a look so far
    uint64_t records = 0;             // that had come at the last look
    int64_t graphs_ns = 0;            // since when only records of graphs are missing; 0: others are, too
    int64_t progress_ns = 0;
    int64_t patience_ns = 0;
    uint32_t flushes = 0;  // since then, that brought no progress
    int64_t interrupt_looked_ns = 0;
  };
  // Waits, without a lock, until the records of what was launched so far have come; gives up those that do not.
  void drain(uint32_t session);
  // Before the last session ends: brings complete records out of buffers that are held up by a kernel without end.
  void bring_by_force(uint32_t session);
  [[nodiscard]] bool has_arrived(Drain& drain);
  [[nodiscard]] Missing missing_of(Drain& drain);
  [[nodiscard]] bool is_out_of_patience(Drain& drain);
  [[nodiscard]] bool is_interrupted(Drain& drain);
  template <class Visit>
  void for_phases_of(uint32_t session, Visit&& visit);
  // False: the sources do not answer in time.
  [[nodiscard]] bool flush_sources(Drain& drain);
  [[nodiscard]] static bool responds(const RecorderThreads& threads);

  void begin_threads();
  [[nodiscard]] bool end_threads();  // false: the sources hang, and are left behind
  void read_loop(RecorderThreads& threads);
  void source_loop(RecorderThreads& threads);
  void write_loop(RecorderThreads& threads);
  void flush_in_background(RecorderThreads& threads);
  static void on_ending_signal(int number);
  // The program has ended without an exit, by its last thread: finishes all sessions and exits in its place.
  void begin_ending();
  void finish_and_end_by(int number);  // unless the last session is ending: then what waits is written anyway
  // Work lock held. Takes what is there, not what launching threads add meanwhile.
  void step();
  bool step_some();  // true: there may be more
  void end_drained_phases();
  void take(ThreadContext& thread, const Event& event) override {
    ++events_taken_;
    take_event(thread, event);
  }
  void take(const DeviceEvent& event) override;
  void take(const ArrivedValue& value) override { take_arrived_value(value); }
  void take(const PcSample& sample) override;
  void take(const InstructionCount& count) override;
  [[nodiscard]] TrackId add_counter(std::string_view name, std::string_view unit, uint32_t device) override;
  [[nodiscard]] TrackId add_lane(std::string_view name, uint32_t device) override;
  [[nodiscard]] TrackId add_unit(std::string_view name, uint32_t device, uint32_t number, ClockId clock) override;
  void take(const SourceSlice& slice) override;
  void take(const CounterSample& sample) override;
  void take(const ClockReading& reading) override;
  [[nodiscard]] TrackId add_track(const Track& track);
  template <class Visit>
  void for_open_phases(Visit&& visit);
  void take_event(ThreadContext& thread, const Event& event);
  void take_launch(ThreadContext& thread, const Event& event);
  void take_no_launch(const Event& event);
  void take_launch_end(ThreadContext& thread, const Event& event);
  void take_sample(ThreadContext& thread, const Event& event);
  void take_marker(ThreadContext& thread, const Event& event);
  void take_api_call(ThreadContext& thread, const Event& event);
  void take_wait(const Event& call);
  void take_arrived_value(const ArrivedValue& value);
  void take_device_event(const DeviceEvent& event);
  [[nodiscard]] bool is_duplicate(const DeviceEvent& event, const Launch* launch);
  void take_record(Phase& phase, const Launch& launch, const DeviceEvent& event);
  [[nodiscard]] FrameId device_frame(const DeviceEvent& event, StringId wanted);
  void take_record_of_condition(const Launch& graph_launch, const DeviceEvent& event);
  [[nodiscard]] CapturedPlace* captured_place_of(const Launch& launch, const DeviceEvent& event);
  void add_graph_values();
  void note_sampled_kernel(const Phase& phase, const DeviceEvent& event, uint64_t cubin_crc, NodeId node);
  void settle_samples();
  void end_samples(Phase& phase);
  void give_samples(uint32_t session, const SampleTarget* target, const Code& code, const PcSample& sample,
                    uint64_t count, bool is_exact);
  [[nodiscard]] TrackId host_track(ThreadContext& thread);
  struct SampledThread {
    TrackId track = TrackId::None;
    int64_t until_ns = 0;  // end of its last sample
  };
  [[nodiscard]] SampledThread& sampled_thread(uint32_t system_id);
  [[nodiscard]] TrackId range_track();
  [[nodiscard]] TrackId stream_track(const DeviceEvent& event);
  void flush_due_sessions();
  void update_collecting();
  void update_owed_collecting(RecorderThreads& threads);
  [[nodiscard]] bool all_want_whole_graphs(const Phase& next);
  void finish();
  // nullptr: there is none, as in a forked child. One of the locks held.
  [[nodiscard]] Phase* current(int session) { return newest_on(static_cast<uint32_t>(session)); }
  // Calls open(slot) under the control lock, when a slot is free.
  template <class Open>
  [[nodiscard]] StartResult in_free_slot(Open&& open);
  [[nodiscard]] uint32_t free_slot();
  [[nodiscard]] uint32_t free_session();
  void end_in_sources(const Phase& phase);
  // 0 or errno. Control lock held.
  [[nodiscard]] int begin_phase(uint32_t slot, Phase& ended, const std::string& part_path, const std::string& meta_json,
                                const std::string& end_meta_json);
  void rotate_due_sessions();
  [[nodiscard]] bool switch_off(int session);
  void wait_until_written();
  // Makes a session known, not yet active.
  void install(std::unique_ptr<Phase> phase, uint32_t slot);
  // Work lock held, after a drain of that session: nothing is missing of what has ended.
  void bring_all(uint32_t session);
  void end(Phase& phase, const std::string& meta_json);
  [[nodiscard]] ThreadTotals thread_totals();
  [[nodiscard]] uint64_t missing_records(const Phase& phase);
  [[nodiscard]] JsonObject facts_of(Phase& phase);  // for META
  [[nodiscard]] JsonObject last_facts_of(Phase& phase);
  [[nodiscard]] Phase* newest_on(uint32_t session);
  [[nodiscard]] Phase* owner(uint32_t slot);
  template <class Visit>
  void for_phases(uint32_t mask, Visit&& visit);

  [[nodiscard]] bool all_drain_in_background();
  void drain_sources(bool is_last);

  EventSources& sources_ = EventSources::instance();
  EventSource* taken_ = nullptr;  // consumer side: whose events are being taken
  std::mutex control_mutex_;
  std::mutex work_mutex_;
  std::array<std::unique_ptr<Phase>, kMaxSessions> phases_;
  uint32_t next_slot_ = 0;     // slots go round, so that a late event of a stopped session meets no new one
  uint32_t next_session_ = 0;  // sessions go round, too
  std::array<uint32_t, kMaxSessions>
      slot_of_session_;  // of the current phase; kNone: no session. Written under both locks
  std::atomic<SessionMask> retired_{0};
  std::shared_ptr<RecorderThreads> threads_;  // while there is a session. Written under both locks
  std::atomic<InterruptLook> interrupt_look_{nullptr};
  std::atomic<bool> is_leaving_{false};
  std::atomic<int> ending_signal_{0};
  std::atomic<bool> ends_alone_{false};

  // Consumer side.
  DrainRound round_ = 0;
  uint64_t records_taken_ = 0;
  GraphProgress graph_progress_;
  CorrelationMap launches_;
  CapturedPaths captured_paths_;
  CopyWaits copy_waits_;
  ClockSteps clock_steps_;
  SystemClockReadings system_clocks_;
  struct RecordId {
    CorrelationId correlation = CorrelationId::None;
    int64_t start_ns = 0;
    GraphNodeId graph_node = GraphNodeId::None;
    friend bool operator==(const RecordId&, const RecordId&) = default;
  };
  RecordId last_record_;
  std::map<uint32_t, SampleAttribution> samples_of_session_;  // of sessions that sample instructions
  std::atomic<uint64_t> launch_count_{0};
  std::atomic<bool> samples_are_due_{false};
  std::vector<Track> tracks_;
  TrackId range_track_ = TrackId::None;
  std::map<uint32_t, SampledThread> sampled_threads_;                          // by system id
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, TrackId> stream_tracks_;  // by device, context, stream
  using DeviceAndName = std::pair<uint32_t, StringId>;
  std::unordered_map<const char*, std::pair<std::string, std::map<DeviceAndName, FrameId>>> kernel_frames_;
  std::array<int64_t, kMaxSessions> next_flush_ns_{};
  int64_t device_flushed_ns_ = 0;
  int64_t looks_at_ns_ = 0;  // the rings
  uint64_t events_taken_ = 0;
  int64_t looked_before_ns_ = 0;
  int64_t cpu_at_ns_ = 0;
  CpuTimes cpu_;  // when events last came, so that what a capture says stays the same while nothing happens
};

template <class Visit>
void Recorder::for_phases(uint32_t mask, Visit&& visit) {
  for (uint32_t slot = 0; mask != 0; ++slot, mask >>= 1)
    if ((mask & 1) != 0)
      if (Phase* phase = owner(slot)) visit(*phase);
}

template <class Visit>
void Recorder::for_phases_of(uint32_t session, Visit&& visit) {
  for (const auto& phase : phases_)
    if (phase != nullptr && (session == kNone || phase->session() == session)) visit(*phase);
}

}  // namespace bragg
