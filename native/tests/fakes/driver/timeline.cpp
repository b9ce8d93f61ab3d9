#include "driver/timeline.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "driver/graphs.h"
#include "driver/value_kernel.h"

namespace bragg::fake {
namespace {

constexpr uintptr_t kLastSpecialStream = 2;  // 1: legacy default, 2: per-thread default
constexpr uint32_t kPatternStep = 37, kPatternLength = 101;

std::mutex placing_mutex;
std::multiset<uint64_t>& placing_since_ns() {
  static auto& self = *new std::multiset<uint64_t>;  // threads may outlive static destruction
  return self;
}

uint64_t kernel_ns(cuda::FunctionHandle& function) noexcept {
  const uint32_t launch = function.launches.fetch_add(1, std::memory_order_relaxed);
  const uint64_t own = function.duration_ns.load(std::memory_order_relaxed);
  const auto variation = static_cast<uint64_t>(knob(Knob::VaryNs)) * (launch * kPatternStep % kPatternLength);
  return (own != 0 ? own : static_cast<uint64_t>(knob(Knob::KernelNs))) + variation / kPatternLength;
}

}  // namespace

Placing::Placing() {
  const std::lock_guard lock(placing_mutex);
  began_ns_ = clock::now_ns();
  placing_since_ns().insert(began_ns_);
}

Placing::~Placing() {
  const std::lock_guard lock(placing_mutex);
  placing_since_ns().extract(began_ns_);
}

uint64_t all_placed_until_ns() {
  const std::lock_guard lock(placing_mutex);
  const auto& since_ns = placing_since_ns();
  return since_ns.empty() ? clock::now_ns() : *since_ns.begin();
}

cuda::StreamHandle& resolve(cuda::Context context, cuda::Stream stream) noexcept {
  return reinterpret_cast<uintptr_t>(stream) <= kLastSpecialStream ? context->default_stream : *stream;
}

Place place_of(const cuda::StreamHandle& stream) noexcept {
  return {stream.context->device, stream.context->id, stream.id};
}

uint64_t duration_ns(const Operation& operation) noexcept {
  switch (operation.type) {
    case cuda::GraphNodeType::Kernel:
      return kernel_ns(*operation.function);
    case cuda::GraphNodeType::Memcpy:
      return 500 + operation.size_bytes / 20;
    case cuda::GraphNodeType::Memset:
      return 300 + operation.size_bytes / 100;
    default:
      return 0;
  }
}

Span enqueue(cuda::StreamHandle& stream, uint64_t duration_ns) noexcept {
  const uint64_t start_ns = std::max(clock::now_ns(), stream.tail_ns);
  stream.tail_ns = start_ns + duration_ns;
  clock::note_end_of_work(stream.tail_ns);
  return {start_ns, stream.tail_ns};
}

cuda::Result submit(ApiCall& call, cuda::Stream handle, const Operation& operation) {
  if (call.context == nullptr) return cuda::Result::InvalidContext;
  cuda::StreamHandle& stream = resolve(call.context, handle);
  std::unique_lock lock(stream.mutex);
  if (cuda::GraphHandle* graph = stream.capture) {
    lock.unlock();
    add_node(call.context, *graph, operation);
    return cuda::Result::Success;
  }
  const Placing placing;
  const Span span = enqueue(stream, duration_ns(operation));
  lock.unlock();
  if (is_value_kernel(operation)) read_values(operation.reading);
  if (const Tool* tool = attached_tool.load(std::memory_order_acquire))
    tool->executed({operation, call.correlation, place_of(stream), span, {}});
  return cuda::Result::Success;
}

void wait_for(cuda::StreamHandle& stream) {
  uint64_t tail_ns;
  {
    const std::lock_guard lock(stream.mutex);
    tail_ns = stream.tail_ns;
  }
  clock::wait_until(tail_ns);
}

void wait_for(cuda::ContextHandle& context) {
  wait_for(context.default_stream);
  const std::lock_guard lock(context.mutex);
  for (const auto& stream : context.streams) wait_for(*stream);
}

}  // namespace bragg::fake
