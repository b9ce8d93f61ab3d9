#include "backends/cuda/samples/pc_sampling.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "backends/code_images.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/samples/sampled_spans.h"
#include "backends/cuda/samples/sampling_state.h"
#include "backends/cuda/values/value_kernel.h"
#include "data/json.h"

namespace bragg::pc_sampling {
namespace {

// 2^15 cycles: 6 million samples a second on an H200; 2^11 fills the hardware's 512 MB in 0.1 s.
constexpr uint32_t kFirstPeriod = 15;
constexpr int64_t kDrainNs = 50'000'000;
// CUPTI's threads decode every 10 ms what the hardware has written.
constexpr auto kBringNap = std::chrono::milliseconds(10);
constexpr int kBringNaps = 3;

const char* name_of(SamplingMode mode) {
  constexpr const char* kNames[] = {"off", "continuous", "windows", "serialized"};
  return kNames[static_cast<size_t>(mode)];
}

void start_all(Sampling& self) {
  for (const auto& device : self.devices) device->start();
}

void stop_all(Sampling& self) {
  bring_from_all(self, [](SampledDevice& device, auto& samples) { device.stop(samples); });
}

void load(Sampling& self) {
  self.is_loaded = load_pc_sampling(cuda_backend::cupti_library(), self.library, self.reason);
  if (!self.is_loaded) std::fprintf(stderr, "bragg: %s\n", self.reason.c_str());
}

void take_in_new_contexts(Sampling& self) {
  if (self.options.mode == SamplingMode::Off || cuda_backend::state() != cuda_backend::State::Attached) return;
  const std::vector<cuda_backend::KnownContext> contexts = cuda_backend::contexts();
  if (contexts.empty()) return;
  if (!self.is_loaded && self.reason.empty()) load(self);
  if (!self.is_loaded) return;
  const SampledDevice::Settings settings{self.options.mode == SamplingMode::Serialized
                                             ? cupti::CollectionMode::Serialized
                                             : cupti::CollectionMode::Continuous,
                                         self.options.period != 0 ? self.options.period : kFirstPeriod};
  self.other_contexts = 0;
  for (const cuda_backend::KnownContext& context : contexts) {
    const auto device = std::ranges::find(self.devices, context.device, [](auto& each) { return each->ordinal(); });
    if (device == self.devices.end()) {
      self.devices.push_back(std::make_unique<SampledDevice>(cuda_backend::cupti_library(), self.library,
                                                             context.handle, context.device, settings));
    } else if ((*device)->context() != context.handle) {
      ++self.other_contexts;
    }
  }
}

void drop_dying(Sampling& self) {
  std::vector<cuda::Context> dying;
  {
    const std::lock_guard lock(self.dying_mutex);
    dying.swap(self.dying);
  }
  std::erase_if(self.devices, [&](const auto& each) {
    if (std::ranges::find(dying, each->context()) == dying.end()) return false;
    SampledSpans::instance().end(each->ordinal(), now_ns());
    self.begun.fetch_and(~bit_of(each->ordinal()));
    return true;
  });
}

void note_begun(Sampling& self) {
  if (!self.reason.empty()) self.begun.store(~uint64_t{0});
  for (const auto& device : self.devices)
    if (device->is_running() || device->is_refused()) self.begun.fetch_or(bit_of(device->ordinal()));
}

bool any_runs(const Sampling& self) {
  return std::ranges::any_of(self.devices, [](const auto& device) { return device->is_running(); });
}

void turn(Sampling& self, uint64_t launches) {
  DutyCycle& cycle = *self.cycle;
  if (self.devices.empty() || !cycle.is_due(now_ns(), launches)) return;
  const int64_t began_ns = now_ns();
  cycle.is_open() ? stop_all(self) : start_all(self);
  const int64_t done_ns = now_ns();
  if (any_runs(self) == cycle.is_open()) return;  // not now: a thread did not come out of a launch
  cycle.is_open() ? cycle.closed(done_ns, done_ns - began_ns, launches)
                  : cycle.opened(done_ns, done_ns - began_ns, launches);
}

void reset(Sampling& self) {
  cuda_backend::launch_watch.samples_instructions.store(false);
  self.active.store(false);
  self.begun.store(0);
  self.is_serialized.store(false);
  self.paused_ns.store(0);
  self.devices.clear();
  self.options = {};
  self.cycle.reset();
  self.reason.clear();
  self.is_loaded = false;
}

std::string describe(const Sampling& self) {
  JsonObject json;
  json.put("mode", name_of(self.options.mode));
  if (!self.reason.empty()) json.put("reason", self.reason);
  JsonObject devices;
  for (const auto& device : self.devices) devices.raw(std::to_string(device->ordinal()), device->description_json());
  json.raw("devices", devices.text())
      .put("other_contexts", self.other_contexts)
      .put("refused_cubins", CodeImages::instance().refused());
  if (self.cycle.has_value()) {
    JsonObject cycle;
    cycle.raw("budget", std::to_string(self.options.budget))
        .raw("reached", std::to_string(self.cycle->reached(now_ns())))
        .raw("slowdown", std::to_string(self.cycle->slowdown()))
        .put("windows", self.cycle->windows())
        .put("open_ns", self.cycle->open_ns());
    json.raw("cycle", cycle.text());
  }
  return json.text();
}

// Whoever asks for it holds a lock that must not wait for calls of CUPTI.
void publish_description(Sampling& self) {
  std::string description = describe(self);
  const std::lock_guard lock(self.description_mutex);
  self.description = std::move(description);
}

}  // namespace

Sampling& sampling() {
  static Sampling& instance = *new Sampling;  // callbacks come until the process is gone
  return instance;
}

void want(const SamplingOptions& options) {
  Sampling& self = sampling();
  const std::lock_guard lock(self.mutex);
  if (options.mode == SamplingMode::Off || self.options.mode != SamplingMode::Off) return;
  self.options = options;
  if (options.mode == SamplingMode::Windows) self.cycle.emplace(options.budget);
  self.is_serialized.store(options.mode == SamplingMode::Serialized);
  cuda_backend::launch_watch.samples_instructions.store(true);
  publish_description(self);
}

void set_active(bool on) {
  Sampling& self = sampling();
  if (self.active.exchange(on) != on) self.paused_ns.store(on ? 0 : now_ns());
}

void step(uint64_t launches) {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  const std::lock_guard lock(self.mutex);
  if (!is_wanted()) return;  // it ended meanwhile
  const CuptiCalls calls(self);
  drop_dying(self);
  if (self.active.load()) {
    take_in_new_contexts(self);
    if (self.cycle.has_value()) {
      turn(self, launches);
    } else {
      start_all(self);
    }
    note_begun(self);
  }
  if (now_ns() >= self.next_drain_ns) {
    self.next_drain_ns = now_ns() + kDrainNs;
    drain_all(self);
  }
  publish_description(self);
}

void bring() {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  const std::lock_guard lock(self.mutex);
  if (!is_wanted()) return;
  const CuptiCalls calls(self);
  drop_dying(self);
  for (int nap = 0; nap < kBringNaps && !self.devices.empty(); ++nap) {
    std::this_thread::sleep_for(kBringNap);
    drain_all(self);
  }
  publish_description(self);
}

std::vector<PcSample> take() {
  static const StringId own_kernel = FrameTable::instance().intern_string(value_kernel::kName);
  std::vector<PcSample> arrived;
  {
    Sampling& self = sampling();
    const std::lock_guard lock(self.arrived_mutex);
    arrived.swap(self.arrived);
  }
  std::erase_if(arrived, [](const PcSample& sample) { return sample.function == own_kernel; });
  return arrived;
}

void finish() {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  const std::lock_guard lock(self.mutex);
  const CuptiCalls calls(self);
  drop_dying(self);
  bring_from_all(self, [](SampledDevice& device, auto& samples) { device.end(samples); });
  publish_description(self);
  reset(self);
}

void lock_for_fork() {
  sampling().arrived_mutex.lock();
  SampledSpans::instance().lock_for_fork();
}

void unlock_after_fork() {
  SampledSpans::instance().unlock_after_fork();
  sampling().arrived_mutex.unlock();
}

void after_fork_in_child() {
  Sampling& self = sampling();
  new (&self.mutex) std::mutex;
  new (&self.launching_alone) std::mutex;
  new (&self.dying_mutex) std::mutex;
  new (&self.description_mutex) std::mutex;
  self.arrived.clear();
  self.calls_cupti.store(false);
  reset(self);
}

std::string description_json() {
  Sampling& self = sampling();
  const std::lock_guard lock(self.description_mutex);
  return self.description;
}

std::string probe(const CuptiLibrary& cupti, cuda::Context context) {
  PcSamplingLibrary library;
  std::string reason;
  if (!load_pc_sampling(cupti, library, reason)) return reason;
  PcSampler sampler(library, context);
  if (const auto result = sampler.enable({}); result != cupti::Result::Success) return sampling_refusal(cupti, result);
  std::vector<PcSample> none;
  SampleCounters counters;
  (void)sampler.disable(none, counters);
  return "";
}

}  // namespace bragg::pc_sampling
