#include "backends/telemetry/telemetry_source.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "backends/telemetry/telemetry_thread.h"

namespace bragg {
namespace {

// A reading of energy takes 3 ms a GPU on some boards. What hangs longer is left behind.
constexpr auto kEnergyPatience = std::chrono::seconds(1);
constexpr auto kEndPatience = std::chrono::seconds(2);

class TelemetrySource final : public EventSource {
 public:
  void start(const SourceOptions& options) override {
    const int64_t interval_ns = interval_of(options);
    const std::lock_guard lock(mutex_);
    if (interval_ns == 0 || telemetry_ != nullptr || hangs_) return;
    telemetry_ = std::make_shared<Telemetry>();
    telemetry_->interval_ns = interval_ns;
    begin_telemetry(telemetry_);
  }

  void collect(const Collecting& wanted) override {
    change([&](Telemetry& telemetry) {
      if (telemetry.is_collecting == wanted.is_on) return false;
      telemetry.is_collecting = wanted.is_on;
      return true;
    });
  }

  void begin_phase(const SourceOptions& options) override {
    if (interval_of(options) == 0) return;
    change([&](Telemetry& telemetry) {
      telemetry.phases[options.phase] = {
          .has_ended = false, .interval_ns = interval_of(options), .host = {}, .gpus = {}};
      telemetry.choose_interval();
      return true;
    });
  }

  void end_phase(const SourceOptions& options) override {
    if (interval_of(options) == 0) return;
    change([&](Telemetry& telemetry) {
      const bool had_ended = std::exchange(telemetry.phases[options.phase].has_ended, true);
      telemetry.choose_interval();
      return !had_ended;
    });
  }

  // What `describe` tells has the energy up to the last border.
  void look() override {
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr || hangs_) return;
    std::unique_lock lock(telemetry->mutex);
    answers_ = telemetry->changed.wait_for(lock, kEnergyPatience,
                                           [&] { return telemetry->done_borders >= telemetry->wanted_borders; });
  }

  void stop() override {
    if (const std::shared_ptr<Telemetry> telemetry = current(); telemetry != nullptr && !hangs_) {
      std::unique_lock lock(telemetry->mutex);
      telemetry->must_end = true;
      telemetry->changed.notify_all();
      if (!telemetry->changed.wait_for(lock, kEndPatience, [&] { return telemetry->has_ended; })) {
        hangs_ = true;
        std::fputs("bragg: NVML does not return: the last values of telemetry are missing\n", stderr);
      }
    }
    const std::lock_guard lock(mutex_);
    telemetry_.reset();
  }

  void poll(uint64_t) override {}
  void drain(int64_t, bool) override {}

  void gather() override {
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr) return;
    const std::lock_guard lock(telemetry->mutex);
    gathered_.insert(gathered_.end(), telemetry->points.begin(), telemetry->points.end());
    telemetry->points.clear();
  }
  bool take(EventSink& sink) override {
    for (const TelemetryPoint& point : std::exchange(gathered_, {}))
      sink.take(CounterSample{track_of(point, sink), point.time_ns, point.value});
    return false;
  }

  void describe(JsonObject& meta, const SourceOptions& options) const override {
    if (interval_of(options) == 0) return;
    JsonObject json;
    if (hangs_ || !answers_) json.put("reason", "NVML does not return");
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr) {
      if (hangs_) meta.raw("telemetry", json.text());
      return;
    }
    const std::lock_guard lock(telemetry->mutex);
    json.put("interval_ns", interval_of(options)).raw("sampling", telemetry->facts);
    json.put("lost_values", telemetry->lost_points);
    const auto found = telemetry->phases.find(options.phase);
    if (found != telemetry->phases.end()) describe_phase(json, *telemetry, found->second);
    meta.raw("telemetry", json.text());
  }

  [[nodiscard]] bool is_of_host() const override { return true; }

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  // The thread is the parent's, and so is the lock that it may hold.
  void after_fork_in_child() override {
    new (&mutex_) std::mutex;
    new (&telemetry_) std::shared_ptr<Telemetry>;
    hangs_ = false;
    answers_ = true;
    gathered_.clear();
    tracks_.clear();
  }

 private:
  [[nodiscard]] static int64_t interval_of(const SourceOptions& options) {
    return options.telemetry_hz > 0 ? static_cast<int64_t>(1e9 / options.telemetry_hz) : 0;
  }

  static void describe_phase(JsonObject& json, const Telemetry& telemetry, const PhaseSums& phase) {
    JsonObject host, devices;
    describe_values(host, kHostQuantities, phase.host.values);
    json.raw("host", host.text());
    for (const auto& [ordinal, facts] : telemetry.gpu_facts) {
      JsonObject device;
      device.raw("source", facts);
      if (const auto sums = phase.gpus.find(ordinal); sums != phase.gpus.end()) sums->second.describe(device);
      devices.raw(std::to_string(ordinal), device.text());
    }
    json.raw("devices", devices.text());
  }

  [[nodiscard]] std::shared_ptr<Telemetry> current() const {
    const std::lock_guard lock(mutex_);
    return telemetry_;
  }

  // `apply` says whether that is a border.
  template <class Apply>
  void change(Apply&& apply) {
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr) return;
    const std::lock_guard lock(telemetry->mutex);
    if (!apply(*telemetry)) return;
    ++telemetry->wanted_borders;
    telemetry->changed.notify_all();
  }

  TrackId track_of(const TelemetryPoint& point, EventSink& sink) {
    const auto [entry, is_new] = tracks_.try_emplace({point.device, point.row});
    if (!is_new) return entry->second;
    const size_t reason = point.row - gpu_quantity::kCount;
    if (point.device == kNone)
      entry->second = sink.add_counter(kHostQuantities[point.row].track, kHostQuantities[point.row].unit, kNone);
    else if (point.row < gpu_quantity::kCount)
      entry->second = sink.add_counter(kGpuQuantities[point.row].track, kGpuQuantities[point.row].unit, point.device);
    else
      entry->second = sink.add_counter(kClockReasons[reason].track, "", point.device);
    return entry->second;
  }

  mutable std::mutex mutex_;  // of `telemetry_`
  std::shared_ptr<Telemetry> telemetry_;
  std::atomic<bool> hangs_{false};
  std::atomic<bool> answers_{true};  // the last time that somebody waited for it
  // Consumer side.
  std::vector<TelemetryPoint> gathered_;
  std::map<std::pair<uint32_t, uint32_t>, TrackId> tracks_;
};

}  // namespace

EventSource& telemetry_source() {
  static EventSource& source = *new TelemetrySource;  // its thread may outlive static destruction
  return source;
}

}  // namespace bragg
