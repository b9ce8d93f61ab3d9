#include "toy/toy_source.h"

#include <chrono>
#include <thread>
#include <utility>

#include "context/frame_table.h"

namespace bragg::test {
namespace {

template <class Row>
void move_all(std::vector<Row>& from, std::vector<Row>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from.clear();
}

}  // namespace

ToySource& ToySource::instance() {
  static ToySource& source = *new ToySource;
  return source;
}

void ToySource::submit(const std::string& name, int64_t start_ns, uint64_t duration_ns) {
  const std::lock_guard lock(mutex_);
  if (is_on_) submitted_.push_back({name, start_ns, duration_ns});
}

void ToySource::work() {
  const std::lock_guard lock(mutex_);
  move_all(submitted_, done_);
}

void ToySource::set_power(int64_t time_ns, double watts) {
  const std::lock_guard lock(mutex_);
  if (is_on_) power_.push_back({time_ns, watts});
}

bool ToySource::is_collecting() {
  const std::lock_guard lock(mutex_);
  return is_on_;
}

uint64_t ToySource::drains() const {
  const std::lock_guard lock(mutex_);
  return drains_;
}

uint64_t ToySource::stops() const {
  const std::lock_guard lock(mutex_);
  return stops_;
}

void ToySource::start(const SourceOptions&) {
  const std::lock_guard lock(mutex_);
  is_started_ = true;
}

void ToySource::collect(const Collecting& wanted) {
  const std::lock_guard lock(mutex_);
  is_on_ = is_started_ && wanted.is_on;
}

void ToySource::stop() {
  const std::lock_guard lock(mutex_);
  is_started_ = is_on_ = false;
  ++stops_;
  submitted_.clear();
}

void ToySource::poll(uint64_t) {
  if (const uint32_t poll_ms = poll_ms_.load(); poll_ms > 0) {
    is_polled_.store(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms));
    is_polled_.store(false);
  }
  const std::lock_guard lock(mutex_);
  ++polls_;
}

void ToySource::drain(int64_t, bool) {
  const std::lock_guard lock(mutex_);
  ++drains_;
  move_all(done_, ready_);
}

void ToySource::gather() {
  const std::lock_guard lock(mutex_);
  move_all(ready_, gathered_);
}

bool ToySource::take(EventSink& sink) {
  const std::lock_guard lock(mutex_);
  if (gathered_.empty() && power_.empty()) return false;
  if (!std::exchange(has_tracks_, true)) {
    lane_ = sink.add_lane("toy", kNone);
    unit_ = sink.add_unit("SM 3 warp 1", 0, 1, kClock);
    counter_ = sink.add_counter("toy power", "W", 0);
  }
  for (const Work& work : std::exchange(gathered_, {})) {
    const FrameId frame = FrameTable::instance().intern(FrameKind::Kernel, work.name);
    sink.take(SourceSlice{lane_, frame, work.start_ns, work.duration_ns});
    const int64_t ticks = (work.start_ns - kEpochNs) * kTicksPerNs;
    sink.take(SourceSlice{unit_, frame, ticks, work.duration_ns * kTicksPerNs});
    sink.take(ClockReading{kClock, ticks, work.start_ns});
    const auto end_ns = work.start_ns + static_cast<int64_t>(work.duration_ns);
    sink.take(ClockReading{kClock, (end_ns - kEpochNs) * kTicksPerNs, end_ns});
  }
  for (const Power& power : std::exchange(power_, {})) sink.take(CounterSample{counter_, power.time_ns, power.watts});
  return false;
}

void ToySource::describe(JsonObject& meta, const SourceOptions&) const {
  const std::lock_guard lock(mutex_);
  meta.raw(kName, JsonObject().put("polls", polls_).put("drains", drains_).text());
}

uint64_t ToySource::pending() const {
  const std::lock_guard lock(mutex_);
  return submitted_.size() + done_.size();
}

void ToySource::after_fork_in_child() {
  is_started_ = is_on_ = has_tracks_ = false;
  submitted_.clear();
  done_.clear();
  ready_.clear();
  gathered_.clear();
  power_.clear();
}

}  // namespace bragg::test
