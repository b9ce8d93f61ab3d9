#include "backends/cuda/counters/counter_source.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/counters/counter_device.h"
#include "backends/cuda/counters/counter_list.h"
#include "backends/cuda/cuda.h"
#include "context/thread_context.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr auto kNap = std::chrono::milliseconds(50);
// SetConfig takes 0.2 s, Disable 65 ms a GPU, on an H200. What hangs longer is left behind.
constexpr auto kEndPatience = std::chrono::seconds(5);
constexpr size_t kMostPoints = 1 << 20;  // 24 MB: the consumer takes them every few ms

// What the thread that talks to CUPTI shares with the others. Left behind with a thread that hangs.
struct Sampling {
  CounterDevice::Settings settings;
  std::mutex mutex;
  std::condition_variable changed;
  bool must_end = false;
  bool has_ended = false;
  std::vector<CounterPoint> points;
  uint64_t lost_points = 0;
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
        goes_on = !sampling_->changed.wait_for(lock, kNap, [&] { return sampling_->must_end; });
      }
      if (goes_on) take_in_new_devices();
      std::vector<CounterPoint> points;
      for (const auto& device : devices_) goes_on ? device->drain(points) : device->end(points);
      publish(points);
    }
    const std::lock_guard lock(sampling_->mutex);
    sampling_->has_ended = true;
    sampling_->changed.notify_all();
  }

 private:
  // A GPU is in use once something was launched on it: CUPTI knows no other.
  void take_in_new_devices() {
    if (!reason_.empty() || cuda_backend::state() != cuda_backend::State::Attached) return;
    for (const cuda_backend::KnownContext& context : cuda_backend::contexts()) {
      if (std::ranges::find(devices_, context.device, [](auto& each) { return each->ordinal(); }) != devices_.end())
        continue;
      if (library_.enable == nullptr && !load_pm_sampling(cuda_backend::cupti_library(), library_, reason_)) {
        std::fprintf(stderr, "bragg: %s\n", reason_.c_str());
        return;
      }
      devices_.push_back(std::make_unique<CounterDevice>(cuda_backend::cupti_library(), library_, context.device,
                                                         sampling_->settings));
      devices_.back()->open();
    }
  }

  void publish(const std::vector<CounterPoint>& points) {
    JsonObject devices;
    for (const auto& device : devices_) devices.raw(std::to_string(device->ordinal()), device->description_json());
    JsonObject json;
    if (!reason_.empty()) json.put("reason", reason_);
    json.raw("devices", devices.text());
    const std::lock_guard lock(sampling_->mutex);
    for (const auto& device : devices_) sampling_->counters.try_emplace(device->ordinal(), device->counters());
    const size_t room = kMostPoints - std::min(kMostPoints, sampling_->points.size());
    const size_t fitting = std::min(room, points.size());
    sampling_->points.insert(sampling_->points.end(), points.begin(), points.begin() + static_cast<ptrdiff_t>(fitting));
    sampling_->lost_points += points.size() - fitting;
    sampling_->description = json.put("lost_values", sampling_->lost_points).text();
  }

  std::shared_ptr<Sampling> sampling_;
  PmSamplingLibrary library_;
  std::string reason_;
  std::vector<std::unique_ptr<CounterDevice>> devices_;
};

// Signals of the program are for its own threads.
void begin_thread(const std::shared_ptr<Sampling>& sampling) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([sampling] { CounterThread(sampling).run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

class CounterSource final : public EventSource {
 public:
  void start(const SourceOptions& options) override {
    const std::lock_guard lock(mutex_);
    if (options.counters.empty() || sampling_ != nullptr || hangs_) return;
    sampling_ = std::make_shared<Sampling>();
    sampling_->settings = {counters_of(options.counters), uint64_t{options.counter_interval_us} * 1000};
    begin_thread(sampling_);
  }
  void collect(const Collecting&) override {}  // a restart would cost more than what a pause saves
  // The last session ends: its samples come before its capture is complete.
  void end_samples() override { end(); }
  void stop() override {
    end();
    const std::lock_guard lock(mutex_);
    sampling_.reset();
  }

  void poll(uint64_t) override {}
  void drain(int64_t, bool) override {}

  void gather() override {
    const std::shared_ptr<Sampling> sampling = current();
    if (sampling == nullptr) return;
    const std::lock_guard lock(sampling->mutex);
    gathered_.insert(gathered_.end(), sampling->points.begin(), sampling->points.end());
    sampling->points.clear();
    counters_ = sampling->counters;
  }
  bool take(EventSink& sink) override {
    for (const CounterPoint& point : std::exchange(gathered_, {}))
      sink.take(CounterSample{track_of(point, sink), point.time_ns, point.value});
    return false;
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

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  // The thread is the parent's, and so is the lock that it may hold.
  void after_fork_in_child() override {
    new (&mutex_) std::mutex;
    new (&sampling_) std::shared_ptr<Sampling>;
    hangs_ = false;
    gathered_.clear();
    counters_.clear();
    tracks_.clear();
  }

 private:
  [[nodiscard]] std::shared_ptr<Sampling> current() const {
    const std::lock_guard lock(mutex_);
    return sampling_;
  }

  void end() {
    const std::shared_ptr<Sampling> sampling = current();
    if (sampling == nullptr) return;
    std::unique_lock lock(sampling->mutex);
    sampling->must_end = true;
    sampling->changed.notify_all();
    if (hangs_ || sampling->changed.wait_for(lock, kEndPatience, [&] { return sampling->has_ended; })) return;
    hangs_ = true;
    std::fputs("bragg: CUPTI does not return from sampling counters: their last values are missing\n", stderr);
  }

  TrackId track_of(const CounterPoint& point, EventSink& sink) {
    const Counter& counter = counters_.at(point.device).at(point.counter);
    const auto [entry, is_new] = tracks_.try_emplace({point.device, counter.track});
    if (is_new) entry->second = sink.add_counter(counter.track, counter.unit, point.device);
    return entry->second;
  }

  mutable std::mutex mutex_;  // of `sampling_`
  std::shared_ptr<Sampling> sampling_;
  std::atomic<bool> hangs_{false};
  // Consumer side.
  std::vector<CounterPoint> gathered_;
  std::map<uint32_t, std::vector<Counter>> counters_;
  std::map<std::pair<uint32_t, std::string>, TrackId> tracks_;
};

}  // namespace

EventSource& counter_source() {
  static EventSource& source = *new CounterSource;  // its thread may outlive static destruction
  return source;
}

}  // namespace bragg
