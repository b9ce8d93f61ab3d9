#include "backends/cuda/launch/cuda_callbacks.h"

#include "backends/cuda/activity_walker.h"
#include "backends/cuda/cuda_state.h"
#include "backends/cuda/exact/exact_counters.h"
#include "backends/cuda/graphs/graph_callbacks.h"
#include "backends/cuda/launch/api_calls.h"
#include "backends/cuda/launch/launch_callbacks.h"
#include "backends/cuda/launch/launch_calls.h"
#include "backends/cuda/samples/function_cubins.h"
#include "backends/cuda/samples/pc_sampling.h"
#include "backends/gpu_memory/cuda_memory_source.h"
#include "context/thread_context.h"

namespace bragg::cuda_backend {
namespace {

void note_new_context() noexcept {
  backend().n_contexts.fetch_add(1);
  launch_watch.context_changes.fetch_add(1, std::memory_order_relaxed);
}

void forget_context(cuda::Context context) noexcept {
  if (backend().n_contexts.load() > 0) backend().n_contexts.fetch_sub(1);
  {
    const std::lock_guard lock(backend().contexts_mutex);
    std::erase_if(backend().contexts, [&](const KnownContext& known) { return known.handle == context; });
    launch_watch.context_changes.fetch_add(1, std::memory_order_relaxed);
  }
  pc_sampling::note_context_end(context);
  exact_counters::note_context_end(context);
}

void on_driver_call(const CuptiLibrary& cupti, uint32_t cbid, const cupti::CallbackData& data) {
  if (is_launch_call(cbid)) return on_launch_call(cbid, data);
  if (cupti::allocation_call(cbid) != cupti::AllocationCall::None) return cuda_memory::note_call(cbid, data);
  const auto graph = cupti::graph_call(cbid);
  const bool is_gated = cupti::is_for_sampling(cbid) || graph == cupti::GraphCall::BeginCapture ||
                        graph == cupti::GraphCall::Instantiate || graph == cupti::GraphCall::Update;
  if (is_gated && data.site == cupti::CallbackSite::Enter) gate(ThreadContext::current(), data.site);
  if (graph != cupti::GraphCall::None) on_graph_call(cupti, cbid, data);
  if (is_gated && data.site == cupti::CallbackSite::Exit) gate(ThreadContext::current(), data.site);
  if (graph != cupti::GraphCall::None) return;
  if (cupti::is_module_call(cbid) && pc_sampling::is_wanted()) FunctionCubins::instance().note_call(cbid, data);
}

void on_api_call(const CuptiLibrary& cupti, cupti::Domain domain, uint32_t cbid, const cupti::CallbackData& data) {
  if (data.site == cupti::CallbackSite::Enter) api_calls::enter(domain, cbid, data);
  if (domain == cupti::Domain::DriverApi) on_driver_call(cupti, cbid, data);
  if (data.site == cupti::CallbackSite::Exit) api_calls::leave(domain, cbid, data);
}

// Nobody reads any more: what is in it is lost, and told.
void discard(const ActivityBuffer& buffer) noexcept {
  Backend& self = backend();
  uint64_t lost = 0;
  (void)walk_activity(buffer.data, buffer.valid_bytes, self.cupti.version, self.activity().next_record(),
                      [&](const DeviceEvent&) { ++lost; });
  self.dropped_records.fetch_add(lost, std::memory_order_relaxed);
  self.buffers.recycle(buffer);
}

}  // namespace

void on_callback(void*, cupti::Domain domain, uint32_t cbid, const void* argument) {
  const CuptiLibrary& cupti = backend().cupti;
  if (domain == cupti::Domain::DriverApi || domain == cupti::Domain::RuntimeApi) {
    const auto& data = *static_cast<const cupti::CallbackData*>(argument);
    if (api_calls::are_followed()) return on_api_call(cupti, domain, cbid, data);
    if (domain == cupti::Domain::DriverApi) return on_driver_call(cupti, cbid, data);
  }
  if (domain == cupti::Domain::Resource) {
    const auto& data = *static_cast<const cupti::ResourceData*>(argument);
    if (cbid == cupti::resource::kContextCreated) return note_new_context();
    if (cbid == cupti::resource::kContextDestroyStarting) return forget_context(data.context);
    if (cbid == cupti::resource::kModuleLoaded)
      return pc_sampling::note_module(*static_cast<const cupti::ModuleData*>(data.descriptor));
    on_graph_resource(cupti, cbid, *static_cast<const cupti::GraphData*>(data.descriptor),
                      launch_watch.traces_graphs.load());
  }
}

void on_buffer_requested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
  *buffer = backend().buffers.request();
  *size_bytes = BufferPool::kBufferBytes;
  *max_records = 0;  // as many as fit
}

void on_buffer_requested_v2(uint8_t** buffer, size_t* size_bytes, size_t* max_records, cupti::BufferRequestInfo*) {
  on_buffer_requested(buffer, size_bytes, max_records);
}

void on_buffer_completed_v2(uint8_t* buffer, size_t size_bytes, size_t valid_bytes, cupti::BufferCompleteInfo*) {
  on_buffer_completed(nullptr, 0, buffer, size_bytes, valid_bytes);
}

void on_buffer_completed(cuda::Context context, uint32_t stream, uint8_t* buffer, size_t, size_t valid_bytes) {
  backend().dropped_records.fetch_add(backend().activity().take_dropped(context, stream), std::memory_order_relaxed);
  switch (backend().buffers.complete({buffer, valid_bytes})) {
    case BufferPool::Completion::Queued:
      return;
    case BufferPool::Completion::Foreign:
      backend().foreign_buffers.fetch_add(1, std::memory_order_relaxed);
      return;
    case BufferPool::Completion::Refused:
      return discard({buffer, valid_bytes});
  }
}

}  // namespace bragg::cuda_backend
