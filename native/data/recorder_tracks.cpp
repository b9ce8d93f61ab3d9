// What sources have timed and counted themselves, on tracks of their own.
#include "data/recorder.h"

namespace bragg {

TrackId Recorder::add_track(const Track& track) {
  tracks_.push_back(track);
  return static_cast<TrackId>(tracks_.size() - 1);
}

TrackId Recorder::add_counter(std::string_view name, std::string_view unit, uint32_t device) {
  auto& frames = FrameTable::instance();
  const StringId unit_text = frames.intern_string(unit);
  return add_track({TrackKind::Counter, device, number_of(unit_text), 0, frames.intern_string(name)});
}

TrackId Recorder::add_lane(std::string_view name, uint32_t device) {
  return add_track({TrackKind::Ranges, device, kNone, 0, FrameTable::instance().intern_string(name)});
}

TrackId Recorder::add_unit(std::string_view name, uint32_t device, uint32_t number, ClockId clock) {
  return add_track({TrackKind::DeviceUnit, device, static_cast<uint32_t>(clock), number,
                    FrameTable::instance().intern_string(name)});
}

// Of the phases that continue.
template <class Visit>
void Recorder::for_open_phases(Visit&& visit) {
  for_phases(recording_state.existing.load() & ~retired_.load(), visit);
}

// On a lane it is like a range of the process, which overlaps what threads do.
void Recorder::take(const SourceSlice& slice) {
  const NodeId node = CallingContextTree::instance().child(kRootNode, slice.frame);
  for_open_phases([&](Phase& phase) {
    if (tracks_[number_of(slice.track)].kind == TrackKind::Ranges) {
      ++phase.counters.markers;
      phase.count(node, MetricGroup::Marker, slice.duration);
    }
    if (phase.options().trace) phase.keep({slice.start, slice.duration, node, slice.track, CorrelationId::None});
  });
}

void Recorder::take(const CounterSample& sample) {
  for_open_phases([&](Phase& phase) {
    if (phase.options().trace) phase.keep(sample);
  });
}

void Recorder::take(const ClockReading& reading) {
  for_open_phases([&](Phase& phase) {
    if (phase.options().trace) phase.keep(reading);
  });
}

}  // namespace bragg
