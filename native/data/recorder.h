// The recorder of the process: sessions, the consumer thread, and the join of launches with device records.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "backends/device_event.h"
#include "backends/device_values.h"
#include "context/event_ring.h"
#include "context/thread_context.h"
#include "data/captured_paths.h"
#include "data/clock_steps.h"
#include "data/copy_waits.h"
#include "data/correlation_map.h"
#include "data/sample_attribution.h"
#include "data/session.h"

namespace bragg {

struct StartResult {
  int session = -1;    // >= 0: its line, by which it is known in all of its phases
  int os_error = 0;    // errno of the capture file
  std::string reason;  // why not, with what to do
};

// Threads: the public functions from any thread, one control call at a time (control lock). The consumer thread and
// control calls share the consumer-side state under the work lock; application threads touch neither.
class Recorder {
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

  void on_cuda_initialized();

  // Finishes all sessions when the signal would end the process, unless the program handles it; then it ends by it.
  static bool finish_on_signal(int number);

  // The parent's sessions stay the parent's: a forked child starts with none.
  void prepare_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  Recorder() { slot_of_line_.fill(kNone); }
  void consumer_loop();
  static void on_ending_signal(int number);
  [[noreturn]] void finish_and_end_by(int number);
  void step();  // work lock held
  void end_drained_phases();
  void drain_rings();
  void take_event(ThreadContext& thread, const Event& event);
  void take_api_call(ThreadContext& thread, const Event& event);
  void take_wait(const Event& call);
  void take_arrived_value(const ArrivedValue& value);
  void take_device_event(const DeviceEvent& event);
  [[nodiscard]] bool is_duplicate(const DeviceEvent& event, const Launch* launch);
  void take_record(Session& session, const Launch& launch, const DeviceEvent& event);
  [[nodiscard]] FrameId device_frame(const DeviceEvent& event, StringId wanted);
  void take_record_of_condition(const Launch& graph_launch, const DeviceEvent& event);
  [[nodiscard]] CapturedPlace* captured_place_of(const Launch& launch, const DeviceEvent& event);
  void add_graph_values();
  void note_sampled_kernel(const Session& session, const DeviceEvent& event, uint64_t cubin_crc, NodeId node);
  void take_samples();
  void settle_samples();
  [[nodiscard]] bool is_last_sampled(const Session& session);
  void end_samples(Session& session);
  void give_samples(uint32_t line, const SampleTarget* target, const Code& code, const PcSample& sample, uint64_t count,
                    bool is_exact);
  [[nodiscard]] uint32_t host_track(ThreadContext& thread);
  [[nodiscard]] uint32_t range_track();
  [[nodiscard]] uint32_t stream_track(const DeviceEvent& event);
  void flush_due_sessions();
  void wait_for_devices();
  void update_collecting();
  [[nodiscard]] bool all_want_whole_graphs(const Session& next);
  void finish_consumer();
  // nullptr: there is none, as in a forked child. Control lock held.
  [[nodiscard]] Session* current(int session) { return newest_on(static_cast<uint32_t>(session)); }
  // Calls open(slot) under the control lock, when a slot is free.
  template <class Open>
  [[nodiscard]] StartResult in_free_slot(Open&& open);
  [[nodiscard]] uint32_t free_slot();
  [[nodiscard]] uint32_t free_line();
  // 0 or errno. Control lock held.
  [[nodiscard]] int begin_phase(uint32_t slot, Session& ended, const std::string& part_path,
                                const std::string& meta_json, const std::string& end_meta_json);
  void rotate_due_sessions();
  // Makes a session known, not yet active.
  void install(std::unique_ptr<Session> session, uint32_t slot);
  void bring_all();  // work lock held, after the device's records came: nothing is missing of what has ended
  void end(Session& session, const std::string& meta_json);
  [[nodiscard]] ThreadTotals thread_totals();
  [[nodiscard]] JsonObject facts_of(const Session& session);  // for META
  [[nodiscard]] Session* newest_on(uint32_t line);
  [[nodiscard]] Session* owner(uint32_t slot);
  template <class Visit>
  void for_sessions(uint32_t mask, Visit&& visit);

  std::mutex control_mutex_;
  std::mutex device_flush_mutex_;  // the consumer flushes the device
  std::mutex work_mutex_;
  std::array<std::unique_ptr<Session>, kMaxSessions> sessions_;
  uint32_t next_slot_ = 0;  // slots go round, so that a late event of a stopped session meets no new one
  uint32_t next_line_ = 0;  // likewise
  std::array<uint32_t, kMaxSessions>
      slot_of_line_;  // of the current phase; kNone: no session. Written under both locks
  std::atomic<SessionMask> retired_{0};
  std::unique_ptr<std::thread> consumer_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> ending_signal_{0};

  // Consumer side.
  CorrelationMap launches_;
  CapturedPaths captured_paths_;
  CopyWaits copy_waits_;
  ClockSteps clock_steps_;
  struct RecordId {
    uint32_t correlation = 0;
    int64_t start_ns = 0;
    uint64_t graph_node = 0;
    friend bool operator==(const RecordId&, const RecordId&) = default;
  };
  RecordId last_record_;
  std::map<uint32_t, SampleAttribution> samples_of_line_;  // of the lines whose sessions sample instructions
  std::vector<uint64_t> multiprocessors_;                  // by device
  std::atomic<uint64_t> launch_count_{0};
  std::atomic<bool> samples_are_due_{false};
  std::vector<Track> tracks_;
  uint32_t range_track_ = kNone;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> stream_tracks_;
  using DeviceAndName = std::pair<uint32_t, StringId>;
  std::unordered_map<const char*, std::pair<std::string, std::map<DeviceAndName, FrameId>>> kernel_frames_;
  std::array<int64_t, kMaxSessions> next_flush_ns_{};
  int64_t device_flushed_ns_ = 0;
  int64_t looks_at_ns_ = 0;  // the rings
  int64_t looked_before_ns_ = 0;
  int64_t cpu_at_ns_ = 0;
  CpuTimes cpu_;  // when events last came, so that what a capture says stays the same while nothing happens
};

template <class Visit>
void Recorder::for_sessions(uint32_t mask, Visit&& visit) {
  for (uint32_t slot = 0; mask != 0; ++slot, mask >>= 1)
    if ((mask & 1) != 0)
      if (Session* session = owner(slot)) visit(*session);
}

}  // namespace bragg
