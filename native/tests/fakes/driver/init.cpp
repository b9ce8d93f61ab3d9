// cuInit, the injection hook, fork, and the door to the fake CUPTI.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "driver/timeline.h"

namespace bragg::fake {
namespace {

bool attach(const Tool* tool) {
  const Tool* expected = nullptr;
  return attached_tool.compare_exchange_strong(expected, tool) || expected == tool;
}

constexpr Driver kDriver{
    .attach = attach,
    .state = [] { return driver_state.load(std::memory_order_acquire); },
    .now_ns = clock::now_ns,
    .all_placed_until_ns = all_placed_until_ns,
    .jump_to_end_of_work = clock::jump_to_end_of_work,
    .clock_is_real = [] { return knob(Knob::RealClock) != 0; },
    .context_device = [](cuda::Context context) { return context->device; },
    .context_id = [](cuda::Context context) { return context->id; },
    .stream_id = [](cuda::Context context, cuda::Stream stream) { return resolve(context, stream).id; },
    .graph_id = [](cuda::Graph graph) { return graph->id; },
    .graph_exec_id = [](cuda::GraphExec exec) { return exec->graph->id; },
    .graph_node_id = [](cuda::GraphNode node) { return node->id; },
};

// CUDA does not survive a fork; a process that forks before cuInit may initialise it in the child.
void after_fork_in_child() {
  if (driver_state.load() == DriverState::Ready) driver_state.store(DriverState::Forked);
}

void call_injection() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return;
  if (auto* initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) initialize();
}

void initialize() {
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  driver_state.store(DriverState::Ready, std::memory_order_release);
  call_injection();
  notify_resource(cupti::resource::kCuInitFinished, nullptr, nullptr, nullptr);
}

}  // namespace

FAKE_CUDA(cuInit)(uint32_t flags) {
  if (flags != 0) return cuda::Result::InvalidValue;
  if (const uint32_t failed = failure("cuInit")) return static_cast<cuda::Result>(failed);
  if (knob(Knob::Devices) == 0) return cuda::Result::NoDevice;
  static std::once_flag once;
  std::call_once(once, initialize);
  return driver_call(call_site("cuInit"), [](ApiCall&) { return cuda::Result::Success; });
}
FAKE_CUDA_IS(cuInit, CuInit);

FAKE_CUDA(cuDriverGetVersion)(int32_t* version) {
  *version = 13000;
  return cuda::Result::Success;
}
FAKE_CUDA_IS(cuDriverGetVersion, CuDriverGetVersion);

FAKE_CUDA(cuGetErrorName)(cuda::Result error, const char** name) {
  using enum cuda::Result;
  switch (error) {
    case Success:
      *name = "CUDA_SUCCESS";
      return Success;
    case InvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      return Success;
    case NotInitialized:
      *name = "CUDA_ERROR_NOT_INITIALIZED";
      return Success;
    case NoDevice:
      *name = "CUDA_ERROR_NO_DEVICE";
      return Success;
    case InvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      return Success;
    case Unknown:
      *name = "CUDA_ERROR_UNKNOWN";
      return Success;
    default:
      *name = nullptr;
      return InvalidValue;
  }
}
FAKE_CUDA_IS(cuGetErrorName, CuGetErrorName);

BRAGG_FAKE_EXPORT const Driver* bragg_fake_driver() { return &kDriver; }
static_assert(std::is_same_v<decltype(bragg_fake_driver), GetDriver>);

// Controls of the fake; each also reaches an attached CUPTI.
BRAGG_FAKE_EXPORT bool bragg_fake_set(const char* name, int64_t value) {
  if (const Tool* tool = attached_tool.load(std::memory_order_acquire)) tool->set_knob(name, value);
  return set_knob(name, value);
}

BRAGG_FAKE_EXPORT void bragg_fake_fail(const char* call, uint32_t result) {
  if (const Tool* tool = attached_tool.load(std::memory_order_acquire)) tool->set_failure(call, result);
  set_failure(call, result);
}

BRAGG_FAKE_EXPORT uint64_t bragg_fake_now_ns() { return clock::now_ns(); }

}  // namespace bragg::fake
