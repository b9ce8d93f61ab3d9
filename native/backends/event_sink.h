// What sources tell the recorder.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/device_event.h"
#include "backends/device_values.h"
#include "backends/instruction_samples.h"
#include "context/event.h"

namespace bragg {

class ThreadContext;

// A clock that is not the profile's, as a source numbers them. 0: the profile's.
enum class ClockId : uint32_t { Profile = 0 };

// Something that a source has timed itself.
struct SourceSlice {
  TrackId track;
  FrameId frame;
  int64_t start;  // in ticks of the track's clock: of the profile's ns
  uint64_t duration;
};

struct CounterSample {
  TrackId track;
  int64_t time_ns;
  double value;
};

// A clock, read together with the profile's.
struct ClockReading {
  ClockId clock;
  int64_t ticks;
  int64_t time_ns;
};

// Threads: consumer side, the recorder's work lock held.
class EventSink {
 public:
  virtual void take(ThreadContext& thread, const Event& event) = 0;
  virtual void take(const DeviceEvent& event) = 0;
  virtual void take(const ArrivedValue& value) = 0;
  virtual void take(const PcSample& sample) = 0;
  virtual void take(const InstructionCount& count) = 0;

  // Timelines of a source's own. `device`: kNone for none.
  [[nodiscard]] virtual TrackId add_counter(std::string_view name, std::string_view unit, uint32_t device) = 0;
  [[nodiscard]] virtual TrackId add_lane(std::string_view name, uint32_t device) = 0;
  // A unit of a device, such as an SM, a CTA or a warp, and the clock that its slices are timed by.
  [[nodiscard]] virtual TrackId add_unit(std::string_view name, uint32_t device, uint32_t number, ClockId clock) = 0;
  virtual void take(const SourceSlice& slice) = 0;
  virtual void take(const CounterSample& sample) = 0;
  virtual void take(const ClockReading& reading) = 0;

 protected:
  ~EventSink() = default;
};

}  // namespace bragg
