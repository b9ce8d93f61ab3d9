#include "backends/cuda/launch/launch_callbacks.h"

#include <algorithm>

#include "backends/cuda/cuda_attachment.h"
#include "backends/cuda/cuda_state.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/driver/cuda_functions.h"
#include "backends/cuda/exact/exact_counters.h"
#include "backends/cuda/launch/launch_calls.h"
#include "backends/cuda/samples/function_cubins.h"
#include "backends/cuda/samples/launch_gate.h"
#include "backends/cuda/samples/pc_sampling.h"
#include "backends/cuda/values/device_values.h"
#include "backends/graph_registry.h"
#include "context/clock.h"
#include "context/kernel_names.h"

namespace bragg::cuda_backend {
namespace {

// Of this thread's context.
uint32_t current_device() noexcept {
  std::string reason;
  const CudaFunctions* functions = CudaFunctions::find(reason);
  cuda::Device device{};
  if (functions == nullptr) return CudaDriver::mapped().current_device();
  return functions->context_device(&device) == cuda::Result::Success ? static_cast<uint32_t>(device) : kNone;
}

void note_context(ThreadContext& thread, cuda::Context context) noexcept {
  const uint32_t changes = launch_watch.context_changes.load(std::memory_order_relaxed);
  auto& known = thread.device_contexts;
  if (thread.context_changes != changes) known = {};
  thread.context_changes = changes;
  const auto found = std::ranges::find(known, context, &ThreadContext::DeviceContext::handle);
  if (found != known.end()) return void(std::rotate(known.begin(), found, found + 1));
  std::ranges::rotate(known, known.end() - 1);
  known[0] = {context, current_device()};
  record_peer_copies_if_any(backend());
  const std::lock_guard lock(backend().contexts_mutex);
  auto& contexts = backend().contexts;
  if (std::ranges::find(contexts, context, &KnownContext::handle) == contexts.end())
    contexts.push_back({context, known[0].device});
}

const void* launched_function(const cupti::CallbackData& data, const LaunchCall& call) noexcept {
  if (!call.launches_kernel) return nullptr;
  return *reinterpret_cast<const void* const*>(static_cast<const char*>(data.function_params) + call.function_offset);
}

// Whether the framework that makes this launch has announced it.
bool is_expected(const ThreadContext& thread, const void* function) noexcept {
  return function != nullptr && thread.expected_launch.function == function;
}

StringId kernel_name(const ThreadContext& thread, const void* function) noexcept {
  const StringId expected = is_expected(thread, function) ? thread.expected_launch.name : StringId::None;
  return expected != StringId::None ? expected : KernelNames::instance().find(function);
}

ContextNodes kernel_nodes(const ThreadContext& thread, ContextNodes nodes, StringId name, const char* symbol) noexcept {
  auto& frames = FrameTable::instance();
  auto& tree = CallingContextTree::instance();
  const std::string_view text = name != StringId::None ? frames.string(name) : symbol;
  const FrameId kernel = frames.intern(FrameKind::Kernel, text, thread.device_contexts[0].device);
  return {tree.child(nodes.shadow, kernel), tree.child(nodes.python, kernel)};
}

// The framework's values for the kernel's node. The driver tells later whether this launch runs now, becomes part of a
// graph, or fails.
void record_expected_values(ThreadContext& thread, ContextNodes nodes, StringId name, const char* symbol) noexcept {
  const ContextNodes kernel = kernel_nodes(thread, nodes, name, symbol);
  for (const ExpectedLaunch::Value& value : thread.expected_launch.values)
    thread.open_call.values.push_back({kernel, value.metric, value.bits});
}

GraphRegistry::Launchable launched_graph(const cupti::CallbackData& data, const LaunchCall& call) noexcept {
  if (!call.launches_graph) return {};
  const auto& params = *static_cast<const cupti::GraphLaunchParams*>(data.function_params);
  return GraphRegistry::instance().find_exec(params.exec);
}

// CUPTI 13.0 crashes when a graph is launched that was instantiated before whole graphs were recorded. Switching back
// in the callback that precedes the launch is in time (H200, also with other threads launching).
void keep_cupti_from_crashing(const cupti::CallbackData& data, const LaunchCall& call) noexcept {
  if (call.launches_graph && launch_watch.traces_graphs.load() && !launched_graph(data, call).is_traceable)
    record_nodes_from_now_on(backend(), "one was instantiated before recording");
}

LaunchedWork work_of(const cupti::CallbackData& data, const LaunchCall& call, const void* function,
                     StringId name) noexcept {
  if (function == nullptr) return {name, launched_graph(data, call).version, CodeNumber::None};
  const bool is_sampled = pc_sampling::is_wanted();
  return {name, GraphVersionId::None, is_sampled ? FunctionCubins::instance().find(function) : CodeNumber::None};
}

CorrelationId correlation_of(const cupti::CallbackData& data) noexcept { return CorrelationId{data.correlation}; }

Event launch_event(EventKind kind, SessionMask mask, CorrelationId correlation, ContextNodes nodes) noexcept {
  Event event = Event::of(kind, mask, nodes);
  event.correlation = correlation;
  return event;
}

void note_launch(ThreadContext& thread, const cupti::CallbackData& data, const LaunchCall& call,
                 SessionMask mask) noexcept {
  note_context(thread, data.context);
  const ContextNodes nodes = thread.cost.measure_apart([&] { return thread.here_in_native_code(); });
  const void* function = launched_function(data, call);
  const StringId name = kernel_name(thread, function);
  OpenCall& open = thread.open_call;
  open.correlation = correlation_of(data);
  open.mask = static_cast<uint16_t>(mask);
  open.kernel = name;
  open.values.clear();
  if (is_expected(thread, function)) {
    if (!thread.expected_launch.values.empty()) record_expected_values(thread, nodes, name, data.symbol_name);
    thread.expected_launch.function = nullptr;
  }
  if (exact_counters::is_counting(thread))
    exact_counters::note_node(kernel_nodes(thread, nodes, name, data.symbol_name));
  if (exact_counters::is_without_record(thread)) return void(open.correlation = CorrelationId::None);
  const LaunchedWork work = work_of(data, call, function, name);
  thread.record_made([&] {
    Event event = launch_event(EventKind::Launch, mask, correlation_of(data), nodes);
    event.has_more_records = !call.launches_kernel;
    event.work = work;
    return event;
  });
  if (thread.is_in_api_call()) {  // its slice shows the launch
    thread.api_call.launch = correlation_of(data);
  } else if ((mask & recording_state.returns.load(std::memory_order_relaxed)) != 0) {  // tells how late the host was
    open.returning = correlation_of(data);
    open.call = number_of(call);
    open.nodes = nodes;
    open.start_ns = now_ns();
  }
}

void note_own_launch(ThreadContext& thread, const cupti::CallbackData& data, SessionMask mask) noexcept {
  note_context(thread, data.context);
  thread.open_call.correlation = correlation_of(data);
  thread.open_call.mask = static_cast<uint16_t>(mask);
  thread.open_call.kernel = StringId::None;
  Event event = launch_event(EventKind::OwnLaunch, mask, correlation_of(data), {});
  event.work = {StringId::None, GraphVersionId::None, CodeNumber::None};
  thread.record(event);
}

// Its records come all the same while a recording that has ended awaits those of other launches, and must not be taken
// for records whose launch was lost. So do the values that a graph reads.
void note_unrecorded_launch(ThreadContext& thread, const cupti::CallbackData& data, const LaunchCall& call) noexcept {
  const bool has_records = backend().collecting.load(std::memory_order_relaxed);
  const bool has_values = call.launches_graph && device_values::any_captured();
  const GraphVersionId graph = has_values ? launched_graph(data, call).version : GraphVersionId::None;
  if (graph == GraphVersionId::None && !has_records) return;
  Event event = launch_event(EventKind::Launch, 0, has_records ? correlation_of(data) : CorrelationId::None, {});
  event.has_more_records = !call.launches_kernel;
  event.work = {StringId::None, graph, CodeNumber::None};
  thread.record(event);
}

bool has_failed(const cupti::CallbackData& data) noexcept {
  return data.function_return_value != nullptr &&
         *static_cast<const cuda::Result*>(data.function_return_value) != cuda::Result::Success;
}

void note_failure(ThreadContext& thread) noexcept {
  OpenCall& call = thread.open_call;
  call.values.clear();
  Event event = launch_event(EventKind::Failed, call.mask, call.correlation, {});
  event.is_own = thread.launches_own_kernel;
  thread.record(event);
}

void end_launch(ThreadContext& thread, const cupti::CallbackData& data) noexcept {
  OpenCall& call = thread.open_call;
  if (call.correlation == correlation_of(data) && has_failed(data)) note_failure(thread);
  call.correlation = CorrelationId::None;
  for (const CapturedValue& value : call.values)  // it was not captured
    thread.record_value_now(value.nodes, value.metric, value.bits);
  call.values.clear();
  if (call.returning != correlation_of(data)) return;
  thread.record_made([&] {
    Event event = launch_event(EventKind::LaunchEnd, call.mask, call.returning, call.nodes);
    event.call = call.call;
    event.interval = {call.start_ns, now_ns()};
    return event;
  });
  call.returning = CorrelationId::None;
}

void before_sampled_launch(ThreadContext& thread, const LaunchCall& call, const cupti::CallbackData& data) noexcept {
  if (!pc_sampling::is_wanted() || !call.launches() || thread.launches_own_kernel) return;
  if (data.context == nullptr) return;  // it will be refused
  note_context(thread, data.context);
  pc_sampling::before_launch(thread);
}

void before_counted_launch(ThreadContext& thread, uint32_t cbid, const LaunchCall& call,
                           const cupti::CallbackData& data) noexcept {
  if (!exact_counters::is_wanted() || thread.launches_own_kernel || data.context == nullptr || !recording()) return;
  note_context(thread, data.context);
  exact_counters::before_launch(thread, cbid, data, kernel_name(thread, launched_function(data, call)));
}

}  // namespace

bool uses_gate() noexcept { return pc_sampling::is_wanted() || exact_counters::is_wanted(); }

void gate(ThreadContext& thread, cupti::CallbackSite site) noexcept {
  if (site == cupti::CallbackSite::Exit) {
    if (thread.gated_calls > 0) LaunchGate::instance().leave(thread);
  } else if (uses_gate() && !exact_counters::is_counting(thread)) {
    LaunchGate::instance().enter(thread);
  }
}

void on_launch_call(uint32_t cbid, const cupti::CallbackData& data) {
  ThreadContext& thread = ThreadContext::current();
  const LaunchCall& call = launch_call(cbid);
  if (data.site != cupti::CallbackSite::Enter) {
    if (exact_counters::is_counting(thread)) exact_counters::after_launch(thread, has_failed(data));
    gate(thread, data.site);
    if (thread.is_sampled_alone) pc_sampling::after_launch(thread);
    return thread.cost.measure(CostPart::Launches, [&] { end_launch(thread, data); });
  }
  before_sampled_launch(thread, call, data);
  before_counted_launch(thread, cbid, call, data);
  gate(thread, data.site);
  keep_cupti_from_crashing(data, call);
  const SessionMask mask = recording_state.active.load(std::memory_order_relaxed);
  if (mask == 0) return note_unrecorded_launch(thread, data, call);
  if (thread.launches_own_kernel) return note_own_launch(thread, data, mask);
  thread.cost.measure(CostPart::Launches, [&] { note_launch(thread, data, call, mask); });
}

}  // namespace bragg::cuda_backend
