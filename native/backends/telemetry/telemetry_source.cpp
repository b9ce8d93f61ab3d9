#include "backends/telemetry/telemetry_source.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/telemetry/shared_gpu.h"
#include "backends/telemetry/telemetry_thread.h"

namespace bragg {
namespace {

// A reading of energy takes 3 ms a GPU on some boards. What hangs longer is left behind.
constexpr auto kEnergyPatience = std::chrono::seconds(1);
constexpr auto kEndPatience = std::chrono::seconds(2);

class TelemetrySource final : public ThreadedSource<Telemetry, TelemetryPoint> {
 public:
  void start(const SourceOptions& options) override {
    const int64_t interval_ns = interval_of(options);
    if (interval_ns == 0) return;
    auto telemetry = std::make_shared<Telemetry>();
    telemetry->interval_ns = interval_ns;
    begin(std::move(telemetry), sample_telemetry);
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
  void drain_samples() override {
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr || hangs()) return;
    std::unique_lock lock(telemetry->mutex);
    answers_ = telemetry->changed.wait_for(lock, kEnergyPatience,
                                           [&] { return telemetry->done_borders >= telemetry->wanted_borders; });
  }

  void stop() override {
    end(kEndPatience, "NVML does not return: the last values of telemetry are missing");
    let_go();
  }

  void describe(JsonObject& meta, const SourceOptions& options) const override {
    if (interval_of(options) == 0) return;
    JsonObject json;
    if (hangs() || !answers_) json.put("reason", "NVML does not return");
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr) {
      if (hangs()) meta.raw("telemetry", json.text());
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

  // `apply` returns whether this is a border, where energy is read.
  template <class Apply>
  void change(Apply&& apply) {
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr) return;
    const std::lock_guard lock(telemetry->mutex);
    if (!apply(*telemetry)) return;
    ++telemetry->wanted_borders;
    telemetry->changed.notify_all();
  }

  TrackId track_of(const TelemetryPoint& point, EventSink& sink) override {
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

  void forget() override {
    SharedGpu::close_all_after_fork();
    answers_ = true;
    tracks_.clear();
  }

  std::atomic<bool> answers_{true};                          // the last time that somebody waited for it
  std::map<std::pair<uint32_t, uint32_t>, TrackId> tracks_;  // consumer side
};

}  // namespace

EventSource& telemetry_source() {
  static EventSource& source = *new TelemetrySource;  // its thread may outlive static destruction
  return source;
}

}  // namespace bragg
