#include "backends/telemetry/telemetry_thread.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "backends/cuda/cuda.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/telemetry/shared_gpu.h"
#include "backends/telemetry/telemetry_cost.h"
#include "context/clock.h"
#include "context/event.h"
#include "context/thread_context.h"

namespace bragg {
namespace {

// CPU time of a sample: with what the thread takes besides, 0.1 % of a core at 10 samples a second.
constexpr int64_t kBudgetNs = 50'000, kHostBudgetNs = 10'000;
constexpr int64_t kTellNs = 10'000'000'000;        // it takes as long as a call of NVML; borders and new GPUs tell, too
constexpr int64_t kRememberedNs = 60'000'000'000;  // more than the driver keeps
constexpr size_t kMostPoints = 1 << 18;            // 6 MB: the consumer takes them every few ms

class TelemetryThread {
 public:
  explicit TelemetryThread(std::shared_ptr<Telemetry> telemetry) : telemetry_(std::move(telemetry)) {}

  void run() {
    const OwnCalls own;
    int64_t due_ns = monotonic_ns();
    for (bool goes_on = true; goes_on;) {
      Work work = wait(due_ns);
      goes_on = !work.must_end;
      if (work.is_thrifty != is_thrifty_) {
        is_thrifty_ = work.is_thrifty;
        due_ns = monotonic_ns();
        work.is_due = true;
        if (work.works_since_ns != 0) began_ns_ = work.works_since_ns;
        cost_.limit_since(work.works_since_ns != 0 ? work.works_since_ns : due_ns, cost_.taken_ns());
      }
      if (goes_on) take_in_new_gpus();
      if (work.borders != 0) border(work);
      if (work.is_due && work.is_wanted) sample();
      if (work.is_due && !work.is_wanted) let_others_sample();
      if (work.is_due) due_ns = next_due(due_ns, work.interval_ns);
      if (work.is_due && is_thrifty_) due_ns = std::max(due_ns, cost_.affordable_ns());
    }
  }

 private:
  struct Work {
    bool must_end;
    bool is_due;
    bool is_wanted;
    bool is_thrifty;
    uint64_t borders;  // 0: there is none
    bool wants_energy;
    int64_t interval_ns;
    int64_t works_since_ns;
  };

  template <class Call>
  decltype(auto) within_nvml(Call&& call) {
    return telemetry_->calls.within([&]() -> decltype(auto) { return cost_.within_nvml(std::forward<Call>(call)); });
  }

  Work wait(int64_t due_ns) {
    Telemetry& shared = *telemetry_;
    std::unique_lock lock(shared.mutex);
    const auto nap = std::chrono::nanoseconds(std::max<int64_t>(0, due_ns - monotonic_ns()));
    shared.changed.wait_for(lock, nap, [&] { return shared.must_end || shared.wanted_borders > shared.done_borders; });
    const uint64_t borders = shared.wanted_borders > shared.done_borders ? shared.wanted_borders : 0;
    return {.must_end = shared.must_end,
            .is_due = monotonic_ns() >= due_ns,
            .is_wanted = shared.is_wanted(),
            .is_thrifty = shared.is_thrifty,
            .borders = borders,
            .wants_energy = std::exchange(shared.wants_energy, false),
            .interval_ns = shared.interval_ns,
            .works_since_ns = std::exchange(shared.works_since_ns, 0)};
  }

  // What was not sampled in time is left out, and counted where it was asked for.
  int64_t next_due(int64_t due_ns, int64_t interval_ns) {
    const int64_t missed = (monotonic_ns() - due_ns) / interval_ns;
    if (!is_thrifty_) missed_ += static_cast<uint64_t>(missed);
    return due_ns + (missed + 1) * interval_ns;
  }

  struct UsedGpu {
    GpuTelemetry telemetry;
    SharedGpu shared;
    uint64_t seen_reasons = 0;

    // Those that sample as often as they were asked to take no readings of thrifty ones.
    UsedGpu(const NvmlLibrary& library, uint32_t ordinal, bool is_thrifty)
        : telemetry(library, ordinal, CudaDriver::mapped().uuid(ordinal)),
          shared(telemetry.uuid() + (is_thrifty ? "-thrifty" : "")) {}
    [[nodiscard]] uint32_t ordinal() const { return telemetry.ordinal(); }
  };
  struct Reading {
    UsedGpu* gpu;
    int64_t time_ns;
    GpuReading reading;
  };

  // Those that this process launches on.
  void take_in_new_gpus() {
    if (!reason_.empty() || cuda_backend::state() != cuda_backend::State::Attached) return;
    for (const cuda_backend::KnownContext& context : cuda_backend::contexts()) {
      const uint32_t ordinal = context.device;
      if (std::ranges::find(gpus_, ordinal, [](auto& each) { return each->ordinal(); }) != gpus_.end()) continue;
      if (!library_.library && !load_library()) return tell();
      if (!reason_.empty()) return tell();
      within_nvml([&] { gpus_.push_back(std::make_unique<UsedGpu>(library_, ordinal, is_thrifty_)); });
      if (!is_thrifty_) begin_energy(gpus_.back()->telemetry);
      told_ns_ = 0;
    }
  }

  [[nodiscard]] bool load_library() {
    const int64_t before_ns = system_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool is_loaded = within_nvml([&] { return library_.load(reason_); });
    load_cpu_ns_ = system_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    return is_loaded;
  }

  [[nodiscard]] std::optional<EnergySum::Reading> energy_of(GpuTelemetry& gpu) {
    const int64_t before_ns = now_ns();
    const std::optional<uint64_t> millijoules = within_nvml([&] { return gpu.energy_mj(); });
    if (!millijoules) return std::nullopt;
    return EnergySum::Reading{*millijoules, before_ns + (now_ns() - before_ns) / 2};
  }

  void begin_energy(GpuTelemetry& gpu) {
    const auto reading = energy_of(gpu);
    const std::lock_guard lock(telemetry_->mutex);
    for (auto& [slot, phase] : telemetry_->phases)
      if (!phase.is_thrifty)
        phase.gpus[gpu.ordinal()].energy.border(reading, !phase.has_ended() && telemetry_->is_collecting);
  }

  void border(const Work& work) {
    keep(read_kept());
    if (work.wants_energy) read_energy();
    tell();
    const std::lock_guard lock(telemetry_->mutex);
    telemetry_->done_borders = work.borders;
    telemetry_->changed.notify_all();
  }

  void read_energy() {
    std::map<uint32_t, std::optional<EnergySum::Reading>> readings;
    for (const auto& gpu : gpus_) readings[gpu->ordinal()] = energy_of(gpu->telemetry);
    const std::lock_guard lock(telemetry_->mutex);
    for (auto& [slot, phase] : telemetry_->phases)
      for (const auto& [ordinal, reading] : readings)
        if (!phase.is_thrifty)
          phase.gpus[ordinal].energy.border(reading, !phase.has_ended() && telemetry_->is_collecting);
  }

  void sample() {
    const int64_t begin_ns = now_ns();
    const HostReading host = read_host(begin_ns);
    keep(read_gpus(), begin_ns, host);
    ++samples_;
    longest_ns_ = std::max(longest_ns_, now_ns() - begin_ns);
    if (begin_ns - told_ns_ > kTellNs) tell();
  }

  // Readings of a pause, or of a time that no phase covers, are left out.
  void keep(const std::vector<Reading>& readings, int64_t host_ns = 0, const HostReading& host = {}) {
    std::vector<TelemetryPoint> points;
    add_points(points, kNone, host_ns, host.values);
    const std::lock_guard lock(telemetry_->mutex);
    for (auto& [slot, phase] : telemetry_->phases)
      for (size_t i = 0; i < host.values.size() && phase.covers(host_ns); ++i) phase.host.values[i].add(host.values[i]);
    for (const Reading& each : readings) {
      bool is_covered = false;
      for (auto& [slot, phase] : telemetry_->phases) {
        if (!phase.covers(each.time_ns) || !telemetry_->was_collecting(each.time_ns)) continue;
        is_covered = true;
        phase.gpus[each.gpu->ordinal()].add(each.reading);
      }
      if (!is_covered) continue;
      add_points(points, each.gpu->ordinal(), each.time_ns, each.reading.values);
      add_reasons(points, each);
    }
    telemetry_->add(points, kMostPoints);
  }

  // `read` asks NVML, where this process samples the GPU; of GPUs that another one samples what that has published.
  template <class Read>
  std::vector<Reading> readings_of_gpus(Read&& read) {
    std::vector<Reading> readings;
    for (const auto& gpu : gpus_) {
      if (!gpu->telemetry.has_device()) continue;
      const int64_t time_ns = now_ns(), monotonic_time_ns = monotonic_ns();
      const auto take = [&](const TimedReading& each) {
        readings.push_back({gpu.get(), time_ns - (monotonic_time_ns - each.monotonic_ns), each.reading});
      };
      for (const TimedReading& each : gpu->shared.receive(monotonic_time_ns)) {
        take(each);
        if (std::isfinite(each.reading.values[gpu_quantity::kPower])) gpu->telemetry.skip_kept(each.monotonic_ns);
      }
      const std::vector<TimedReading> mine = read(*gpu, monotonic_time_ns);
      std::ranges::for_each(mine, take);
      gpu->shared.publish(mine);
    }
    return readings;
  }

  std::vector<Reading> read_gpus() {
    return readings_of_gpus([&](UsedGpu& gpu, int64_t monotonic_ns) -> std::vector<TimedReading> {
      if (!gpu.shared.claim(monotonic_ns)) return {};
      return within_nvml([&] { return gpu.telemetry.read(monotonic_ns, kBudgetNs / std::ssize(gpus_)); });
    });
  }

  // What others have not published by now.
  std::vector<Reading> read_kept() {
    return readings_of_gpus([&](UsedGpu& gpu, int64_t monotonic_ns) {
      return within_nvml([&] { return gpu.telemetry.take_kept(monotonic_ns); });
    });
  }

  void let_others_sample() {
    for (const auto& gpu : gpus_) gpu->shared.release();
  }

  // The file of a process with many threads takes 100 us and more.
  HostReading read_host(int64_t time_ns) {
    host_turns_.begin_sample(kHostBudgetNs);
    if (!host_turns_.is_due(0)) return {};
    const int64_t before_ns = system_ns(CLOCK_THREAD_CPUTIME_ID);
    const HostReading reading = host_.read(time_ns);
    host_turns_.note(0, system_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns);
    return reading;
  }

  template <size_t size>
  static void add_points(std::vector<TelemetryPoint>& points, uint32_t device, int64_t time_ns,
                         const std::array<double, size>& values) {
    for (uint32_t row = 0; row < size; ++row)
      if (std::isfinite(values[row])) points.push_back({device, row, time_ns, values[row]});
  }

  // A reason has a track from the first sample on that has it.
  static void add_reasons(std::vector<TelemetryPoint>& points, const Reading& each) {
    if (!each.reading.clock_reasons) return;
    const uint64_t reasons = *each.reading.clock_reasons;
    each.gpu->seen_reasons |= reasons;
    for (uint32_t row = 0; row < kClockReasons.size(); ++row)
      if ((each.gpu->seen_reasons & kClockReasons[row].bit) != 0)
        points.push_back({each.gpu->ordinal(), static_cast<uint32_t>(gpu_quantity::kCount) + row, each.time_ns,
                          (reasons & kClockReasons[row].bit) != 0 ? 1.0 : 0.0});
  }

  // For META.
  void tell() {
    told_ns_ = now_ns();
    JsonObject facts;
    if (!reason_.empty()) facts.put("reason", reason_);
    if (!library_.driver_version.empty()) facts.put("driver", library_.driver_version);
    facts.put("samples", samples_).put("missed_samples", missed_).put("longest_ns", longest_ns_);
    facts.put("cpu_ns", cost_.cpu_ns()).put("load_cpu_ns", load_cpu_ns_);
    facts.put("nvml_ns", cost_.nvml_ns()).put("taken_ns", cost_.taken_ns()).put("span_ns", monotonic_ns() - began_ns_);
    std::map<uint32_t, std::string> of_gpus;
    for (const auto& gpu : gpus_) {
      JsonObject json;
      gpu->telemetry.describe(json);
      if (gpu->shared.sampler() != 0) json.put("sampled_by", int64_t{gpu->shared.sampler()});
      of_gpus[gpu->ordinal()] = json.text();
    }
    const std::lock_guard lock(telemetry_->mutex);
    telemetry_->facts = facts.text();
    telemetry_->gpu_facts = std::move(of_gpus);
  }

  std::shared_ptr<Telemetry> telemetry_;
  NvmlLibrary library_;
  std::string reason_;  // why no GPU is sampled
  HostTelemetry host_;
  ReadingTurns<1> host_turns_{{1}};
  std::vector<std::unique_ptr<UsedGpu>> gpus_;
  TelemetryCost cost_;
  int64_t began_ns_ = monotonic_ns();  // the work on GPUs that its cost is limited by, or itself
  bool is_thrifty_ = false;
  uint64_t samples_ = 0, missed_ = 0;
  int64_t longest_ns_ = 0, load_cpu_ns_ = 0, told_ns_ = 0;
};

}  // namespace

void Telemetry::choose_interval() {
  const PhaseSums* chosen = nullptr;
  for (const auto& [slot, phase] : phases) {
    if (phase.has_ended()) continue;
    const auto rank = [](const PhaseSums& of) { return std::pair(of.is_thrifty, of.interval_ns); };
    if (chosen == nullptr || rank(phase) < rank(*chosen)) chosen = &phase;
  }
  if (chosen == nullptr) return;
  interval_ns = chosen->interval_ns;
  is_thrifty = chosen->is_thrifty;
}

bool Telemetry::is_wanted() const {
  return is_collecting && std::ranges::any_of(phases, [](const auto& phase) { return !phase.second.has_ended(); });
}

void Telemetry::switch_collecting(int64_t time_ns) {
  is_collecting = !is_collecting;
  switched_ns.push_back(time_ns);
  while (switched_ns.size() > 2 && switched_ns[1] < time_ns - kRememberedNs)
    switched_ns.erase(switched_ns.begin(), switched_ns.begin() + 2);
}

bool Telemetry::was_collecting(int64_t time_ns) const {
  return std::ranges::count_if(switched_ns, [&](int64_t each) { return each <= time_ns; }) % 2 == 0;
}

void sample_telemetry(const std::shared_ptr<Telemetry>& telemetry) { TelemetryThread(telemetry).run(); }

}  // namespace bragg
