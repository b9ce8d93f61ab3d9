#include "backends/cuda/values/device_values.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "backends/cuda/cuda.h"
#include "backends/cuda/values/value_slots.h"
#include "context/thread_context.h"

namespace bragg::device_values {
namespace {

using value_kernel::Dtype;

constexpr uint32_t kWarp = 32;
constexpr std::array<int64_t, 10> kSizeBytes{2, 2, 4, 8, 1, 2, 4, 8, 1, 1};  // by Dtype

bool is_floating(Dtype dtype) { return dtype <= Dtype::F64; }

struct Contexts {
  std::mutex creation;  // held while the driver loads the kernel: neither the consumer nor a fork waits for it
  std::mutex mutex;     // guards the map
  std::unordered_map<uint64_t, std::unique_ptr<ValueSlots>> slots;  // by context id; never removed
};

Contexts& contexts() {
  static Contexts& instance = *new Contexts;
  return instance;
}

std::atomic<uint32_t> last_reading{number_of(ReadingId::None)};

// While some stream of the process is captured, CUDA may refuse calls that our launch needs, unless this thread is in
// relaxed capture mode.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaFunctions& cuda) : cuda_(cuda) { (void)cuda_.exchange_capture_mode(&mode_); }
  ~RelaxedCapture() { (void)cuda_.exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const CudaFunctions& cuda_;
  cuda::CaptureMode mode_ = cuda::CaptureMode::Relaxed;
};

class CurrentContext {
 public:
  CurrentContext(const CudaFunctions& cuda, cuda::Context context) : cuda_(cuda) {
    cuda::Context current = nullptr;
    if (cuda_.context_current(&current) == cuda::Result::Success && current == context) return;
    is_pushed_ = cuda_.push_context(context) == cuda::Result::Success;
  }
  ~CurrentContext() {
    cuda::Context popped = nullptr;
    if (is_pushed_) (void)cuda_.pop_context(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaFunctions& cuda_;
  bool is_pushed_ = false;
};

bool is_default_stream(cuda::Stream stream) {
  return reinterpret_cast<uintptr_t>(stream) <= cuda::kPerThreadDefaultStream;
}

// The context in which `stream` runs: its own, for a default stream the current one if that is on the memory's device,
// else the device's primary one.
cuda::Context context_of(const CudaFunctions& cuda, cuda::Stream stream, cuda::Device device) {
  cuda::Context context = nullptr;
  if (!is_default_stream(stream))
    return cuda.stream_context(stream, &context) == cuda::Result::Success ? context : nullptr;
  cuda::Device current = -1;
  if (cuda.context_device(&current) == cuda::Result::Success && current == device)
    return cuda.context_current(&context) == cuda::Result::Success ? context : nullptr;
  if (cuda.retain_primary(&context, device) != cuda::Result::Success) return nullptr;
  (void)cuda.release_primary(device);  // it is alive as long as the memory is
  return context;
}

// Handles are reused, ids are not.
uint64_t id_of(const CudaFunctions& cuda, cuda::Context context) {
  uint64_t id = 0;
  if (cuda.context_id != nullptr && cuda.context_id(context, &id) == cuda::Result::Success) return id;
  return reinterpret_cast<uintptr_t>(context);
}

ValueSlots* known_slots(uint64_t id) {
  const std::lock_guard lock(contexts().mutex);
  const auto found = contexts().slots.find(id);
  return found != contexts().slots.end() ? found->second.get() : nullptr;
}

// nullptr: `reason`. The context is current.
ValueSlots* slots_of(const CudaFunctions& cuda, uint64_t id, std::string& reason) {
  if (ValueSlots* known = known_slots(id)) return known;
  const std::lock_guard creation(contexts().creation);
  if (ValueSlots* known = known_slots(id)) return known;  // another thread was faster
  std::unique_ptr<ValueSlots> created = ValueSlots::create(cuda, reason);
  if (created == nullptr) return nullptr;
  const std::lock_guard lock(contexts().mutex);
  return contexts().slots.emplace(id, std::move(created)).first->second.get();
}

std::string launch(const CudaFunctions& cuda, const ValueSlots& slots, const SlotPlace& place, const DeviceArray& array,
                   bool is_float, cuda::Stream stream) {
  const uint32_t count = std::max(array.length, 1u);
  value_kernel::Parameters parameters{array.address,
                                      slots.log(),
                                      place.totals,
                                      array.stride * kSizeBytes[static_cast<size_t>(array.dtype)],
                                      place.slot,
                                      count,
                                      static_cast<uint32_t>(array.dtype),
                                      is_float ? 1u : 0u};
  void* arguments[] = {&parameters.source, &parameters.log,    &parameters.totals, &parameters.stride_bytes,
                       &parameters.slot,   &parameters.length, &parameters.dtype,  &parameters.is_float};
  const uint32_t threads = std::min((count + kWarp - 1) / kWarp * kWarp, value_kernel::kMaxThreads);
  const auto result = cuda.launch(slots.kernel(), 1, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
  return result == cuda::Result::Success ? "" : cuda.failure("reading a metric value on the GPU", result);
}

std::string add_here(ThreadContext& thread, MetricId metric, const DeviceArray& array, cuda::Stream stream) {
  std::string reason;
  const CudaFunctions* found = CudaFunctions::find(reason);
  if (found == nullptr) return reason;
  const CudaFunctions& cuda = *found;
  const RelaxedCapture relaxed(cuda);
  cuda::Device device = 0;
  if (cuda.pointer_attribute(&device, cuda::PointerAttribute::DeviceOrdinal, array.address) != cuda::Result::Success)
    return "the address of the metric value is not memory of a GPU";
  const cuda::Context context = context_of(cuda, stream, device);
  if (context == nullptr) return "the stream of the metric value belongs to no CUDA context";
  const CurrentContext current(cuda, context);
  ValueSlots* slots = slots_of(cuda, id_of(cuda, context), reason);
  if (slots == nullptr) return reason;
  if (slots->device() != device) return "the metric value is on another GPU than the stream";
  cuda::CaptureStatus capture{};
  if (const auto result = cuda.stream_is_capturing(stream, &capture); result != cuda::Result::Success)
    return cuda.failure("cuStreamIsCapturing", result);
  // Without CUPTI nobody tells of a graph's launches: its values count where it was captured.
  const bool is_followed =
      capture == cuda::CaptureStatus::Active && cuda_backend::state() == cuda_backend::State::Attached;
  const ContextNodes nodes = thread.innermost_entry();
  const MetricName name = MetricNames::instance().at(metric);
  const ValueTarget target{.shadow = nodes.shadow,
                           .python = nodes.python,
                           .mask = static_cast<uint16_t>(recording_state.active.load(std::memory_order_relaxed)),
                           .metric = metric,
                           .length = array.length,
                           .is_float = name.is_float,
                           .is_property = name.kind == MetricKind::Property,
                           .reading = is_followed ? ReadingId{++last_reading} : ReadingId::None};
  const SlotPlace place = slots->place_of(cuda, target, reason);
  if (place.slot == kNone) return reason;
  thread.launches_own_kernel = true;
  thread.own_reading = target.reading;
  reason = launch(cuda, *slots, place, array, name.is_float, stream);
  thread.launches_own_kernel = false;
  if (reason.empty() && capture != cuda::CaptureStatus::Active) slots->note_launch(std::max(array.length, 1u));
  return reason;
}

}  // namespace

std::string add(MetricId metric, const DeviceArray& array, cuda::Stream stream) noexcept {
  if (!recording()) return "";
  if (number_of(metric) >= MetricNames::instance().size()) return "unknown metric id";
  if (array.length > kMaxLength) return "a metric has at most " + std::to_string(kMaxLength) + " elements";
  if (is_floating(array.dtype) && !MetricNames::instance().at(metric).is_float)
    return "the metric holds integers and was given floating point numbers";
  ThreadContext& thread = ThreadContext::current();
  const OwnCalls own;
  std::string reason;
  thread.cost.measure(CostPart::Values, [&] { reason = add_here(thread, metric, array, stream); });
  return reason;
}

bool any_captured() noexcept { return last_reading.load(std::memory_order_relaxed) != number_of(ReadingId::None); }

std::vector<ArrivedValue> take_arrived() {
  std::vector<ArrivedValue> arrived;
  const std::lock_guard lock(contexts().mutex);
  for (const auto& [id, slots] : contexts().slots) slots->read(arrived);
  return arrived;
}

uint64_t awaited() {
  uint64_t count = 0;
  const std::lock_guard lock(contexts().mutex);
  for (const auto& [id, slots] : contexts().slots) count += slots->awaited();
  return count;
}

void lock_for_fork() { contexts().mutex.lock(); }

void unlock_after_fork() { contexts().mutex.unlock(); }

void after_fork_in_child() {
  new (&contexts().creation) std::mutex;
  for (auto& [id, slots] : contexts().slots) (void)slots.release();  // what they point to does not exist here
  contexts().slots.clear();
}

}  // namespace bragg::device_values
