// One recording: its metrics, its events and its capture file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/event_source.h"
#include "context/clock.h"
#include "context/own_cost.h"
#include "context/recording_state.h"
#include "data/awaited_launches.h"
#include "data/capture_writer.h"
#include "data/changing_meta.h"
#include "data/changing_rows.h"
#include "data/correlation_map.h"
#include "data/device_activity.h"
#include "data/durations.h"
#include "data/first_correlation.h"
#include "data/input_table.h"
#include "data/metric_table.h"
#include "data/per_id.h"
#include "data/recorder_cpu.h"
#include "data/sample_table.h"
#include "data/value_table.h"
#include "data/vocabulary.h"
#include "data/work_time.h"

namespace bragg {

struct SessionOptions {
  std::string part_path;
  std::string meta_json = "{}";
  bool uses_devices = true;  // else only the host is recorded
  SourceOptions of_sources;
  bool python_context = false;
  bool native_context = false;  // with C and C++ frames too
  bool trace = false;
  bool folds_idle = true;  // tells by call path what devices waited for
  ApiLevel api_level = ApiLevel::Off;
  uint32_t flush_interval_ms = 1000;
  uint64_t tree_limit_bytes = CallingContextTree::kDefaultLimitBytes;
  uint32_t rotate_interval_ms = 0;  // time after which a phase is followed by the next; 0: never by itself
};

struct Slice {
  int64_t start_ns;
  uint64_t duration_ns;
  NodeId node;
  TrackId track;
  CorrelationId correlation;
};

// Everything that tells two launches of one kernel apart in the driver's eyes.
struct KernelConfig {
  static constexpr size_t kFields = 14;
  // frame, registers, static_shared, dynamic_shared, local_per_thread, grid xyz, block xyz, cluster xyz
  uint32_t fields[kFields] = {};
  friend bool operator==(const KernelConfig&, const KernelConfig&) = default;
};

struct PhaseCounters {
  uint64_t launches = 0;
  uint64_t failed_launches = 0;  // not among these
  uint64_t kernels = 0;
  uint64_t copies = 0;
  uint64_t sets = 0;
  uint64_t graphs = 0;  // whole graphs, at graph level
  uint64_t scopes = 0;
  uint64_t api_calls = 0;
  uint64_t samples = 0;
  uint64_t metric_kernels = 0;  // kernels of ours that read metric values on the GPU
  uint64_t metric_kernels_ns = 0;
  uint64_t unordered_values = 0;  // read by them so fast that only their sum came
  uint64_t markers = 0;           // marks and ranges of the process
  uint64_t unattributed = 0;      // device records without a known launch
  uint64_t unknown_captures = 0;  // device records of graph nodes whose capture is not known
  uint64_t late = 0;              // device records of an earlier phase that had ended
  uint64_t dropped_slices = 0;    // of the timeline: the disk was behind
  uint64_t duplicates = 0;        // device records that came again: not counted again
  uint64_t bad_timestamps = 0;    // device records with no or a reversed interval: counted, not timed
};

// The first phase of a session.
struct Origin {
  std::string part_path;
  std::string meta_json;
  int64_t started_ns = now_ns();
  FirstCorrelation first_correlation{};
};

// What recording has cost the process so far, and lost.
struct ThreadTotals {
  CostTotals cost;
  CpuTimes cpu;
  int64_t cpu_at_ns = 0;
  uint64_t dropped_events = 0;
  uint64_t interleaved_scopes = 0;
  uint64_t cut_paths = 0;
  uint64_t autograd_nodes = 0;   // that operators of PyTorch made
  uint64_t evaluated_nodes = 0;  // that its engine ran
  uint64_t refused_nodes = 0;
  uint64_t too_deep = 0;
  uint64_t other_names = 0;
  uint64_t forgotten_copies = 0;  // that may have waited
};

// One phase of a recording. Threads: one at a time; the recorder's work lock guards it.
class Phase {
 public:
  Phase(SessionOptions options, uint32_t slot, uint32_t session = 0);
  [[nodiscard]] int open();  // 0 or errno

  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] SessionMask mask() const { return 1u << slot_ | 1u << (kSessionShift + session_); }  // slot and session
  [[nodiscard]] uint32_t slot() const { return slot_; }
  [[nodiscard]] uint32_t session() const { return session_; }
  [[nodiscard]] int64_t started_ns() const { return started_ns_; }
  [[nodiscard]] int64_t ended_ns() const { return retired_ns_ != 0 ? retired_ns_ : now_ns(); }

  // The node of an event or launch, in the contexts that this session records.
  template <class Event>
  [[nodiscard]] NodeId node_of(const Event& event) const {
    return options_.python_context ? event.python : event.shadow;
  }

  void count(NodeId node, MetricGroup group, uint64_t duration_ns, uint64_t bytes = 0, uint64_t times = 1) {
    metrics_.add(node, group, duration_ns, bytes, times);
  }
  void count_duration(FrameId kernel, const DeviceEvent& event) {
    durations_.add(kernel, static_cast<uint64_t>(event.end_ns - event.start_ns), event.start_ns);
  }
  void add_value(const ValueKey& key, uint64_t bits, uint64_t count = 1) { values_.add(key, bits, count); }
  void repeat_value(const ValueKey& key, uint64_t bits, uint64_t count) { values_.add_repeated(key, bits, count); }
  void add_input(const InputKey& key) { inputs_.add(key); }
  void add_samples(NodeId kernel, const Code& code, const PcSample& sample, uint64_t count, bool is_exact) {
    samples_.add(kernel, code, sample.pc_offset, sample.reason, count, is_exact);
  }
  [[nodiscard]] bool samples_instructions() const { return options_.of_sources.sampling.mode != SamplingMode::Off; }
  void keep(const Slice& slice) { slices_.push_back(slice); }                     // trace only
  void keep(const CounterSample& sample) { counter_samples_.push_back(sample); }  // trace only
  void keep(const ClockReading& reading) { clock_readings_.push_back(reading); }  // trace only
  [[nodiscard]] bool wants_flush() const {
    return std::max({slices_.size(), counter_samples_.size(), clock_readings_.size()}) >= kSlicesPerChunk;
  }
  // The disk is behind by so much that what is kept of a timeline would fill the memory.
  [[nodiscard]] bool is_behind() const { return writer_.waiting_bytes() > kMaxWaitingBytes; }
  void drop_slices();
  void count_kernel(const KernelConfig& config);
  void note_launch(CorrelationId correlation, const Launch& launch);
  void note_no_launch(const Launch& launch) { awaited_of(launch).remove(launch.round); }  // it was captured, or failed
  void note_record(const Launch& launch);
  // Whether a device record whose launch is not known was launched before this session's first phase: ids are handed
  // out in ascending order.
  [[nodiscard]] bool is_older(const DeviceEvent& event) const;
  // Whether a known launch belongs to an earlier user of this slot.
  [[nodiscard]] bool starts_after(CorrelationId correlation) const;

  void follow(const Phase& phase_before);
  // When and how the next phase begins by itself.
  [[nodiscard]] int64_t rotates_at_ns() const { return rotates_at_ns_; }
  void postpone_rotation();
  [[nodiscard]] std::string next_part_path() const;
  [[nodiscard]] std::string next_meta_json() const;
  // Nothing more is launched in it; what was launched is awaited.
  void retire(const ThreadTotals& totals, std::string end_meta_json);
  [[nodiscard]] bool is_retired() const { return retired_ns_ != 0; }
  [[nodiscard]] const std::string& end_meta_json() const { return end_meta_json_; }  // of a retired one
  // Whether all of its records have come, given that all that were complete at `flushed_ns` have.
  [[nodiscard]] bool is_drained(int64_t flushed_ns) const;
  // Which records are awaited. Each kernel has one; a copy of no bytes or a graph without work has none, and nothing
  // says so.
  struct Awaited {
    AwaitedLaunches kernels;
    AwaitedLaunches others;

    void give_up(DrainRound round, DrainRound current) {
      kernels.give_up(round, current);
      others.give_up(round, current);
    }
    void give_up_all() {
      kernels.give_up_all();
      others.give_up_all();
    }
  };
  [[nodiscard]] Awaited& awaited() { return awaited_; }
  // Launches whose records nobody waits for any more.
  [[nodiscard]] uint64_t missing_records() const;
  [[nodiscard]] bool gave_up() const { return awaited_.kernels.given_up() + awaited_.others.given_up() > 0; }

  // Writes what is new. `facts`: of the session now, for the capture's META.
  void flush(const std::vector<Track>& tracks, const JsonObject& facts);
  // The last flush, the caller's last META and END.
  void finish(const std::vector<Track>& tracks, const JsonObject& facts, const std::string& meta_json);
  void abandon() { writer_.abandon(); }

  [[nodiscard]] CaptureWriter& writer() { return writer_; }
  [[nodiscard]] uint64_t refused_kernel_configs() const { return refused_configs_; }
  [[nodiscard]] uint64_t refused_inputs() const { return inputs_.refused(); }
  [[nodiscard]] uint64_t refused_samples() const { return samples_.refused(); }

  PhaseCounters counters;
  DeviceActivity activity;
  WorkTime work;
  std::optional<int64_t> ready_before_work_ns;  // of the main thread
  ThreadTotals before;                          // when it started
  std::optional<ThreadTotals> after;            // when it was retired

 private:
  static constexpr size_t kSlicesPerChunk = 1u << 16;      // 1.8 MB buffered at most
  static constexpr uint64_t kMaxWaitingBytes = 64u << 20;  // 2.3 million slices

  struct KernelRow {
    KernelConfig config;
    uint64_t count = 0;
  };
  struct KernelConfigHash {
    size_t operator()(const KernelConfig& config) const noexcept;
  };

  // Each makes what its rows refer to known to the vocabulary, which is written before them.
  [[nodiscard]] Chunk metrics_chunk(const std::vector<MetricRow>& rows);
  [[nodiscard]] Chunk values_chunk(const std::vector<ValueRow>& rows);
  [[nodiscard]] Chunk inputs_chunk(const std::vector<InputRow>& rows);
  [[nodiscard]] Chunk durations_chunk(const std::vector<DurationRow>& rows);
  [[nodiscard]] Chunk codes_chunk();
  [[nodiscard]] Chunk samples_chunk(const std::vector<SampleRow>& rows);
  [[nodiscard]] Chunk slices_chunk();
  [[nodiscard]] Chunk counters_chunk();
  [[nodiscard]] Chunk clocks_chunk();
  [[nodiscard]] Chunk idle_chunk(const std::vector<IdleRow>& rows);
  [[nodiscard]] Chunk kernels_chunk(const std::vector<KernelRow>& rows);
  void write_cubins();
  void write_rows(std::span<const Chunk> chunks, const std::vector<Track>& tracks);
  void write_json(std::string_view json);
  void write_facts(const JsonObject& facts);
  void compact(const std::vector<Track>& tracks, const JsonObject& facts);

  SessionOptions options_;
  uint32_t slot_;
  uint32_t session_;
  CaptureWriter writer_;
  MetricTable metrics_;
  ValueTable values_;
  InputTable inputs_;
  Durations durations_;
  SampleTable samples_;
  uint32_t codes_written_ = 0;
  std::vector<Slice> slices_;
  std::vector<CounterSample> counter_samples_;
  std::vector<ClockReading> clock_readings_;
  ChangingRows<KernelRow> kernels_;
  std::unordered_map<KernelConfig, uint32_t, KernelConfigHash> kernel_rows_;
  PerId<FrameId, uint32_t> last_row_of_frame_{kNone};  // most launches repeat the configuration of the one before
  int64_t started_ns_ = now_ns();
  FirstCorrelation first_correlation_;
  std::shared_ptr<Origin> origin_;  // all phases have one
  uint32_t phase_ = 0;
  int64_t rotates_at_ns_ = std::numeric_limits<int64_t>::max();
  [[nodiscard]] AwaitedLaunches& awaited_of(const Launch& launch) {
    return launch.keeps ? awaited_.others : awaited_.kernels;
  }
  [[nodiscard]] uint64_t awaited_count() const { return awaited_.kernels.count() + awaited_.others.count(); }
  Awaited awaited_;
  bool has_open_ended_ = false;  // launches of which it is not known how many records they have
  int64_t last_record_ns_ = 0;
  int64_t retired_ns_ = 0;
  std::string end_meta_json_ = "{}";
  uint64_t refused_configs_ = 0;
  uint64_t metric_sequence_ = 0;
  Vocabulary vocabulary_;
  ChangingMeta meta_;
  int64_t end_told_ns_ = 0;  // when the capture was last told how long it is
  uint64_t compact_at_bytes_ = 8u << 20;
};

}  // namespace bragg
