// Streams, their capture into graphs, and events.
#include <algorithm>
#include <atomic>
#include <utility>

#include "driver/graphs.h"
#include "driver/owned.h"
#include "driver/timeline.h"

namespace bragg::fake {
namespace {

std::atomic<uint32_t> next_stream_id{13};  // CUPTI shows 7 for the default stream, and 13 and up for others

// All streams that take part in a capture go back to running their work.
void end_capture(cuda::ContextHandle& context, const cuda::GraphHandle* graph) {
  const std::lock_guard lock(context.mutex);
  for (const auto& stream : context.streams) {
    const std::lock_guard stream_lock(stream->mutex);
    if (stream->capture == graph) stream->capture = nullptr;
  }
}

// A stream that is captured cannot be waited for: the capture will give no graph.
bool invalidate_capture(cuda::StreamHandle& stream) {
  const std::lock_guard lock(stream.mutex);
  if (stream.capture == nullptr) return false;
  return stream.is_capture_invalid = true;
}

// `graph` null: a new one.
cuda::Result begin_capture(cuda::Context context, cuda::Stream stream, cuda::Graph graph) {
  if (stream == nullptr) return cuda::Result::StreamCaptureUnsupported;  // the default stream cannot be captured
  {
    const std::lock_guard lock(stream->mutex);
    if (stream->capture != nullptr) return cuda::Result::InvalidValue;
  }
  if (graph == nullptr) graph = create_graph(context);
  const std::lock_guard lock(stream->mutex);
  stream->capture = graph;
  stream->is_capture_invalid = false;
  ++open_captures;
  return cuda::Result::Success;
}

}  // namespace

FAKE_CUDA(cuStreamCreate)(cuda::Stream* stream, uint32_t) {
  return driver_call(call_site("cuStreamCreate"), [&](ApiCall& call) {
    if (stream == nullptr) return cuda::Result::InvalidValue;
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    auto created = std::make_unique<cuda::StreamHandle>();
    created->context = call.context;
    created->id = next_stream_id.fetch_add(1);
    *stream = created.get();
    {
      const std::lock_guard lock(call.context->mutex);
      call.context->streams.push_back(std::move(created));
    }
    notify_resource(cupti::resource::kStreamCreated, call.context, *stream, nullptr);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuStreamDestroy_v2)(cuda::Stream stream) {
  return driver_call(call_site("cuStreamDestroy_v2"), [&](ApiCall&) {
    if (stream == nullptr) return cuda::Result::InvalidHandle;
    cuda::ContextHandle& context = *stream->context;
    notify_resource(cupti::resource::kStreamDestroyStarting, &context, stream, nullptr);
    const std::lock_guard lock(context.mutex);
    std::erase_if(context.streams, [&](const auto& each) { return each.get() == stream; });
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuStreamSynchronize)(cuda::Stream stream) {
  return driver_call(call_site("cuStreamSynchronize"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    cuda::StreamHandle& waited_for = resolve(call.context, stream);
    if (invalidate_capture(waited_for)) return cuda::Result::StreamCaptureUnsupported;
    wait_for(waited_for);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuStreamQuery)(cuda::Stream stream) {
  return driver_call(call_site("cuStreamQuery"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    cuda::StreamHandle& queried = resolve(call.context, stream);
    const std::lock_guard lock(queried.mutex);
    return queried.tail_ns <= clock::now_ns() ? cuda::Result::Success : cuda::Result::NotReady;
  });
}

FAKE_CUDA(cuStreamWaitEvent)(cuda::Stream stream, cuda::Event event, uint32_t) {
  return driver_call(call_site("cuStreamWaitEvent"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    if (event == nullptr) return cuda::Result::InvalidHandle;
    cuda::StreamHandle& waiting = resolve(call.context, stream);
    const std::scoped_lock lock(waiting.mutex, event->mutex);
    if (event->capture != nullptr) waiting.capture = event->capture;  // joins the capture
    waiting.tail_ns = std::max(waiting.tail_ns, event->time_ns);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuStreamGetCtx)(cuda::Stream stream, cuda::Context* context) {
  return driver_call(call_site("cuStreamGetCtx"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    *context = resolve(call.context, stream).context;
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuStreamGetCtx, CuStreamGetCtx);

FAKE_CUDA(cuThreadExchangeStreamCaptureMode)(cuda::CaptureMode* mode) {
  return driver_call(call_site("cuThreadExchangeStreamCaptureMode"), [&](ApiCall&) {
    std::swap(*mode, capture_mode);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuThreadExchangeStreamCaptureMode, CuThreadExchangeStreamCaptureMode);

FAKE_CUDA(cuStreamBeginCapture_v2)(cuda::Stream stream, uint32_t) {
  const cupti::CaptureParams params{stream, nullptr};
  return driver_call(call_site("cuStreamBeginCapture_v2"), {nullptr, &params},
                     [&](ApiCall& call) { return begin_capture(call.context, stream, nullptr); });
}

FAKE_CUDA(cuStreamBeginCaptureToGraph)(cuda::Stream stream, cuda::Graph graph, const cuda::GraphNode*, const void*,
                                       size_t, uint32_t) {
  const cupti::CaptureParams params{stream, nullptr};
  return driver_call(call_site("cuStreamBeginCaptureToGraph"), {nullptr, &params}, [&](ApiCall& call) {
    return graph != nullptr ? begin_capture(call.context, stream, graph) : cuda::Result::InvalidValue;
  });
}

FAKE_CUDA(cuStreamEndCapture)(cuda::Stream stream, cuda::Graph* graph) {
  const cupti::CaptureParams params{stream, graph};
  return driver_call(call_site("cuStreamEndCapture"), {nullptr, &params}, [&](ApiCall& call) {
    if (stream == nullptr || graph == nullptr) return cuda::Result::InvalidValue;
    bool is_invalid = false;
    {
      const std::lock_guard lock(stream->mutex);
      if (stream->capture == nullptr) return cuda::Result::InvalidValue;
      *graph = stream->capture;
      is_invalid = stream->is_capture_invalid;
    }
    end_capture(*stream->context, *graph);
    --open_captures;
    if (!is_invalid) return cuda::Result::Success;
    (void)destroy_graph(call.context, std::exchange(*graph, nullptr));
    return cuda::Result::StreamCaptureInvalidated;
  });
}

FAKE_CUDA(cuStreamIsCapturing)(cuda::Stream stream, cuda::CaptureStatus* status) {
  return driver_call(call_site("cuStreamIsCapturing"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    cuda::StreamHandle& queried = resolve(call.context, stream);
    const std::lock_guard lock(queried.mutex);
    *status = queried.capture != nullptr ? cuda::CaptureStatus::Active : cuda::CaptureStatus::None;
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuStreamIsCapturing, CuStreamIsCapturing);

FAKE_CUDA(cuEventCreate)(cuda::Event* event, uint32_t) {
  return driver_call(call_site("cuEventCreate"), [&](ApiCall&) {
    *event = owned<cuda::EventHandle>().add(std::make_unique<cuda::EventHandle>());
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuEventDestroy_v2)(cuda::Event event) {
  return driver_call(call_site("cuEventDestroy_v2"), [&](ApiCall&) {
    return owned<cuda::EventHandle>().destroy(event) ? cuda::Result::Success : cuda::Result::InvalidHandle;
  });
}

FAKE_CUDA(cuEventRecord)(cuda::Event event, cuda::Stream stream) {
  return driver_call(call_site("cuEventRecord"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    cuda::StreamHandle& recorded = resolve(call.context, stream);
    const std::scoped_lock lock(recorded.mutex, event->mutex);
    event->capture = recorded.capture;
    event->time_ns = std::max(clock::now_ns(), recorded.tail_ns);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuEventQuery)(cuda::Event event) {
  return driver_call(call_site("cuEventQuery"), [&](ApiCall&) {
    const std::lock_guard lock(event->mutex);
    return event->time_ns <= clock::now_ns() ? cuda::Result::Success : cuda::Result::NotReady;
  });
}

FAKE_CUDA(cuEventSynchronize)(cuda::Event event) {
  return driver_call(call_site("cuEventSynchronize"), [&](ApiCall&) {
    uint64_t time_ns;
    {
      const std::lock_guard lock(event->mutex);
      time_ns = event->time_ns;
    }
    clock::wait_until(time_ns);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuEventElapsedTime)(float* elapsed_ms, cuda::Event start, cuda::Event end) {
  return driver_call(call_site("cuEventElapsedTime"), [&](ApiCall&) {
    const std::scoped_lock lock(start->mutex, end->mutex);
    *elapsed_ms = static_cast<float>(static_cast<int64_t>(end->time_ns - start->time_ns)) * 1e-6f;
    return cuda::Result::Success;
  });
}

}  // namespace bragg::fake
