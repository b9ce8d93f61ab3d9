// Something that is recorded: the threads of the host, the GPUs of a vendor. The recorder knows its sources by this
// alone.
#pragma once

#include <cstdint>
#include <string>

#include "backends/device_values.h"
#include "backends/event_sink.h"
#include "backends/instruction_samples.h"
#include "context/recording_state.h"
#include "data/json.h"

namespace bragg {

// Of single launches, counted exactly.
struct ExactCounterOptions {
  std::string pattern;  // of kernels' names, a POSIX extended regular expression; "": none
  std::string metrics = "default";
  uint32_t launches = 1;  // of each kernel and shape
};

// What a session wants.
struct SourceOptions {
  std::string library_candidates;  // of a vendor, ':'-separated
  bool whole_graphs = false;       // one record for each launch of a graph, instead of its nodes'; if all want it
  SamplingOptions sampling;
  std::string counters;              // hardware counters, ','-separated; "": none
  uint32_t counter_interval_us = 0;  // 0: by the source's budget
  ExactCounterOptions exact;
  double telemetry_hz = 0;  // 0: none; below: as much as 0.1 % of a core affords, in long runs
  bool memory = false;      // of GPUs, by the code that asked for it
  bool nccl = false;        // what NCCL tells of its collectives
  // Set by the recorder.
  uint32_t phase = 0;            // its slot
  uint64_t launches_before = 0;  // of the program, when the session began
};

// What the sessions that record at this moment want together.
struct Collecting {
  bool is_on = false;
  ApiLevel api_level = ApiLevel::Off;  // of the calls that become nodes
};

// A thread of the recorder calls most of these, so a call that hangs takes nobody with it. Sources live as long as the
// process, because callbacks on other threads may come at any time.
class EventSource {
 public:
  // What `add_value` says where the memory is another source's.
  static constexpr const char* kNotItsMemory = "the memory is of no device that is recorded";

  // Control calls, one at a time --------------------------------------------------------------------------------------

  // A session that wants it begins.
  virtual void start(const SourceOptions& options) = 0;
  // Recording begins, ends, or wants something else. Cheap: the source stays started.
  virtual void collect(const Collecting& wanted) = 0;
  // A phase of a session that records this source begins, or has ended. Cheap: the work lock may be held.
  virtual void begin_phase(const SourceOptions&) {}
  virtual void end_phase(const SourceOptions&) {}
  // A session that wanted it ends: brings the last samples and counts, if no other one wants them.
  virtual void end_session(const SourceOptions&) {}
  // The last session has ended.
  virtual void stop() = 0;

  // Thread of the sources, without a lock that a callback may wait for ------------------------------------------------

  // Every 20 ms. `launches`: of the program so far.
  virtual void poll(uint64_t launches) = 0;
  // Brings here what is complete, until `deadline_ns` of the monotonic clock. Never waits for a device: what it still
  // works on is `pending`. `is_last`: brings what can be brought only once, too, since nothing more will be recorded.
  virtual void drain(int64_t deadline_ns, bool is_last) = 0;
  // Brings samples, which come later than the records of their kernels, and waits for those that `end_phase` asked for.
  virtual void drain_samples() {}
  // False: the thread that waits for it must call `drain` itself.
  [[nodiscard]] virtual bool drains_in_background() { return true; }
  // Asks for what `describe` will tell.
  virtual void look() {}

  // Consumer side, work lock held -------------------------------------------------------------------------------------

  // Sets aside what has come by now. The rings of threads are read after this and before `take`, so that whatever a
  // thread wrote before a record existed is known when it is taken.
  virtual void gather() {}
  // Hands over a part of it, so that the lock is not held for long. True: there is more.
  virtual bool take(EventSink& sink) = 0;
  // How many samples a kernel gets, compared to others, while it is taken.
  [[nodiscard]] virtual double sample_weight(const DeviceEvent& /*kernel*/) { return 0; }
  // Facts for META, under names that are the source's.
  virtual void describe(JsonObject& meta, const SourceOptions& options) const = 0;

  // Any thread --------------------------------------------------------------------------------------------------------

  [[nodiscard]] virtual bool is_of_host() const { return false; }
  // Whether each launch will have records.
  [[nodiscard]] virtual bool tells_records() const { return false; }
  [[nodiscard]] virtual uint64_t dropped_records() const { return 0; }
  // What is on its way beside records of launches.
  [[nodiscard]] virtual uint64_t pending() const { return 0; }
  // The library of its vendor is there now, within a call of it.
  virtual void on_initialized() {}
  // Records that another tool of the process has taken come here again.
  virtual void reclaim() {}
  // Of this thread; kNone: not known.
  [[nodiscard]] virtual uint32_t current_device() const { return kNone; }
  // Adds an array to a metric at this thread's context. Why it was not done; "": it was, or nothing records.
  [[nodiscard]] virtual std::string add_value(MetricId, const DeviceArray&, void* /*stream*/) noexcept {
    return kNotItsMemory;
  }
  // What a session would find, JSON. Call it in a separate process.
  [[nodiscard]] virtual std::string probe(const std::string& /*library_candidates*/) { return "{}"; }

  // Around a fork, all of its locks held between the first and one of the others; a child has nothing of its parent.
  virtual void lock_for_fork() {}
  virtual void unlock_after_fork() {}
  virtual void after_fork_in_child() {}

 protected:
  ~EventSource() = default;
};

}  // namespace bragg
