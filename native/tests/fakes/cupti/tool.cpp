#include "cupti/tool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cupti/pc_sampling.h"
#include "cupti/pm_sampling.h"
#include "cupti/range_profiler.h"
#include "cupti/sass_metrics.h"

namespace bragg::fake {
namespace {

const Driver* find_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* get = library != nullptr ? reinterpret_cast<GetDriver*>(dlsym(library, "bragg_fake_driver")) : nullptr;
  return get != nullptr ? get() : nullptr;
}

uint32_t thread_id() {
  if (state().thread_id_type.load(std::memory_order_relaxed) == cupti::ThreadIdType::System)
    return static_cast<uint32_t>(gettid());
  return static_cast<uint32_t>(pthread_self());
}

void call_back(ApiCall& call, cupti::CallbackSite site, cuda::Result* result) {
  state().subscribers.for_each_wanting(call.domain, call.cbid, [&](size_t slot, cupti::Subscriber subscriber) {
    const cupti::CallbackData data{site,
                                   call.name,
                                   call.params,
                                   result,
                                   call.symbol,
                                   call.context,
                                   call.context_uid,
                                   &call.correlation_data[slot],
                                   call.correlation};
    subscriber->callback(subscriber->user_data, call.domain, call.cbid, &data);
  });
}

// Seen on an H200: only calls that are called back or recorded use up a correlation id.
bool is_followed(cupti::Domain domain, uint32_t cbid) {
  if (state().subscribers.wants(domain, cbid)) return true;
  if (domain == cupti::Domain::RuntimeApi) return false;
  return state().is_enabled(cupti::Kind::Driver) ||
         (state().has_enabled() && (cupti::is_launch(cbid) || cupti::is_memory(cbid)));
}

// Of the runtime call that this thread is in, whose calls of the driver share it; 0: of none that is followed.
thread_local uint32_t runtime_correlation = 0;

bool is_launch(const ApiCall& call) { return call.domain == cupti::Domain::DriverApi && cupti::is_launch(call.cbid); }

bool holds_locks(const ApiCall& call) {
  return call.domain == cupti::Domain::DriverApi && cupti::is_for_sampling(call.cbid);
}

thread_local bool thread_has_launched = false;

void tell(ApiCall& call) {
  if (!is_followed(call.domain, call.cbid)) return;
  call.correlation = runtime_correlation != 0 ? runtime_correlation
                                              : state().last_correlation.fetch_add(1, std::memory_order_relaxed) + 1;
  if (call.domain == cupti::Domain::RuntimeApi) runtime_correlation = call.correlation;
  call.start_ns = now_ns();
  const uint32_t refusals = pc_sampling().refusals();
  call_back(call, cupti::CallbackSite::Enter, nullptr);
  if (!is_launch(call)) return;
  if (pc_sampling().refusals() != refusals) {
    std::fprintf(stderr, "fake CUPTI: a launch was held while a refused sampler was taken down, which crashes it\n");
    std::abort();
  }
  pc_sampling().note_launching(true);
}

void enter(ApiCall& call) {
  thread_has_launched = thread_has_launched || is_launch(call);
  tell(call);
  if (holds_locks(call)) pc_sampling().note_holding(true);
}

// For each that has the kind enabled.
void put(cupti::Kind kind, const RecordBytes& record) {
  state().for_each_sinks([&](Sinks& sinks) {
    if (sinks.is_enabled(kind)) sinks.of_this_thread().put(record, now_ns());
  });
}

void exit(ApiCall& call) {
  const uint64_t end_ns = now_ns();
  if (holds_locks(call)) pc_sampling().note_holding(false);
  if (call.correlation != 0 && is_launch(call)) pc_sampling().note_launching(false);
  if (call.domain == cupti::Domain::RuntimeApi) runtime_correlation = 0;
  if (call.domain == cupti::Domain::DriverApi && state().is_enabled(cupti::Kind::Driver))
    put(cupti::Kind::Driver, api_record(call, end_ns, thread_id()));
  range_profiler().called(call);
  sass_metrics().called(call);
  call_back(call, cupti::CallbackSite::Exit, &call.result);
  state().delivery.time_passed(end_ns);
}

void kernel_executed(const Execution& execution) {
  LatencyTimes latency;
  if (state().latency_timestamps.load(std::memory_order_relaxed)) latency = {now_ns(), now_ns()};
  for (const cupti::Kind kind : {cupti::Kind::ConcurrentKernel, cupti::Kind::Kernel})
    put(kind, kernel_record(execution, kind, latency));
}

// Then their nodes have no records.
bool traces_graphs() {
  return state().sinks.is_enabled(cupti::Kind::GraphTrace) || state().traces_graphs_for_all.load();
}

// Seen on an H200: a kernel that is counted has a second record, which lasts 80 us whatever the kernel does.
void counted(const Execution& execution) {
  constexpr uint64_t kCountingNs = 80'000;
  Execution second{execution};
  second.span = {execution.span.end_ns, execution.span.end_ns + kCountingNs};
  kernel_executed(second);
}

void executed(const Execution& execution) {
  bool is_counted = false;
  if (execution.operation.type == cuda::GraphNodeType::Kernel) {
    pc_sampling().executed(execution);
    pm_sampling().executed(execution);
    sass_metrics().executed(execution);
    is_counted = range_profiler().executed(execution);
  }
  if (execution.origin.graph != 0 && traces_graphs()) return;
  if (is_counted) {
    kernel_executed(execution);
    counted(execution);
  } else if (execution.operation.type == cuda::GraphNodeType::Kernel)
    kernel_executed(execution);
  else if (execution.operation.type == cuda::GraphNodeType::Memcpy)
    put(cupti::Kind::Memcpy, memcpy_record(execution));
  else if (execution.operation.type == cuda::GraphNodeType::Memset)
    put(cupti::Kind::Memset, memset_record(execution));
}

void graph_instantiated(uint32_t graph) {
  if (!state().is_enabled(cupti::Kind::GraphTrace)) return;
  const std::lock_guard lock(state().traceable_graphs_mutex);
  state().traceable_graphs.insert(graph);
}

// Seen on an H200 with CUPTI 13.0: an executable graph that was made before GraphTrace was enabled crashes.
void crash_unless_traceable(uint32_t graph) {
  const std::lock_guard lock(state().traceable_graphs_mutex);
  if (state().traceable_graphs.contains(graph)) return;
  std::fputs("fake CUPTI: this graph was instantiated before graph trace was enabled, which crashes CUPTI\n", stderr);
  std::abort();
}

void graph_executed(const GraphRun& run) {
  if (!state().is_enabled(cupti::Kind::GraphTrace)) return;
  crash_unless_traceable(run.graph);
  put(cupti::Kind::GraphTrace, graph_trace_record(run));
}

void resource(uint32_t cbid, const cupti::ResourceData& data) {
  if (cbid == cupti::resource::kContextDestroyStarting) pc_sampling().context_ends(data.context);
  state().subscribers.for_each_wanting(cupti::Domain::Resource, cbid, [&](size_t, cupti::Subscriber subscriber) {
    subscriber->callback(subscriber->user_data, cupti::Domain::Resource, cbid, &data);
  });
}

constexpr Tool kTool{
    .enter = enter,
    .exit = exit,
    .executed = executed,
    .graph_instantiated = graph_instantiated,
    .graph_executed = graph_executed,
    .resource = resource,
    .set_knob = [](const char* name, int64_t value) { set_knob(name, value); },
    .set_failure = [](const char* call, uint32_t result) { set_failure(call, result); },
};

State* new_state() {
  auto* self = new State;
  self->sinks.per_thread.store(emulated_release().api_version >= kBuffersPerThread);
  const int64_t completion_order = knob(Knob::CompletionOrder);
  self->sinks.in_launch_order.store(completion_order < 0 ? emulated_release().api_version >= kRecordsInLaunchOrder
                                                         : completion_order == 0);
  return self;
}

}  // namespace

State& state() {
  static State& self = *new_state();  // the worker uses it until the process is gone
  return self;
}

bool has_launched() noexcept { return thread_has_launched; }

std::vector<Buffer> collect_all(bool everything) {
  std::vector<Buffer> buffers;
  state().for_each_sinks([&](Sinks& sinks) {
    const std::vector<Buffer> some = sinks.collect(everything);
    buffers.insert(buffers.end(), some.begin(), some.end());
  });
  return buffers;
}

const Driver* driver() {
  static const Driver* const found = find_driver();
  return found;
}

bool attach_to_driver() { return driver()->attach(&kTool); }

uint64_t now_ns() noexcept { return driver()->now_ns(); }

cupti::Result obstacle(const char* entry_point, Needs needs) {
  if (const uint32_t ordered = failure(entry_point)) return static_cast<cupti::Result>(ordered);
  const uint32_t version = emulated_release().api_version;
  if (driver() == nullptr) {
    if (version >= kUselessWithoutDriver) return cupti::Result::Unknown;
    if (needs == Needs::Nothing) return cupti::Result::Success;
    return version >= 130000 ? cupti::Result::Unknown : cupti::Result::NotInitialized;
  }
  if (needs == Needs::Driver && driver()->state() == DriverState::Forked) return cupti::Result::Unknown;
  return cupti::Result::Success;
}

}  // namespace bragg::fake
