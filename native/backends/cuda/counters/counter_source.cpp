#include "backends/cuda/counters/counter_source.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cuda/counters/counter_device.h"
#include "backends/cuda/counters/counter_list.h"
#include "backends/cuda/cuda.h"
#include "backends/threaded_source.h"
#include "context/thread_context.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr int64_t kNapNs = 50'000'000;  // while there is no GPU
// SetConfig takes 0.2 s, Disable 65 ms a GPU, on an H200. What hangs longer is left behind.
constexpr auto kEndPatience = std::chrono::seconds(5);
constexpr size_t kMostPoints = 1 << 20;  // 24 MB: the consumer takes them every few ms

struct Sampling : SharedPoints<CounterPoint> {
  CounterDevice::Settings settings;
  std::string description = "{}";
  std::map<uint32_t, std::vector<Counter>> counters;  // by device
};

// Of the thread.
class CounterThread {
 public:
  explicit CounterThread(std::shared_ptr<Sampling> sampling) : sampling_(std::move(sampling)) {}

  void run() {
    const OwnCalls own;
    for (bool goes_on = true; goes_on;) {
      {
        std::unique_lock lock(sampling_->mutex);
        goes_on = !sampling_->changed.wait_for(lock, nap(), [&] { return sampling_->must_end; });
      }
      if (goes_on) prepare_new_devices();
      const bool has_opened = goes_on && open_next();
      std::vector<CounterPoint> points;
      CounterRate::Turn turn{.gpus = devices_.size(), .may_restart = !has_opened};
      for (const auto& device : devices_)
        sampling_->calls.within([&] { goes_on ? device->drain(points, turn) : device->end(points); });
      publish(points);
    }
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds nap() const {
    if (n_opened_ < devices_.size()) return {};
    int64_t least_ns = 0;
    for (const auto& device : devices_)
      if (const int64_t nap_ns = device->nap_ns(devices_.size()); nap_ns != 0)
        least_ns = least_ns == 0 ? nap_ns : std::min(least_ns, nap_ns);
    return std::chrono::nanoseconds(least_ns != 0 ? least_ns : kNapNs);
  }

  // A GPU is in use once something was launched on it: CUPTI knows no other. What is prepared takes a second, in which
  // others come into use: none is sampled before, as nobody would take its samples.
  void prepare_new_devices() {
    while (prepare_new_device()) {
    }
  }

  bool prepare_new_device() {
    if (!reason_.empty() || cuda_backend::state() != cuda_backend::State::Attached) return false;
    for (const cuda_backend::KnownContext& context : cuda_backend::contexts()) {
      if (std::ranges::find(devices_, context.device, [](auto& each) { return each->ordinal(); }) != devices_.end())
        continue;
      if (library_.enable == nullptr && !load_pm_sampling(cuda_backend::cupti_library(), library_, reason_)) {
        std::fprintf(stderr, "bragg: %s\n", reason_.c_str());
        return false;
      }
      devices_.push_back(std::make_unique<CounterDevice>(cuda_backend::cupti_library(), library_, context.device,
                                                         sampling_->settings));
      sampling_->calls.within([&] { devices_.back()->prepare(); });
      return true;
    }
    return false;
  }

  // One at a time: the others are drained in between.
  bool open_next() {
    if (n_opened_ == devices_.size()) return false;
    double cost_ns = 0;
    for (const auto& device : devices_) cost_ns = std::max(cost_ns, device->cost_ns());
    sampling_->calls.within([&] { devices_[n_opened_++]->open(devices_.size(), cost_ns); });
    return true;
  }

  void publish(const std::vector<CounterPoint>& points) {
    JsonObject devices;
    for (const auto& device : devices_) devices.raw(std::to_string(device->ordinal()), device->description_json());
    JsonObject json;
    if (!reason_.empty()) json.put("reason", reason_);
    if (!library_.host.other_nvperf.empty()) json.put("other_nvperf", library_.host.other_nvperf);
    json.raw("devices", devices.text());
    const std::lock_guard lock(sampling_->mutex);
    for (const auto& device : devices_) sampling_->counters.try_emplace(device->ordinal(), device->counters());
    sampling_->add(points, kMostPoints);
    sampling_->description = json.put("lost_values", sampling_->lost_points).text();
  }

  std::shared_ptr<Sampling> sampling_;
  PmSamplingLibrary library_;
  std::string reason_;
  std::vector<std::unique_ptr<CounterDevice>> devices_;
  size_t n_opened_ = 0;  // of these, the first
};

class CounterSource final : public ThreadedSource<Sampling, CounterPoint> {
 public:
  void start(const SourceOptions& options) override {
    if (options.counters.empty()) return;
    ++sessions_;
    auto sampling = std::make_shared<Sampling>();
    sampling->settings = {counters_of(options.counters), uint64_t{options.counter_interval_us} * 1000};
    begin(std::move(sampling), [](const std::shared_ptr<Sampling>& own) { CounterThread(own).run(); });
  }
  void collect(const Collecting&) override {}  // a restart would cost more than what a pause saves
  // The last one that wants them: its samples come before its capture is complete. Others may go on.
  void end_session(const SourceOptions& options) override {
    if (!options.counters.empty() && --sessions_ == 0) end_sampling();
  }
  void stop() override {
    sessions_ = 0;
    end_sampling();
    let_go();
  }

  void describe(JsonObject& meta, const SourceOptions& options) const override {
    if (options.counters.empty()) return;
    if (const std::shared_ptr<Sampling> sampling = current()) {
      const std::lock_guard lock(sampling->mutex);
      meta.raw("counters", sampling->description);
    }
  }

  [[nodiscard]] std::string probe(const std::string& library_candidates) override {
    return counter_list_json(library_candidates);
  }

 protected:
  [[nodiscard]] std::string_view library() const override { return "CUPTI"; }
  void gather_more(const Sampling& sampling) override { counters_ = sampling.counters; }

  TrackId track_of(const CounterPoint& point, EventSink& sink) override {
    const Counter& counter = counters_.at(point.device).at(point.counter);
    const auto [entry, is_new] = tracks_.try_emplace({point.device, counter.track});
    if (is_new) entry->second = sink.add_counter(counter.track, counter.unit, point.device);
    return entry->second;
  }

  void forget() override {
    sessions_ = 0;
    counters_.clear();
    tracks_.clear();
  }

 private:
  void end_sampling() { end(kEndPatience, "the last values of counters are missing"); }

  size_t sessions_ = 0;  // that want them
  // Consumer side.
  std::map<uint32_t, std::vector<Counter>> counters_;
  std::map<std::pair<uint32_t, std::string>, TrackId> tracks_;
};

}  // namespace

EventSource& counter_source() {
  static EventSource& source = *new CounterSource;  // its thread may outlive static destruction
  return source;
}

}  // namespace bragg
