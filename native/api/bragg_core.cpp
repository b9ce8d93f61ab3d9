#include "api/bragg_core.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/session_options.h"
#include "backends/sources.h"
#include "context/clock.h"
#include "context/kernel_names.h"
#include "context/loaded_code.h"
#include "context/loaded_library.h"
#include "context/native_frames.h"
#include "context/own_threads.h"
#include "context/python_frame_ids.h"
#include "context/thread_context.h"
#include "context/thread_registry.h"
#include "data/json.h"
#include "data/overhead.h"
#include "data/recorder.h"
#include "intake/autograd.h"
#include "intake/collective_progress.h"
#include "intake/nvtx.h"
#include "intake/record_function.h"
#include "intake/xla_names.h"

using bragg::Recorder;
using bragg::ThreadContext;

namespace {

static_assert(BRAGG_SAMPLE_SERIALIZED == static_cast<int>(bragg::SamplingMode::Serialized));
static_assert(BRAGG_GPU_API_ALL == static_cast<int>(bragg::ApiLevel::All));
static_assert(BRAGG_BOOL == static_cast<int>(bragg::Dtype::Bool));

void copy_text(const std::string& text, char* out, uint32_t size) {
  if (size == 0) return;
  size_t length = std::min<size_t>(text.size(), size - 1);
  while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;  // whole characters of UTF-8
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

void handle_forks_once() {
  static std::atomic<bool> are_handled{false};
  if (are_handled.exchange(true)) return;
  pthread_atfork([] { Recorder::instance().prepare_fork(); }, [] { Recorder::instance().after_fork_in_parent(); },
                 [] { Recorder::instance().after_fork_in_child(); });
}

const char* environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

int injected_session = -1;

void stop_injected_session() {
  if (injected_session >= 0) bragg_session_stop(std::exchange(injected_session, -1), "{}");
}

// A program without Python under `bragg run`: the driver's injection hook is where its recording starts.
void start_injected_session(const char* directory, bragg_session_options options) {
  const std::string path = std::string(directory) + "/" + std::to_string(getpid()) + ".part";
  char executable[4096] = "";
  if (readlink("/proc/self/exe", executable, sizeof executable - 1) < 0) executable[0] = '\0';
  const std::string meta = bragg::JsonObject()
                               .put("pid", getpid())
                               .put("ppid", getppid())
                               .put("executable", executable)
                               .put("start_ns", bragg::now_ns())
                               .put("context", "shadow")
                               .put("data", options.trace != 0 ? "trace" : "tree")
                               .put("backend", "cuda")
                               .text();
  options.part_path = path.c_str();
  options.meta_json = meta.c_str();
  options.cupti_candidates = environment("BRAGG_CUPTI_PATHS", "");
  options.backend = BRAGG_CUDA;
  options.python_context = options.native_context = 0;
  int os_error = 0;
  char reason[512] = "";
  injected_session = bragg_session_start(&options, &os_error, reason, sizeof reason);
  if (injected_session < 0) {
    std::fprintf(stderr, "bragg: %s: not recording: %s\n", path.c_str(),
                 os_error != 0 ? std::strerror(os_error) : reason);
    return;
  }
  Recorder::instance().on_source_initialized();  // the vendor's library is loaded before: it is taken down after us
  std::atexit(stop_injected_session);
}

}  // namespace

extern "C" {

int bragg_read_options(const char* json, bragg_session_options* options, char* problem, uint32_t problem_size) {
  const std::string wrong = bragg::read_session_options(json, *options);
  copy_text(wrong, problem, problem_size);
  return wrong.empty() ? 0 : -1;
}

int bragg_session_start(const bragg_session_options* options, int* os_error, char* reason, uint32_t reason_size) {
  handle_forks_once();
  const bragg::StartResult result = Recorder::instance().start({
      .part_path = options->part_path,
      .meta_json = options->meta_json,
      .uses_devices = options->backend != BRAGG_CPU,
      .of_sources = {options->cupti_candidates,
                     options->graph_level != 0,
                     {static_cast<bragg::SamplingMode>(options->sampling), options->sample_period,
                      options->sample_budget},
                     options->counters,
                     options->counter_interval_us,
                     {options->exact_kernels, options->exact_metrics, options->exact_launches},
                     options->telemetry_hz,
                     options->memory != 0,
                     options->nccl != 0},
      .python_context = options->python_context != 0,
      .native_context = options->native_context != 0,
      .trace = options->trace != 0,
      .folds_idle = options->no_idle == 0,
      .api_level = static_cast<bragg::ApiLevel>(options->gpu_api),
      .flush_interval_ms = options->flush_interval_ms,
      .tree_limit_bytes = options->tree_limit_mb != 0 ? uint64_t{options->tree_limit_mb} << 20
                                                      : bragg::CallingContextTree::kDefaultLimitBytes,
      .rotate_interval_ms = options->rotate_interval_ms,
  });
  *os_error = result.os_error;
  copy_text(result.reason, reason, reason_size);
  return result.session;
}

int bragg_session_advance(int session, const char* part_path, const char* meta_json, const char* end_meta_json,
                          int* os_error, char* reason, uint32_t reason_size) {
  const bragg::StartResult result = Recorder::instance().advance(session, part_path, meta_json, end_meta_json);
  *os_error = result.os_error;
  copy_text(result.reason, reason, reason_size);
  return result.session;
}

void bragg_session_activate(int session) { Recorder::instance().activate(session); }
void bragg_session_deactivate(int session, int flush) { Recorder::instance().deactivate(session, flush != 0); }
void bragg_session_flush(int session) { Recorder::instance().flush(session); }
void bragg_session_stop(int session, const char* meta_json) { Recorder::instance().stop(session, meta_json); }
int bragg_finish_on_signal(int number) { return Recorder::finish_on_signal(number); }

void bragg_collective_progress(void (*tell)(void*, const char*, const char*, uint64_t, int64_t), void* context) {
  struct Told {
    decltype(tell) call;
    void* context;
  } told{tell, context};
  bragg::collective_progress::tell_all(
      [](void* given, const bragg::collective_progress::Entered& entered) {
        const auto& to = *static_cast<Told*>(given);
        to.call(to.context, entered.group, entered.last, entered.count, entered.at_ns);
      },
      &told);
}

uint32_t bragg_session_statistics(int session, char* json, uint32_t size) {
  const std::string text = Recorder::instance().statistics(session);
  copy_text(text, json, size);
  return static_cast<uint32_t>(text.size()) + 1;
}

void bragg_flush_device_records(void) { Recorder::instance().bring_device_records(); }
void bragg_reclaim_device_records(void) { Recorder::instance().reclaim_device_records(); }
void bragg_set_interrupt_look(int (*look)(void)) { Recorder::instance().set_interrupt_look(look); }
void bragg_hurry(void) { Recorder::instance().hurry(); }
void bragg_note_own_thread(void) { bragg::note_own_thread(); }
int64_t bragg_waits_if_runnable(uint32_t thread) { return bragg::waits_if_runnable(static_cast<int>(thread)); }
int bragg_is_own_thread(uint32_t thread) { return bragg::is_own_thread(static_cast<int>(thread)) ? 1 : 0; }

namespace {

uint32_t probe(std::string_view source, const char* cupti_candidates, char* json, uint32_t size) {
  const std::string text = bragg::EventSources::instance().find(source)->probe(cupti_candidates);
  copy_text(text, json, size);
  return static_cast<uint32_t>(text.size()) + 1;
}

}  // namespace

uint32_t bragg_probe_cuda(const char* cupti_candidates, char* json, uint32_t size) {
  return probe("cuda", cupti_candidates, json, size);
}
uint32_t bragg_list_counters(const char* cupti_candidates, char* json, uint32_t size) {
  return probe("counters", cupti_candidates, json, size);
}

uint32_t bragg_scope_frame(const char* name, uint32_t size) {
  return bragg::number_of(bragg::intern_frame(bragg::FrameKind::Scope, {name, size}));
}
uint32_t bragg_operator_frame(const char* name, uint32_t size) {
  return bragg::number_of(bragg::intern_frame(bragg::FrameKind::Operator, {name, size}));
}
void bragg_describe_frame(uint32_t frame, const char* key, const char* value) {
  bragg::FrameTable::instance().describe(bragg::FrameId{frame}, key, value);
}

void bragg_scope_enter(uint32_t frame) { bragg::push_context(bragg::Source::Api, bragg::FrameId{frame}); }
void bragg_scope_exit(void) { bragg_scope_exit_of(nullptr); }
void bragg_scope_enter_of(uint32_t frame, const void* owner) {
  ThreadContext& thread = ThreadContext::current();
  thread.cost.measure(bragg::CostPart::Scopes,
                      [&] { thread.push_owned(bragg::Source::Api, bragg::FrameId{frame}, owner); });
}
void bragg_scope_exit_of(const void* owner) {
  ThreadContext* thread = ThreadContext::current_if_any();
  if (thread != nullptr) thread->cost.measure(bragg::CostPart::Scopes, [&] { thread->pop(bragg::Source::Api, owner); });
}
int bragg_task_scope_enter(uint32_t frame, const void* owner) {
  ThreadContext& thread = ThreadContext::current();
  bool has_changed = false;
  thread.cost.measure(bragg::CostPart::Scopes,
                      [&] { has_changed = thread.enter_in_task(bragg::FrameId{frame}, owner); });
  return has_changed ? 1 : 0;
}
int bragg_task_scope_exit(const void* owner) {
  ThreadContext* thread = ThreadContext::current_if_any();
  bool has_changed = false;
  if (thread != nullptr)
    thread->cost.measure(bragg::CostPart::Scopes, [&] { has_changed = thread->leave_in_task(owner); });
  return has_changed ? 1 : 0;
}
uint64_t bragg_inherited_scope(void) {
  const ThreadContext* thread = ThreadContext::current_if_any();
  const auto nodes = thread != nullptr ? thread->inherited_by_tasks() : std::nullopt;
  return nodes ? std::bit_cast<uint64_t>(*nodes) : 0;
}
uint32_t bragg_state_frame(const char* name, uint32_t size) {
  return bragg::number_of(bragg::intern_frame(bragg::FrameKind::State, {name, size}));
}
void bragg_state_enter(uint32_t frame) { bragg::push_context(bragg::Source::State, bragg::FrameId{frame}); }
void bragg_state_exit(void) { bragg::pop_context(bragg::Source::State); }
uint32_t bragg_host_kernel_frame(const char* name, uint32_t size) {
  return bragg::number_of(bragg::intern_frame(bragg::FrameKind::Kernel, {name, size}));
}
void bragg_host_kernel_enter(uint32_t frame) { bragg::push_context(bragg::Source::HostKernel, bragg::FrameId{frame}); }
void bragg_host_kernel_exit(void) { bragg::pop_context(bragg::Source::HostKernel); }
uint32_t bragg_context_depth(void) { return ThreadContext::current().depth(); }
void bragg_lend_context(void) { ThreadContext::current().lend(); }
void bragg_record_nvtx(int wanted) { bragg::nvtx::set_recording(wanted != 0); }
void bragg_read_xla(int wanted) { bragg::xla::is_wanted.store(wanted != 0); }
int bragg_follow_autograd(const char* library, int counts_references_itself, uint32_t number_offset,
                          uint32_t thread_offset, uint64_t thread_number) {
  const bragg::autograd::Engine engine{.counts_references_itself = counts_references_itself != 0,
                                       .number_offset = number_offset,
                                       .thread_offset = thread_offset};
  return bragg::autograd::follow(library, engine, thread_number);
}
void bragg_begin_operator_trial(const char* library, char* reason, uint32_t reason_size) {
  copy_text(bragg::record_function::begin_trial(library), reason, reason_size);
}
void bragg_end_operator_trial(const char* operator_name, char* reason, uint32_t reason_size) {
  copy_text(bragg::record_function::end_trial(operator_name), reason, reason_size);
}
void bragg_begin_input_trial(const uint64_t first[3], const uint64_t second[3]) {
  bragg::record_function::begin_input_trial({first[0], first[1], first[2]}, {second[0], second[1], second[2]});
}
int bragg_end_input_trial(const uint64_t output[3]) {
  return bragg::record_function::end_input_trial({output[0], output[1], output[2]}) ? 1 : 0;
}
void bragg_set_operator_cost(uint32_t ns) { bragg::set_cost_beside(bragg::CostPart::Operators, ns / 2); }
int bragg_observe_operators(int with_shapes) { return bragg::record_function::observe(with_shapes != 0) ? 1 : 0; }
void bragg_stop_observing_operators(void) { bragg::record_function::stop_observing(); }
void bragg_return_context(void) { ThreadContext::current().take_back(); }

namespace {
class SeenFrames {
 public:
  SeenFrames(const struct bragg_python_frame* frames, uint32_t count) noexcept
      : count_(std::min<uint32_t>(count, BRAGG_MAX_SEEN_FRAMES)) {
    for (uint32_t i = 0; i < count_; ++i) frames_[i] = {frames[i].code, frames[i].instruction_offset, frames[i].frame};
  }
  [[nodiscard]] std::span<const bragg::RawFrame> span() const noexcept { return {frames_.data(), count_}; }

 private:
  std::array<bragg::RawFrame, BRAGG_MAX_SEEN_FRAMES> frames_;
  uint32_t count_;
};
}  // namespace

void bragg_sample(const struct bragg_host_sample* sample, int64_t interruption_ns) {
  const auto& state = bragg::recording_state;
  const bragg::SessionMask mask =
      state.active.load(std::memory_order_relaxed) & state.python.load(std::memory_order_relaxed);
  if (mask == 0) return;
  ThreadContext& thread = ThreadContext::current();
  thread.cost.add_exactly(bragg::CostPart::Samples, interruption_ns);
  const SeenFrames seen(sample->seen, sample->n_seen);
  const bragg::HostSample taken{sample->taken_ns, sample->elapsed_ns, sample->waited_ns, seen.span()};
  thread.cost.measure(bragg::CostPart::Samples, [&] { thread.record_sample(mask, taken); });
}

int bragg_sample_thread(const struct bragg_thread_sample* sample) {
  const auto& state = bragg::recording_state;
  const bragg::SessionMask mask =
      state.active.load(std::memory_order_relaxed) & state.python.load(std::memory_order_relaxed);
  if (mask == 0) return 0;
  const auto now = bragg::PythonFrameIterator::of_thread(sample->thread_state);
  const SeenFrames seen(sample->seen, sample->n_seen);
  const bragg::ThreadSample taken{
      sample->thread,     sample->taken_ns,
      sample->ran_ns,     {bragg::NodeId{sample->entry.shadow}, bragg::NodeId{sample->entry.python}},
      {now, seen.span()}, sample->thread_state == nullptr};
  return ThreadContext::current().record_sample_of(mask, taken) ? 1 : 0;
}

struct bragg_open_entry bragg_open_entry_of(uint32_t thread) {
  bragg::ContextNodes found;
  bragg::ThreadRegistry::instance().for_each([&](const ThreadContext& each) {
    if (each.system_id.load(std::memory_order_acquire) == thread) found = each.open_entry();
  });
  return {bragg::number_of(found.shadow), bragg::number_of(found.python)};
}

uint32_t bragg_metric(const char* name, const char* unit, int kind, int is_float) {
  const auto law = static_cast<bragg::MetricKind>(kind);
  return number_of(bragg::MetricNames::instance().intern(name, unit, law, is_float != 0));
}

void bragg_add_value(uint32_t metric, uint64_t bits, uint32_t index, uint32_t length) {
  if (!bragg::recording()) return;
  ThreadContext& thread = ThreadContext::current();
  thread.cost.measure(bragg::CostPart::Values, [&] {
    thread.record_value(thread.innermost_entry(), bragg::MetricId{metric}, bits, index, length);
  });
}

int bragg_add_device_value(uint32_t metric, uint64_t address, int dtype, uint32_t length, int64_t stride, void* stream,
                           char* reason, uint32_t reason_size) {
  const bragg::DeviceArray array{address, static_cast<bragg::Dtype>(dtype), length, stride};
  const std::string refusal = bragg::EventSources::instance().add_value(bragg::MetricId{metric}, array, stream);
  copy_text(refusal, reason, reason_size);
  return refusal.empty() ? 0 : -1;
}

void bragg_name_kernel(const void* function, const char* name, const char* symbol, const char* const* attributes,
                       uint32_t attribute_count) {
  if (name == nullptr) return bragg::KernelNames::instance().forget(function);
  std::vector<bragg::KernelNames::Attribute> pairs;
  for (uint32_t i = 0; i < attribute_count; ++i) pairs.push_back({attributes[2 * i], attributes[2 * i + 1]});
  bragg::KernelNames::instance().set(function, name, symbol, std::move(pairs));
}

void bragg_expect_launch(const void* function, const char* name, const uint32_t* metrics, const uint64_t* bits,
                         uint32_t count) {
  if (!bragg::recording()) return;
  bragg::ExpectedLaunch& expected = ThreadContext::current().expected_launch;
  expected.function = function;
  expected.name = name != nullptr ? bragg::FrameTable::instance().intern_string(name) : bragg::StringId::None;
  expected.values.clear();
  for (uint32_t i = 0; i < count; ++i) expected.values.push_back({bragg::MetricId{metrics[i]}, bits[i]});
}

int64_t bragg_now_ns() { return bragg::now_ns(); }

int bragg_has_session(void) { return bragg::recording_state.existing.load(std::memory_order_relaxed) != 0; }
int bragg_is_recording(void) { return bragg::recording(); }

void bragg_set_interpreter(const void* function) { bragg::LoadedCode::instance().set_interpreter(function); }
int bragg_can_unwind(void) { return bragg::kCanUnwind; }

void bragg_forget_code(const void* code) { bragg::PythonFrameIds::instance().forget(code); }

const char* bragg_library_path(void) {
  static const std::string path = bragg::own_library_path();
  return path.c_str();
}

int InitializeInjection(void) {
  const char* directory = environment("BRAGG_CAPTURE_DIR", nullptr);
  if (bragg_has_session() != 0) {
    Recorder::instance().on_source_initialized();
  } else if (directory != nullptr) {
    bragg_session_options options{};
    options.flush_interval_ms = 1000;
    char problem[512] = "";
    if (bragg_read_options(environment("BRAGG_OPTIONS", "{}"), &options, problem, sizeof problem) != 0) {
      std::fprintf(stderr, "bragg: process %d is not recorded: %s\n", static_cast<int>(getpid()), problem);
    } else if (options.backend != BRAGG_CPU) {
      start_injected_session(directory, options);
    }
  }
  return 1;
}

}  // extern "C"
