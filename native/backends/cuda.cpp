#include "backends/cuda.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <ranges>

#include "backends/activity_walker.h"
#include "backends/api_calls.h"
#include "backends/buffer_dump.h"
#include "backends/buffer_pool.h"
#include "backends/device_values.h"
#include "backends/function_cubins.h"
#include "backends/graph_callbacks.h"
#include "backends/graph_registry.h"
#include "backends/launch_gate.h"
#include "backends/pc_sampling.h"
#include "context/clock.h"
#include "context/kernel_names.h"
#include "context/stream_captures.h"
#include "context/thread_context.h"
#include "data/json.h"
#include "driver/cuda_driver.h"
#include "driver/cuda_functions.h"
#include "driver/cupti_library.h"

namespace bragg::cuda_backend {
namespace {

constexpr cupti::Kind kKinds[] = {cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy, cupti::Kind::PeerMemcpy,
                                  cupti::Kind::Memset};

// Driver call id -> 1 + index of its name; 0: a call that puts no work on the device.
constexpr size_t kLaunchCalls = std::size(cupti::launch_calls);
constexpr size_t kCalls = kLaunchCalls + std::size(cupti::memory_calls);
static_assert(kCalls < 255);
constexpr const cupti::DriverCall& call_at(size_t index) {
  return index < kLaunchCalls ? cupti::launch_calls[index] : cupti::memory_calls[index - kLaunchCalls];
}
constexpr auto kCallOf = [] {
  std::array<uint8_t, 1024> calls{};
  for (size_t i = 0; i < kCalls; ++i) calls[call_at(i).cbid] = static_cast<uint8_t>(i + 1);
  return calls;
}();

// Calls with exactly one device record; the others (graphs, copies, several devices) may have more.
constexpr bool has_one_record(uint32_t cbid) { return cupti::function_offset(cbid) != cupti::kNoFunction; }

struct Backend {
  std::mutex mutex;  // guards attachment; never held while application threads can call back
  std::atomic<State> state{State::Off};
  std::string reason;
  std::string candidates;
  CuptiLibrary cupti;
  cupti::Subscriber subscriber = nullptr;
  bool collecting = false;
  ApiLevel api_level = ApiLevel::Off;  // wanted while collecting
  bool unusable = false;               // forked from a process that had CUDA up
  BufferPool buffers;
  std::atomic<uint64_t> dropped_records{0};
  std::atomic<uint64_t> unread_bytes{0};
  std::atomic<bool> wants_whole_graphs{false};
  std::atomic<bool> traces_graphs{false};    // whole graphs are recorded at this moment
  std::atomic<bool> needs_nodes{false};      // they cannot be any more, until detachment
  std::atomic<uint64_t> foreign_buffers{0};  // another tool's: it lost what was in them, not we
  std::string devices;                       // consumer side
  std::string dump_directory;                // BRAGG_DUMP_BUFFERS; empty: buffers are not kept
  std::mutex contexts_mutex;
  std::vector<KnownContext> contexts;
};

Backend& backend() {
  static Backend& instance = *new Backend;  // CUPTI may call until the process is gone
  return instance;
}

// Callbacks: application threads, inside driver calls. No allocation after the first call of a thread, no GIL.
// ------------

void note_context(ThreadContext& thread, cuda::Context context) noexcept {
  if (thread.last_device_context == context) return;
  thread.last_device_context = context;
  thread.last_device = CudaDriver::mapped().current_device();
  const std::lock_guard lock(backend().contexts_mutex);
  auto& contexts = backend().contexts;
  if (std::ranges::find(contexts, context, &KnownContext::handle) == contexts.end())
    contexts.push_back({context, thread.last_device});
}

void forget_context(cuda::Context context) noexcept {
  {
    const std::lock_guard lock(backend().contexts_mutex);
    std::erase_if(backend().contexts, [&](const KnownContext& known) { return known.handle == context; });
  }
  pc_sampling::note_context_end(context);
}

const void* launched_function(const cupti::CallbackData& data, uint32_t cbid) noexcept {
  const size_t offset = cupti::function_offset(cbid);
  if (offset == cupti::kNoFunction) return nullptr;
  return *reinterpret_cast<const void* const*>(static_cast<const char*>(data.function_params) + offset);
}

// Whether the framework that makes this launch has said something of it.
bool is_expected(const ThreadContext& thread, const void* function) noexcept {
  return function != nullptr && thread.expected_launch.function == function;
}

StringId kernel_name(const ThreadContext& thread, const void* function) noexcept {
  const StringId expected = is_expected(thread, function) ? thread.expected_launch.name : kNone;
  return expected != kNone ? expected : KernelNames::instance().find(function);
}

// The framework's values for the kernel's node. While streams are captured the driver tells later whether this launch
// runs now or becomes part of a graph.
void record_expected_values(ThreadContext& thread, ContextNodes nodes, StringId name, const char* symbol) noexcept {
  auto& frames = FrameTable::instance();
  auto& tree = CallingContextTree::instance();
  const std::string_view text = name != kNone ? frames.string(name) : symbol;
  const FrameId kernel = frames.intern(FrameKind::Kernel, text, thread.last_device);
  const ContextNodes kernel_nodes{tree.child(nodes.shadow, kernel), tree.child(nodes.python, kernel)};
  for (const ExpectedLaunch::Value& value : thread.expected_launch.values) {
    if (StreamCaptures::instance().any()) {
      thread.open_call.values.push_back({kernel_nodes, value.metric, value.bits});
    } else {
      thread.record_value_now(kernel_nodes, value.metric, value.bits);
    }
  }
}

GraphRegistry::Launchable launched_graph(const cupti::CallbackData& data, uint32_t cbid) noexcept {
  if (!cupti::is_graph_launch(cbid)) return {};
  const auto& params = *static_cast<const cupti::GraphLaunchParams*>(data.function_params);
  return GraphRegistry::instance().find_exec(params.exec);
}

void say_that_nodes_are_recorded(const char* reason) noexcept {
  std::fprintf(stderr, "bragg: CUDA graphs are recorded by their nodes, not as a whole: %s\n", reason);
}

void record_nodes_from_now_on(Backend& self, const char* reason) noexcept {
  self.needs_nodes.store(true);
  if (!self.traces_graphs.exchange(false)) return;
  (void)self.cupti.disable(cupti::Kind::GraphTrace);
  say_that_nodes_are_recorded(reason);
}

// CUPTI 13.0 crashes when a graph is launched that was instantiated before whole graphs were recorded. Switching back
// in the callback that precedes the launch is in time (H200, also with other threads launching).
void keep_cupti_from_crashing(const cupti::CallbackData& data, uint32_t cbid) noexcept {
  Backend& self = backend();
  if (self.traces_graphs.load() && cupti::is_graph_launch(cbid) && !launched_graph(data, cbid).is_traceable)
    record_nodes_from_now_on(self, "one was instantiated before recording");
}

// Version of the graph, or number of the kernel's cubin where instructions are sampled.
int64_t launched_code(const cupti::CallbackData& data, uint32_t cbid, const void* function) noexcept {
  if (function == nullptr) return launched_graph(data, cbid).version;
  return pc_sampling::is_wanted() ? FunctionCubins::instance().find(function) : 0;
}

void note_launch(ThreadContext& thread, const cupti::CallbackData& data, uint32_t cbid, SessionMask mask) noexcept {
  note_context(thread, data.context);
  const ContextNodes nodes = thread.here_in_native_code();
  const void* function = launched_function(data, cbid);
  const StringId name = kernel_name(thread, function);
  thread.open_call.correlation = data.correlation;
  thread.open_call.mask = static_cast<uint16_t>(mask);
  thread.open_call.kernel = name;
  thread.open_call.values.clear();
  if (is_expected(thread, function)) {
    if (!thread.expected_launch.values.empty()) record_expected_values(thread, nodes, name, data.symbol_name);
    thread.expected_launch.function = nullptr;
  }
  thread.record({EventKind::Launch, static_cast<uint8_t>(has_one_record(cbid) ? 0 : 1), static_cast<uint16_t>(mask),
                 data.correlation, nodes.shadow, nodes.python, int64_t{name} + 1, launched_code(data, cbid, function)});
  if (thread.api_call.is_open()) {  // its slice tells of the launch
    thread.api_call.launch = data.correlation;
  } else if ((mask & recording_state.trace.load(std::memory_order_relaxed)) != 0) {
    thread.open_launch = {EventKind::LaunchEnd,
                          static_cast<uint8_t>(kCallOf[cbid] - 1),
                          static_cast<uint16_t>(mask),
                          data.correlation,
                          nodes.shadow,
                          nodes.python,
                          now_ns(),
                          0};
  }
}

void note_own_launch(ThreadContext& thread, const cupti::CallbackData& data, SessionMask mask) noexcept {
  note_context(thread, data.context);
  thread.open_call.correlation = data.correlation;
  thread.open_call.mask = static_cast<uint16_t>(mask);
  thread.open_call.kernel = kNone;
  thread.record({EventKind::OwnLaunch, 0, static_cast<uint16_t>(mask), data.correlation, kRootNode, kRootNode, 0, 0});
}

// The values that a graph reads will come all the same, and are to be told from those of recorded launches.
void note_unrecorded_launch(ThreadContext& thread, const cupti::CallbackData& data, uint32_t cbid) noexcept {
  if (!cupti::is_graph_launch(cbid) || !device_values::any_captured()) return;
  if (const GraphVersionId graph = launched_graph(data, cbid).version; graph != 0)
    thread.record({EventKind::Launch, 0, 0, 0, kRootNode, kRootNode, 0, graph});
}

void end_launch(ThreadContext& thread, uint32_t correlation) noexcept {
  thread.open_call.correlation = 0;
  for (const CapturedValue& value : thread.open_call.values)  // it was not captured
    thread.record_value_now(value.nodes, value.metric, value.bits);
  thread.open_call.values.clear();
  if (thread.open_launch.correlation != correlation) return;
  thread.open_launch.end_ns = now_ns();
  thread.record(thread.open_launch);
  thread.open_launch.correlation = 0;
}

// A call that must not meet certain calls of CUPTI.
void gate(ThreadContext& thread, cupti::CallbackSite site) noexcept {
  if (site == cupti::CallbackSite::Exit) {
    LaunchGate::instance().leave(thread);
  } else if (pc_sampling::is_wanted()) {
    LaunchGate::instance().enter(thread);
  }
}

void before_sampled_launch(ThreadContext& thread, uint32_t cbid, const cupti::CallbackData& data) noexcept {
  if (!pc_sampling::is_wanted() || !cupti::is_launch(cbid) || thread.launches_own_kernel) return;
  if (data.context == nullptr) return;  // it will be refused
  note_context(thread, data.context);
  pc_sampling::before_launch(thread);
}

void on_launch_call(uint32_t cbid, const cupti::CallbackData& data) {
  ThreadContext& thread = ThreadContext::current();
  const bool is_entered = data.site == cupti::CallbackSite::Enter;
  if (is_entered) before_sampled_launch(thread, cbid, data);
  gate(thread, data.site);
  if (!is_entered) {
    pc_sampling::after_launch(thread);
    return end_launch(thread, data.correlation);
  }
  keep_cupti_from_crashing(data, cbid);
  const SessionMask mask = recording_state.active.load(std::memory_order_relaxed);
  if (mask == 0) return note_unrecorded_launch(thread, data, cbid);
  if (thread.launches_own_kernel) return note_own_launch(thread, data, mask);
  thread.measured([&] { note_launch(thread, data, cbid, mask); });
}

void on_driver_call(const CuptiLibrary& cupti, uint32_t cbid, const cupti::CallbackData& data) {
  if (cbid < kCallOf.size() && kCallOf[cbid] != 0) return on_launch_call(cbid, data);
  if (!cupti::is_module_call(cbid)) return on_graph_call(cupti, cbid, data);
  gate(ThreadContext::current(), data.site);
  if (pc_sampling::is_wanted()) FunctionCubins::instance().note_call(cbid, data);
}

void on_api_call(const CuptiLibrary& cupti, cupti::Domain domain, uint32_t cbid, const cupti::CallbackData& data) {
  if (data.site == cupti::CallbackSite::Enter) api_calls::enter(domain, cbid, data);
  if (domain == cupti::Domain::DriverApi) on_driver_call(cupti, cbid, data);
  if (data.site == cupti::CallbackSite::Exit) api_calls::leave(domain, cbid, data);
}

void on_callback(void*, cupti::Domain domain, uint32_t cbid, const void* argument) {
  const CuptiLibrary& cupti = backend().cupti;
  if (domain == cupti::Domain::DriverApi || domain == cupti::Domain::RuntimeApi) {
    const auto& data = *static_cast<const cupti::CallbackData*>(argument);
    if (api_calls::are_followed()) return on_api_call(cupti, domain, cbid, data);
    if (domain == cupti::Domain::DriverApi) return on_driver_call(cupti, cbid, data);
  }
  if (domain == cupti::Domain::Resource) {
    const auto& data = *static_cast<const cupti::ResourceData*>(argument);
    if (cbid == cupti::resource::kContextDestroyStarting) return forget_context(data.context);
    if (cbid == cupti::resource::kModuleLoaded)
      return pc_sampling::note_module(*static_cast<const cupti::ModuleData*>(data.descriptor));
    on_graph_resource(cupti, cbid, *static_cast<const cupti::GraphData*>(data.descriptor),
                      backend().traces_graphs.load());
  }
}

void on_buffer_requested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
  *buffer = backend().buffers.request();
  *size_bytes = BufferPool::kBufferBytes;
  *max_records = 0;  // as many as fit
}

void on_buffer_completed(cuda::Context context, uint32_t stream, uint8_t* buffer, size_t, size_t valid_bytes) {
  size_t dropped = 0;
  if (backend().cupti.dropped_records(context, stream, &dropped) == cupti::Result::Success)
    backend().dropped_records.fetch_add(dropped, std::memory_order_relaxed);
  if (!backend().buffers.complete(buffer, valid_bytes))
    backend().foreign_buffers.fetch_add(1, std::memory_order_relaxed);
}

// Attachment
// -------------------------------------------------------------------------------------------------------------

// Who holds the slot, as far as CUPTI tells (13.0 and later).
std::string slot_holder(const CuptiLibrary& cupti) {
  if (cupti.subscribe_v2 == nullptr) return "";
  char name[cupti::kOldSubscriberNameBytes] = "";
  cupti::SubscriberParams params{};
  params.struct_size_bytes = cupti::kSubscriberParamsBytes13_0;
  params.name = "bragg";
  params.old_name = name;
  params.old_name_size_bytes = sizeof name;
  cupti::Subscriber probe = nullptr;
  if (cupti.subscribe_v2(&probe, on_callback, nullptr, &params) == cupti::Result::Success) cupti.unsubscribe(probe);
  return name;
}

std::string refusal(const CuptiLibrary& cupti, cupti::Result result) {
  if (result == cupti::Result::MultipleSubscribersNotSupported) {
    const std::string holder = slot_holder(cupti);
    return "another tool holds the only CUPTI subscription" + (holder.empty() ? "" : " (" + holder + ")") +
           "; stop it (Nsight, torch.profiler, another profiler) and run again";
  }
  if (result == cupti::Result::InsufficientPrivileges ||
      result == cupti::Result::VirtualizedDeviceInsufficientPrivileges)
    return "no permission to profile: " + cupti.text(result) + "; see bragg doctor";
  return "CUPTI refused: " + cupti.text(result) + "; see bragg doctor";
}

std::string devices_of(const CudaDriver& driver) {
  std::string json = "[";
  for (const CudaDevice& device : driver.devices()) {
    if (json.size() > 1) json += ',';
    json += JsonObject()
                .put("name", device.name)
                .put("arch",
                     std::to_string(device.compute_capability_major) + std::to_string(device.compute_capability_minor))
                .put("num_sms", device.multiprocessors)
                .put("clock_khz", device.clock_khz)
                .put("memory_clock_khz", device.memory_clock_khz)
                .put("bus_width_bits", device.memory_bus_bits)
                .text();
  }
  return json + "]";
}

bool fail(Backend& self, std::string reason) {
  self.reason = std::move(reason);
  self.state.store(State::Failed);
  std::fprintf(stderr, "bragg: no GPU times: %s\n", self.reason.c_str());
  return false;
}

// As long as a session exists, active or not: a graph that is captured now may run later.
void follow_graphs(Backend& self) {
  // What an older CUPTI does not know it refuses, and does not call back.
  for (const uint32_t cbid : kGraphResources)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cbid);
  for (const uint32_t cbid : cupti::graph_cbids)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
  for (const uint32_t cbid : std::views::filter(cupti::launch_cbids, cupti::is_graph_launch))
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
}

void follow_modules(Backend& self) {
  for (const uint32_t cbid : cupti::module_cbids)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
  (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cupti::resource::kModuleLoaded);
}

void apply_graph_level(Backend& self) {
  if (self.state.load() != State::Attached) return;
  if (!self.wants_whole_graphs.load()) return record_nodes_from_now_on(self, "another session wants the nodes");
  if (self.traces_graphs.load()) return;
  if (self.needs_nodes.load()) return say_that_nodes_are_recorded("they were before, in this process");
  if (const auto result = self.cupti.enable(cupti::Kind::GraphTrace); result != cupti::Result::Success)
    return say_that_nodes_are_recorded(self.cupti.text(result).c_str());
  self.traces_graphs.store(true);
}

bool attach(Backend& self) {
  if (self.unusable) return fail(self, "this process was forked from one that had initialised CUDA");
  std::string reason;
  if (!load_cupti(self.candidates, self.cupti, reason)) return fail(self, reason);
  const CuptiLibrary& cupti = self.cupti;
  if (const auto result = cupti.subscribe(&self.subscriber, on_callback, nullptr); result != cupti::Result::Success)
    return fail(self, refusal(cupti, result));
  if (cupti.set_attribute != nullptr) {
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    (void)cupti.set_attribute(cupti::Attribute::ZeroedOutBuffer, &size, &zeroed);  // an optimisation: may be refused
  }
  if (const auto result = cupti.register_callbacks(on_buffer_requested, on_buffer_completed);
      result != cupti::Result::Success) {
    cupti.unsubscribe(self.subscriber);
    return fail(self, refusal(cupti, result));
  }
  follow_graphs(self);
  (void)cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cupti::resource::kContextDestroyStarting);
  if (pc_sampling::is_wanted()) follow_modules(self);
  if (const char* directory = std::getenv("BRAGG_DUMP_BUFFERS")) self.dump_directory = directory;
  self.reason.clear();
  self.state.store(State::Attached);
  apply_graph_level(self);
  return true;
}

void apply_collecting(Backend& self, bool on) {
  if (self.state.load() != State::Attached) return;
  api_calls::follow(self.cupti, self.subscriber, on ? self.api_level : ApiLevel::Off);
  if (self.collecting == on) return;
  const bool keeps_gate = !on && pc_sampling::is_wanted();
  for (size_t i = 0; i < kCalls; ++i)  // an older CUPTI does not know the newest calls: nothing to enable then
    if (!cupti::is_graph_launch(call_at(i).cbid) && !keeps_gate)
      (void)self.cupti.enable_callback(on ? 1 : 0, self.subscriber, cupti::Domain::DriverApi, call_at(i).cbid);
  for (const cupti::Kind kind : kKinds) {
    const auto result = on ? self.cupti.enable(kind) : self.cupti.disable(kind);
    if (on && result != cupti::Result::Success && kind == cupti::Kind::ConcurrentKernel) {
      self.cupti.unsubscribe(self.subscriber);
      api_calls::forget();
      fail(self, refusal(self.cupti, result));
      return;
    }
  }
  self.collecting = on;
}

// Of the first GPU; "": it can be sampled.
std::string sampling_refusal() {
  std::string reason;
  const CudaFunctions* functions = CudaFunctions::find(reason);
  if (functions == nullptr) return reason;
  cuda::Context context = nullptr;
  if (const auto result = functions->retain_primary(&context, 0); result != cuda::Result::Success)
    return functions->failure("cuDevicePrimaryCtxRetain", result);
  reason = pc_sampling::probe(backend().cupti, context);
  (void)functions->release_primary(0);
  return reason;
}

bool attach_if_up(Backend& self) { return CudaDriver::mapped().is_initialized() && attach(self); }

const char* name_of(State state) {
  constexpr const char* kNames[] = {"off", "waiting", "attached", "failed"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace

void start(const std::string& candidates) {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  if (self.state.load() == State::Attached && pc_sampling::is_wanted()) follow_modules(self);
  if (self.state.load() == State::Attached || self.state.load() == State::Waiting) return;
  self.candidates = candidates;
  if (attach_if_up(self) || self.state.load() == State::Failed) return;
  self.state.store(State::Waiting);
  setenv("CUDA_INJECTION64_PATH", own_library_path().c_str(), 0);  // 0: another tool's value stays
}

void on_cuda_initialized() {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  if (self.state.load() == State::Waiting) attach(self);
}

void poll() {
  Backend& self = backend();
  if (self.state.load() != State::Waiting) return;
  const std::lock_guard lock(self.mutex);
  if (self.state.load() == State::Waiting && attach_if_up(self)) apply_collecting(self, recording());
}

void set_collecting(bool on, ApiLevel api_level) {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  self.api_level = api_level;
  apply_collecting(self, on);
}

void set_graph_level(bool wanted) {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  self.wants_whole_graphs.store(wanted);
  apply_graph_level(self);
}

void reclaim_records() {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  if (self.state.load() != State::Attached || !self.collecting) return;
  (void)self.cupti.register_callbacks(on_buffer_requested, on_buffer_completed);
  self.collecting = false;
  apply_collecting(self, true);
}

void flush(bool wait) {
  Backend& self = backend();
  if (self.state.load() != State::Attached) return;
  if (wait) {
    const OwnCalls own;
    const CudaDriver driver = CudaDriver::mapped();
    for (const KnownContext& context : contexts()) driver.synchronize(context.handle);
  }
  (void)self.cupti.flush_all(0);  // nothing to do about a refusal; the records come with the next flush
}

void detach() {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  apply_collecting(self, false);
  if (self.traces_graphs.exchange(false)) (void)self.cupti.disable(cupti::Kind::GraphTrace);
  if (self.state.load() == State::Attached) self.cupti.unsubscribe(self.subscriber);
  self.needs_nodes.store(false);
  GraphRegistry::instance().clear();
  StreamCaptures::instance().clear();
  self.subscriber = nullptr;
  self.state.store(State::Off);
  self.dropped_records.store(0);
  self.unread_bytes.store(0);
}

void after_fork_in_child() {
  Backend& self = backend();
  self.unusable = self.unusable || self.state.load() == State::Attached;
  new (&self.mutex) std::mutex;
  new (&self.contexts_mutex) std::mutex;
  self.contexts.clear();
  self.buffers.forget_all();
  self.collecting = false;
  api_calls::forget();
  self.traces_graphs.store(false);
  self.needs_nodes.store(false);
  self.state.store(State::Off);
}

void consume(const std::function<void()>& before, const std::function<void(const DeviceEvent&)>& take) {
  Backend& self = backend();
  const std::vector<ActivityBuffer> completed = self.buffers.take_completed();
  before();
  for (const ActivityBuffer& buffer : completed) {
    if (!self.dump_directory.empty())
      dump_buffer(self.dump_directory, {buffer.data, buffer.valid_bytes}, self.cupti.version);
    const WalkResult walked =
        walk_activity(buffer.data, buffer.valid_bytes, self.cupti.version, self.cupti.next_record, take);
    self.unread_bytes.fetch_add(walked.unread_bytes, std::memory_order_relaxed);
    self.buffers.recycle(buffer);
  }
}

State state() { return backend().state.load(); }

const CuptiLibrary& cupti_library() { return backend().cupti; }

std::vector<KnownContext> contexts() {
  const std::lock_guard lock(backend().contexts_mutex);
  return backend().contexts;
}

std::string description_json() {
  Backend& self = backend();
  const State state = self.state.load();
  JsonObject json;
  json.put("state", name_of(state));
  if (state == State::Failed) json.put("reason", self.reason);
  if (state != State::Attached) return json.text();
  return json.put("cupti_path", self.cupti.library.path())
      .put("cupti_version", self.cupti.version)
      .put("driver_version", CudaDriver::mapped().version())
      .put("dropped_records", self.dropped_records.load(std::memory_order_relaxed))
      .put("unread_bytes", self.unread_bytes.load(std::memory_order_relaxed))
      .put("foreign_buffers", self.foreign_buffers.load(std::memory_order_relaxed))
      .put("buffers", self.buffers.allocated())
      .put("graphs", self.traces_graphs.load() ? "graph" : "node")
      .text();
}

std::string devices_json() {
  Backend& self = backend();
  const CudaDriver driver = CudaDriver::mapped();
  // Inside cuInit, where attachment happens, the driver does not list devices yet.
  if (state() == State::Attached && self.devices.empty() && driver.is_initialized()) self.devices = devices_of(driver);
  return self.devices;
}

std::string probe_json(const std::string& candidates) {
  const LoadedLibrary library = LoadedLibrary::open("libcuda.so.1");
  auto* init = library ? library.function<cuda::CuInit>("cuInit") : nullptr;
  const auto failed = [](std::string_view reason) {
    const std::string cuda = JsonObject().put("state", "failed").put("reason", reason).text();
    return JsonObject().raw("cuda", cuda).raw("devices", "[]").text();
  };
  if (init == nullptr) return failed("libcuda.so.1 was not found: no NVIDIA driver here");
  if (const auto result = init(0); result != cuda::Result::Success)
    return failed("cuInit failed with CUDA error " + std::to_string(static_cast<uint32_t>(result)));
  start(candidates);
  const std::string description = description_json();
  const std::string devices = devices_of(CudaDriver::mapped());
  JsonObject json;
  json.raw("cuda", description).raw("devices", devices);
  if (state() == State::Attached && devices != "[]") json.put("sampling", sampling_refusal());
  detach();
  return json.text();
}

const char* api_name(uint8_t api) { return api < kCalls ? call_at(api).name.data() : "driver call"; }

}  // namespace bragg::cuda_backend
