#include "backends/telemetry/telemetry_source.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/telemetry/shared_gpu.h"
#include "backends/telemetry/telemetry_cost.h"
#include "backends/telemetry/telemetry_thread.h"
#include "context/clock.h"

namespace bragg {
namespace {

// A reading of energy takes 3 ms a GPU on some boards. What hangs longer is left behind.
constexpr auto kEnergyPatience = std::chrono::seconds(1);
constexpr auto kEndPatience = std::chrono::seconds(2);
constexpr int64_t kThriftyIntervalNs = 100'000'000;  // where that costs little enough
// Of GPU work, before thrifty telemetry begins. Loading NVML takes 20 ms, which are 0.1 % of this time.
constexpr const char* kAfterVariable = "BRAGG_TELEMETRY_AFTER_S";
constexpr double kAfterS = 20;

int64_t after_ns() {
  const char* text = std::getenv(kAfterVariable);
  double seconds = kAfterS;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), seconds);
  return static_cast<int64_t>(std::clamp(seconds, 0.0, 1e6) * 1e9);
}

class TelemetrySource final : public ThreadedSource<Telemetry, TelemetryPoint> {
 public:
  void start(const SourceOptions& options) override {
    const int64_t interval_ns = interval_of(options);
    if (interval_ns == 0) return;
    auto telemetry = std::make_shared<Telemetry>();
    telemetry->interval_ns = interval_ns;
    telemetry->is_thrifty = is_thrifty(options);
    prepare(std::move(telemetry));
    if (is_thrifty(options))
      await_work(options.launches_before);
    else
      begin_prepared(sample_telemetry);
  }

  // A program that does little on a GPU gets neither a thread nor NVML.
  void poll(uint64_t launches) override {
    if (!awaits_work_.load() || launches <= launches_before_.load()) return;
    const int64_t now_ns = monotonic_ns();
    if (works_since_ns_ == 0) works_since_ns_ = now_ns;
    if (now_ns - works_since_ns_ < after_ns_) return;
    awaits_work_.store(false);
    if (const std::shared_ptr<Telemetry> telemetry = current(); telemetry != nullptr) {
      const std::lock_guard lock(telemetry->mutex);
      telemetry->works_since_ns = works_since_ns_;
    }
    begin_prepared(sample_telemetry);
  }

  void collect(const Collecting& wanted) override {
    change([&](Telemetry& telemetry) {
      if (telemetry.is_collecting == wanted.is_on) return false;
      telemetry.switch_collecting(now_ns());
      return true;
    });
  }

  void begin_phase(const SourceOptions& options) override {
    if (interval_of(options) == 0) return;
    change([&](Telemetry& telemetry) {
      telemetry.phases[options.phase] = {.begins_ns = now_ns(),
                                         .ends_ns = PhaseSums::kNever,
                                         .is_thrifty = is_thrifty(options),
                                         .interval_ns = interval_of(options),
                                         .host = {},
                                         .gpus = {}};
      telemetry.choose_interval();
      return true;
    });
  }

  void end_phase(const SourceOptions& options) override {
    if (interval_of(options) == 0) return;
    change([&](Telemetry& telemetry) {
      PhaseSums& phase = telemetry.phases[options.phase];
      if (phase.has_ended()) return false;
      phase.ends_ns = now_ns();
      telemetry.choose_interval();
      return true;
    });
  }

  // What `describe` tells has power and energy up to the last border.
  void drain_samples() override {
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr || hangs()) return;
    std::unique_lock lock(telemetry->mutex);
    if (!telemetry->has_begun) return;
    answer_ =
        telemetry->await(lock, kEnergyPatience, [&] { return telemetry->done_borders >= telemetry->wanted_borders; });
  }

  void stop() override {
    awaits_work_.store(false);
    end(kEndPatience, "the last values of telemetry are missing");
    let_go();
  }

  void describe(JsonObject& meta, const SourceOptions& options) const override {
    if (interval_of(options) == 0) return;
    JsonObject json;
    if (const Awaited how = hangs() ? end_state() : answer_.load(); how != Awaited::Came)
      json.put("reason", why_silent(how));
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr) {
      if (hangs()) meta.raw("telemetry", json.text());
      return;
    }
    const std::lock_guard lock(telemetry->mutex);
    if (!telemetry->has_begun) return;
    if (is_thrifty(options)) json.put("limit_ppm", static_cast<int64_t>(kThriftyShare * 1e6));
    json.put("interval_ns", interval_of(options)).raw("sampling", telemetry->facts);
    json.put("lost_values", telemetry->lost_points);
    const auto found = telemetry->phases.find(options.phase);
    if (found != telemetry->phases.end()) describe_phase(json, *telemetry, found->second);
    meta.raw("telemetry", json.text());
  }

  [[nodiscard]] bool is_of_host() const override { return true; }

 protected:
  [[nodiscard]] std::string_view library() const override { return "NVML"; }

 private:
  [[nodiscard]] static int64_t interval_of(const SourceOptions& options) {
    if (is_thrifty(options)) return kThriftyIntervalNs;
    return options.telemetry_hz > 0 ? static_cast<int64_t>(1e9 / options.telemetry_hz) : 0;
  }
  [[nodiscard]] static bool is_thrifty(const SourceOptions& options) { return options.telemetry_hz < 0; }

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

  // A session beside one that awaits it already does not put it off.
  void await_work(uint64_t launches_before) {
    if (awaits_work_.load()) return;
    launches_before_ = launches_before;
    works_since_ns_ = 0;
    after_ns_ = after_ns();
    awaits_work_.store(true);
  }

  // `apply` returns whether this is a border, up to which power is taken in, and energy read where it was asked for.
  template <class Apply>
  void change(Apply&& apply) {
    const std::shared_ptr<Telemetry> telemetry = current();
    if (telemetry == nullptr) return;
    const std::lock_guard lock(telemetry->mutex);
    const bool was_thrifty = telemetry->is_thrifty;
    if (!apply(*telemetry)) return;
    ++telemetry->wanted_borders;
    telemetry->wants_energy |= !was_thrifty || !telemetry->is_thrifty;
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
    answer_ = Awaited::Came;
    awaits_work_.store(false);
    works_since_ns_ = 0;
    tracks_.clear();
  }

  std::atomic<int64_t> after_ns_{0};
  std::atomic<bool> awaits_work_{false};
  std::atomic<uint64_t> launches_before_{0};                 // of the program, when it began to await work
  std::atomic<int64_t> works_since_ns_{0};                   // of the monotonic clock; 0: it does not yet
  std::atomic<Awaited> answer_{Awaited::Came};               // the last time that somebody waited for it
  std::map<std::pair<uint32_t, uint32_t>, TrackId> tracks_;  // consumer side
};

}  // namespace

EventSource& telemetry_source() {
  static EventSource& source = *new TelemetrySource;  // its thread may outlive static destruction
  return source;
}

}  // namespace bragg
