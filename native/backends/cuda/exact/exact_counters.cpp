#include "backends/cuda/exact/exact_counters.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/cuda.h"
#include "backends/cuda/exact/chosen_launches.h"
#include "backends/cuda/exact/exact_device.h"
#include "backends/cuda/samples/launch_gate.h"
#include "context/clock.h"
#include "context/frame_table.h"
#include "context/stream_captures.h"
#include "data/json.h"

namespace bragg::exact_counters {
namespace {

using cuda_backend::launch_watch;

constexpr auto kTurnNap = std::chrono::milliseconds(1);
constexpr int kFinishNaps = 5000;  // 5 s: a first launch takes 0.5 s; what hangs is left behind
constexpr int kContextNaps = 100;
constexpr uint64_t kMostBegunRounds = 2000;  // of passes: 20 KB and more each

struct Exact {
  // The thread of `launch_watch.counting` alone uses these.
  std::optional<LaunchGate::Closed> gate;
  ChosenLaunches::Kernel* kernel = nullptr;  // that is counted
  ExactDevice* device = nullptr;             // on which
  size_t set = 0;                            // of its counters
  std::optional<ContextNodes> node;          // of the kernel
  int64_t began_ns = 0;
  std::vector<std::unique_ptr<ExactDevice>> devices;
  RangeProfilerLibrary library;
  bool is_loaded = false;

  std::mutex mutex;  // of what follows; never held while CUPTI is called
  ExactCounterOptions options;
  ChosenLaunches chosen;
  std::string reason;
  uint64_t launches = 0, spent_ns = 0;
  uint64_t begun_rounds = 0;  // of passes, that are not complete
  std::string devices_json = "{}";
  std::vector<InstructionCount> instructions;  // that nobody has taken
};

Exact& exact() {
  static Exact& instance = *new Exact;  // callbacks come until the process is gone
  return instance;
}

bool take_turn(const ThreadContext& thread) {
  const ThreadContext* nobody = nullptr;
  return launch_watch.counting.compare_exchange_strong(nobody, &thread, std::memory_order_acq_rel);
}
void give_turn_back() { launch_watch.counting.store(nullptr, std::memory_order_release); }

bool await_turn(const ThreadContext& thread, int naps) {
  for (int nap = 0; !take_turn(thread); ++nap) {
    if (nap == naps) return false;
    std::this_thread::sleep_for(kTurnNap);
  }
  return true;
}

void publish_devices(Exact& self) {
  JsonObject json;
  for (const auto& device : self.devices) json.raw(std::to_string(device->ordinal()), device->description_json());
  const std::lock_guard lock(self.mutex);
  self.devices_json = json.text();
}

void end_for_good(Exact& self, const std::string& reason) {
  {
    const std::lock_guard lock(self.mutex);
    self.reason = reason;
  }
  launch_watch.counts_launches.store(false);
  std::fprintf(stderr, "bragg: no launches are counted exactly: %s\n", reason.c_str());
}

// nullptr: nothing can be counted in this context.
ExactDevice* device_of(Exact& self, cuda::Context context, uint32_t ordinal) {
  const auto found = std::ranges::find(self.devices, context, [](const auto& each) { return each->context(); });
  if (found != self.devices.end()) return (*found)->reason().empty() ? found->get() : nullptr;
  if (!self.is_loaded) {
    std::string reason;
    self.is_loaded = load_range_profiler(cuda_backend::cupti_library(), self.library, reason);
    if (!self.is_loaded) return end_for_good(self, reason), nullptr;
  }
  self.devices.push_back(std::make_unique<ExactDevice>(cuda_backend::cupti_library(), self.library, context, ordinal));
  const bool is_open = self.devices.back()->open(self.options.metrics);
  publish_devices(self);
  return is_open ? self.devices.back().get() : nullptr;
}

std::string_view text_of(StringId name) {
  return name != StringId::None ? FrameTable::instance().string(name) : std::string_view();
}

void note_not_counted(Exact& self, ChosenLaunches::Kernel& kernel, NotMeasured why) {
  const std::lock_guard lock(self.mutex);
  kernel.why = why;
}

// What a kernel that is never launched again has of its passes is kept until the end.
bool may_begin_passes(Exact& self, const ChosenLaunches::Kernel& kernel) {
  if (!self.device->has_several_passes(self.set) || kernel.passes[self.set].next > 0) return true;
  if (self.begun_rounds >= kMostBegunRounds) return false;
  ++self.begun_rounds;
  return true;
}

// Sets that were given up count as done. False: none is left.
bool choose_set(Exact& self, ChosenLaunches::Kernel& kernel) {
  const std::lock_guard lock(self.mutex);
  const ExactDevice& device = *self.device;
  kernel.measured.resize(device.sets());
  kernel.passes.resize(device.sets());
  for (size_t set = 0; set < device.sets(); ++set)
    if (device.is_given_up(set)) kernel.measured[set] = std::max(kernel.measured[set], self.options.launches);
  self.set = kernel.next_set(device.set());
  return kernel.measured[self.set] < self.options.launches && may_begin_passes(self, kernel);
}

// The turn is this thread's. True: the launch is counted from now on.
bool begin(Exact& self, ChosenLaunches::Kernel& kernel, const ThreadContext& thread, cuda::Context context) {
  if (StreamCaptures::instance().any()) return note_not_counted(self, kernel, NotMeasured::Captured), false;
  self.began_ns = now_ns();
  self.gate.emplace();
  const bool is_alone = static_cast<bool>(*self.gate);
  const bool is_captured = is_alone && StreamCaptures::instance().any();  // no capture begins from here on
  if (!is_alone || is_captured) {
    note_not_counted(self, kernel, is_captured ? NotMeasured::Captured : NotMeasured::LaunchedBeside);
    return false;
  }
  self.device = device_of(self, context, thread.device_contexts[0].device);
  if (self.device == nullptr) return false;
  if (!choose_set(self, kernel)) return false;
  if (!self.device->begin(self.set, kernel.passes[self.set])) {
    if (self.device->has_several_passes(self.set)) --self.begun_rounds;
    return publish_devices(self), false;
  }
  self.kernel = &kernel;
  self.node.reset();
  return true;
}

// Lock held. `has_answered`: CUPTI has not failed. A launch that is not counted ends its round of passes, too.
void note_count(Exact& self, bool has_answered, bool is_counted, bool is_complete) {
  self.kernel->why = has_answered && !is_counted ? NotMeasured::LaunchedBeside : NotMeasured::No;
  self.kernel->has_begun |= is_counted;
  self.kernel->measured[self.set] += is_complete ? 1 : 0;
  self.launches += is_counted ? 1 : 0;
  if (self.device->has_several_passes(self.set) && self.kernel->passes[self.set].next == 0) --self.begun_rounds;
}

void record(ThreadContext& thread, ContextNodes node, const std::vector<ExactMetrics::Value>& values) {
  static const MetricId counted = MetricNames::instance().intern("exact_count", "1", MetricKind::Inclusive, false);
  for (const ExactMetrics::Value& each : values)
    thread.record_value_now(node, each.metric, std::bit_cast<uint64_t>(each.value));
  if (counted != MetricId::None) thread.record_value_now(node, counted, 1);
}

void record_instructions(Exact& self, ThreadContext& thread, const std::vector<PcSample>& counts) {
  static const MetricId launches =
      MetricNames::instance().intern("instruction_counted_launches", "1", MetricKind::Inclusive, false);
  if (launches != MetricId::None) thread.record_value_now(*self.node, launches, 1);
  const SessionMask mask = recording_state.active.load();
  const std::lock_guard lock(self.mutex);
  for (const PcSample& count : counts) self.instructions.push_back({*self.node, mask, count});
}

}  // namespace

void want(const ExactCounterOptions& options) {
  Exact& self = exact();
  if (options.pattern.empty() || is_wanted()) return;
  std::string problem;
  {
    const std::lock_guard lock(self.mutex);
    self.options = options;
    self.reason.clear();
    self.launches = self.spent_ns = 0;
    self.devices_json = "{}";
    problem = self.chosen.choose(options.pattern, options.launches);
  }
  if (!problem.empty()) return end_for_good(self, problem);
  launch_watch.counts_launches.store(true);
}

bool is_without_record(const ThreadContext& thread) noexcept {
  const Exact& self = exact();
  return is_counting(thread) && self.device->is_of_instructions(self.set);
}

void before_launch(ThreadContext& thread, uint32_t cbid, const cupti::CallbackData& data, StringId name) noexcept {
  Exact& self = exact();
  const KernelLaunch launch = kernel_launch(cbid, data);
  if (launch.function == nullptr || data.context == nullptr || thread.gated_calls > 0 || is_counting(thread)) return;
  ChosenLaunches::Kernel* kernel = nullptr;
  {
    const std::lock_guard lock(self.mutex);
    kernel = self.chosen.find(launch, text_of(name));
  }
  if (kernel == nullptr) return;
  if (!take_turn(thread)) return note_not_counted(self, *kernel, NotMeasured::LaunchedBeside);
  const OwnCalls own;
  if (is_wanted() && begin(self, *kernel, thread, data.context)) return;
  self.gate.reset();
  give_turn_back();
}

void note_node(ContextNodes kernel) noexcept { exact().node = kernel; }

void after_launch(ThreadContext& thread, bool has_failed) noexcept {
  Exact& self = exact();
  std::optional<ExactDevice::Count> count;
  {
    const OwnCalls own;
    count = self.device->end();
  }
  self.gate.reset();
  const bool is_over = count && count->counted == RangeProfiler::Counted::All && !has_failed;
  const bool is_counted = count && count->counted != RangeProfiler::Counted::Nothing && !has_failed &&
                          !(self.device->is_of_instructions(self.set) && count->instructions.empty());
  {
    const std::lock_guard lock(self.mutex);
    self.spent_ns += static_cast<uint64_t>(now_ns() - self.began_ns);
    note_count(self, count.has_value(), is_counted, is_over);
  }
  if (!count) publish_devices(self);
  if (is_counted && self.node.has_value()) record(thread, *self.node, count->values);
  if (is_counted && self.node.has_value() && !count->instructions.empty())
    record_instructions(self, thread, count->instructions);
  give_turn_back();
}

std::vector<InstructionCount> take_instructions() {
  Exact& self = exact();
  const std::lock_guard lock(self.mutex);
  return std::exchange(self.instructions, {});
}

// The driver is about to destroy it.
void note_context_end(cuda::Context context) noexcept {
  Exact& self = exact();
  if (!is_wanted() || !await_turn(ThreadContext::current(), kContextNaps)) return;
  const OwnCalls own;
  publish_devices(self);
  std::erase_if(self.devices, [&](const auto& each) { return each->context() == context; });
  give_turn_back();
}

// Profilers are disabled while nobody launches, as the samplers of instructions must be; else they are left behind.
void finish() {
  Exact& self = exact();
  if (!is_wanted()) return;
  if (await_turn(ThreadContext::current(), kFinishNaps)) {
    const OwnCalls own;
    publish_devices(self);
    const LaunchGate::Closed gate;
    if (!gate)
      for (auto& device : self.devices) (void)device.release();
    self.devices.clear();
    launch_watch.counts_launches.store(false);
    give_turn_back();
  } else {
    launch_watch.counts_launches.store(false);
    std::fprintf(stderr, "bragg: CUPTI does not return from counting a launch exactly: it is left behind\n");
  }
}

std::string description_json() {
  Exact& self = exact();
  const std::lock_guard lock(self.mutex);
  JsonObject json;
  json.put("kernels", self.options.pattern);
  if (!self.reason.empty()) json.put("reason", self.reason);
  return json.put("counted_launches", self.launches)
      .put("counted_kernels", self.chosen.measured_kernels())
      .put("incomplete_kernels", self.chosen.incomplete_kernels())
      .put("spent_ns", self.spent_ns)
      .raw("not_counted", self.chosen.not_measured_json())
      .raw("devices", self.devices_json)
      .text();
}

// A child begins anew: threads of its parent may have been changing what is here, and CUDA cannot be used in it.
void after_fork_in_child() { new (&exact()) Exact; }

}  // namespace bragg::exact_counters
