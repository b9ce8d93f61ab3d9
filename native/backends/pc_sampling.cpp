#include "backends/pc_sampling.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "backends/cubin_store.h"
#include "backends/cuda.h"
#include "backends/duty_cycle.h"
#include "backends/function_cubins.h"
#include "backends/sampled_device.h"
#include "backends/sampled_spans.h"
#include "context/clock.h"
#include "context/consumer_signal.h"
#include "context/thread_context.h"
#include "data/json.h"

namespace bragg::pc_sampling {
namespace {

// 2^15 cycles: 6 million samples a second on an H200; 2^11 fills the hardware's 512 MB in 0.1 s.
constexpr uint32_t kFirstPeriod = 15;
constexpr int64_t kDrainNs = 50'000'000;
// CUPTI's threads decode every 10 ms what the hardware has written.
constexpr auto kBringNap = std::chrono::milliseconds(10);
constexpr int kBringNaps = 3;
// What comes so long after the last session has paused was not sampled before.
constexpr int64_t kLateNs = 200'000'000;
// Cubins without lines only need to be told apart, if they are what compilers make while the program runs.
constexpr size_t kSmallCubinBytes = 1u << 20;
// The first start on a GPU takes 0.3 to 0.7 s.
constexpr auto kBeginningNap = std::chrono::milliseconds(1);
constexpr int kBeginningNaps = 3000;
constexpr auto kDyingNap = std::chrono::microseconds(100);
constexpr int kDyingNaps = 1000;  // 0.1 s

struct Sampling {
  std::atomic<bool> wanted{false};
  std::atomic<bool> active{false};
  std::mutex mutex;  // around calls of CUPTI; in a callback taken only outside of the gate
  SamplingOptions options;
  PcSamplingLibrary library;
  bool is_loaded = false;
  std::string reason;  // why nothing is sampled
  std::string last_description = "{}";
  std::vector<std::unique_ptr<SampledDevice>> devices;
  uint32_t other_contexts = 0;  // of GPUs that were taken
  std::optional<DutyCycle> cycle;
  int64_t next_drain_ns = 0;
  std::atomic<bool> calls_cupti{false};
  std::atomic<cuda::Context> dying{nullptr};
  std::atomic<uint64_t> begun{0};  // GPUs that are sampled, or cannot be: a bit each
  std::atomic<bool> is_serialized{false};
  std::mutex launching_alone;  // held in a serialized launch
  std::mutex arrived_mutex;
  std::vector<PcSample> arrived;
  std::atomic<int64_t> paused_ns{0};  // since when no session records; 0: one does
  [[nodiscard]] bool is_late() const {
    const int64_t since_ns = paused_ns.load();
    return since_ns != 0 && now_ns() > since_ns + kLateNs;
  }
};

Sampling& sampling() {
  static Sampling& instance = *new Sampling;  // callbacks come until the process is gone
  return instance;
}

const char* name_of(SamplingMode mode) {
  constexpr const char* kNames[] = {"off", "continuous", "windows", "serialized"};
  return kNames[static_cast<size_t>(mode)];
}

// A context whose end has begun is CUPTI's alone.
class CuptiCalls {
 public:
  explicit CuptiCalls(Sampling& self) : self_(self) { self_.calls_cupti.store(true); }
  ~CuptiCalls() { self_.calls_cupti.store(false); }
  CuptiCalls(const CuptiCalls&) = delete;
  CuptiCalls& operator=(const CuptiCalls&) = delete;

 private:
  Sampling& self_;
};

constexpr uint64_t bit_of(uint32_t device) { return uint64_t{1} << (device % 64); }

// Visits each device, and keeps the samples that this brings.
template <class Visit>
void bring_from_all(Sampling& self, Visit&& visit) {
  std::vector<PcSample> samples;
  for (const auto& device : self.devices) visit(*device, samples);
  if (samples.empty() || self.is_late()) return;
  const std::lock_guard lock(self.arrived_mutex);
  self.arrived.insert(self.arrived.end(), samples.begin(), samples.end());
}

void drain_all(Sampling& self) {
  bring_from_all(self, [](SampledDevice& device, auto& samples) { device.drain(samples); });
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
  const cuda::Context dying = self.dying.exchange(nullptr);
  if (dying == nullptr) return;
  std::erase_if(self.devices, [&](const auto& each) {
    if (each->context() != dying) return false;
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

// Otherwise a short program would be over before its GPU is sampled.
void await_begin(Sampling& self, uint32_t device) {
  const auto has_begun = [&] { return (self.begun.load() & bit_of(device)) != 0 || !self.active.load(); };
  if (has_begun()) return;
  consumer_signal.wake();
  for (int nap = 0; !has_begun() && nap < kBeginningNaps; ++nap) std::this_thread::sleep_for(kBeginningNap);
  self.begun.fetch_or(bit_of(device));
}

bool any_runs(const Sampling& self) {
  return std::ranges::any_of(self.devices, [](const auto& device) { return device->is_running(); });
}

void turn(Sampling& self, uint64_t launches) {
  DutyCycle& cycle = *self.cycle;
  if (self.devices.empty() || !cycle.is_due(now_ns())) return;
  const int64_t began_ns = now_ns();
  cycle.is_open() ? stop_all(self) : start_all(self);
  const int64_t done_ns = now_ns();
  if (any_runs(self) == cycle.is_open()) return;  // not now: a thread did not come out of a launch
  cycle.is_open() ? cycle.closed(done_ns, done_ns - began_ns, launches)
                  : cycle.opened(done_ns, done_ns - began_ns, launches);
}

void reset(Sampling& self) {
  self.wanted.store(false);
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
      .put("refused_cubins", CubinStore::instance().refused());
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

}  // namespace

void want(const SamplingOptions& options) {
  Sampling& self = sampling();
  const std::lock_guard lock(self.mutex);
  if (options.mode == SamplingMode::Off || self.options.mode != SamplingMode::Off) return;
  self.options = options;
  if (options.mode == SamplingMode::Windows) self.cycle.emplace(options.budget);
  self.is_serialized.store(options.mode == SamplingMode::Serialized);
  self.wanted.store(true);
}

bool is_wanted() noexcept { return sampling().wanted.load(std::memory_order_relaxed); }

void set_active(bool on) {
  Sampling& self = sampling();
  if (self.active.exchange(on) != on) self.paused_ns.store(on ? 0 : now_ns());
}

void step(uint64_t launches) {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  const std::lock_guard lock(self.mutex);
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
  if (now_ns() < self.next_drain_ns) return;
  self.next_drain_ns = now_ns() + kDrainNs;
  drain_all(self);
}

void bring() {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  const std::lock_guard lock(self.mutex);
  const CuptiCalls calls(self);
  drop_dying(self);
  for (int nap = 0; nap < kBringNaps && !self.devices.empty(); ++nap) {
    std::this_thread::sleep_for(kBringNap);
    drain_all(self);
  }
}

std::vector<PcSample> take() {
  Sampling& self = sampling();
  const std::lock_guard lock(self.arrived_mutex);
  return std::exchange(self.arrived, {});
}

void finish() {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  const std::lock_guard lock(self.mutex);
  const CuptiCalls calls(self);
  drop_dying(self);
  bring_from_all(self, [](SampledDevice& device, auto& samples) { device.end(samples); });
  self.last_description = describe(self);
  reset(self);
}

void before_launch(ThreadContext& thread) noexcept {
  Sampling& self = sampling();
  if (!is_wanted() || thread.gated_calls > 0) return;
  await_begin(self, thread.last_device);
  if (!self.is_serialized.load(std::memory_order_relaxed)) return;
  self.launching_alone.lock();
  thread.is_sampled_alone = true;
}

// Samples that are not taken before the next launch do not tell theirs.
void after_launch(ThreadContext& thread) noexcept {
  if (!thread.is_sampled_alone || thread.gated_calls > 0) return;
  Sampling& self = sampling();
  {
    const std::lock_guard lock(self.mutex);
    const CuptiCalls calls(self);
    drain_all(self);
  }
  thread.is_sampled_alone = false;
  self.launching_alone.unlock();
}

void note_module(const cupti::ModuleData& module) noexcept {
  if (!is_wanted() || module.cubin == nullptr) return;
  const bool has_lines = CubinStore::has_lines(module.cubin, module.cubin_size_bytes);
  if (!has_lines && module.cubin_size_bytes > kSmallCubinBytes) return;
  const auto crc_of = cuda_backend::cupti_library().library.function<cupti::CuptiGetCubinCrc>("cuptiGetCubinCrc");
  cupti::CubinCrcParams params{sizeof params, module.cubin_size_bytes, module.cubin, 0};
  if (crc_of == nullptr || crc_of(&params) != cupti::Result::Success) return;
  FunctionCubins::note_cubin(params.crc);
  if (has_lines) CubinStore::instance().keep(params.crc, module.cubin, module.cubin_size_bytes);
}

// The driver is about to destroy it, on a thread that may hold locks of CUPTI: waits for a call that is under way, not
// for ever.
void note_context_end(cuda::Context context) noexcept {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  self.dying.store(context);
  for (int nap = 0; self.calls_cupti.load() && nap < kDyingNaps; ++nap) std::this_thread::sleep_for(kDyingNap);
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
  self.arrived.clear();
  self.calls_cupti.store(false);
  reset(self);
}

std::string description_json() {
  Sampling& self = sampling();
  const std::lock_guard lock(self.mutex);
  return is_wanted() ? describe(self) : self.last_description;
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
