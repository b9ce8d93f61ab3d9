#include "backends/gpu_memory/cuda_memory_source.h"

#include <atomic>
#include <new>

#include "backends/cuda/cuda.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/driver/cupti_cbids.h"
#include "backends/gpu_memory/followed_memory.h"
#include "backends/gpu_memory/mapped_memory.h"
#include "backends/gpu_memory/taken_memory.h"
#include "context/clock.h"
#include "context/stream_captures.h"
#include "context/thread_context.h"

namespace bragg {
namespace {

constexpr FollowedMemory::Names kNames{
    "cuda_memory",
    {{{"cuda_memory_peak", "B"}, {"cuda_memory_end", "B"}, {"cuda_memory_taken", "B"}, {"cuda_memory_calls", "1"}}},
    "memory taken from CUDA",
    nullptr};
constexpr int64_t kOpenNs = 1'000'000'000;  // PyTorch hands out the first block of a segment within microseconds

// What the calls' parameters begin with.
struct TakeParams {
  uint64_t* address;
  uint64_t bytes;
};
struct PitchedParams {
  uint64_t* address;
  const uint64_t* pitch_bytes;  // of a row, at the end of the call
  uint64_t width_bytes;
  uint64_t rows;
};
struct GiveBackParams {
  uint64_t address;
};
// Of memory that is mapped.
struct CreateProperties {
  uint32_t type;
  uint32_t handle_types;
  uint32_t location_type;
  int32_t location;  // a GPU, where the type is kOfGpu
};
constexpr uint32_t kOfGpu = 1;
struct CreateParams {
  const uint64_t* handle;
  uint64_t bytes;
  const CreateProperties* properties;
};
struct ReleaseParams {
  uint64_t handle;
};
struct RetainParams {
  const uint64_t* handle;
};
struct MapParams {
  AddressRange range;
  uint64_t offset_bytes;
  uint64_t handle;
};
struct UnmapParams {
  AddressRange range;
};

class CudaMemorySource final : public FollowedMemory {
 public:
  CudaMemorySource() : FollowedMemory(kNames) {}

  void start(const SourceOptions& options) override {
    if (!options.memory) return;
    is_wanted_.store(true);
    cuda_backend::follow_memory();
  }
  void stop() override { is_wanted_.store(false); }
  void poll(uint64_t) override {}
  void gather() override {
    settle(now_ns() - kOpenNs);
    FollowedMemory::gather();
  }
  void after_fork_in_child() override {
    FollowedMemory::after_fork_in_child();
    forget_taken();
    has_open_.store(false);
    is_wanted_.store(false);
  }

  [[nodiscard]] bool is_wanted() const { return is_wanted_.load(std::memory_order_relaxed); }

  void take(uint64_t address, uint64_t bytes) {
    note_taken(bytes, kNone, [&](TakenBytes taken) {
      taken.address = address;
      taken_.take(taken);
    });
  }
  void create(uint64_t handle, uint64_t bytes, uint32_t device) {
    note_taken(bytes, device, [&](const TakenBytes& taken) { mapped_.create(handle, taken); });
  }
  using FollowedMemory::take;

  void give_back(uint64_t address) {
    if (address != 0) change([&] { taken_.give_back(this_thread(), address, now_ns()); });
  }
  void release(uint64_t handle) {
    change([&] { mapped_.release(handle, this_thread(), now_ns()); });
  }
  void retain(uint64_t handle) {
    change([&] { mapped_.retain(handle); });
  }
  void map(uint64_t handle, const AddressRange& range) {
    change([&] { mapped_.map(handle, range); });
  }
  void unmap(const AddressRange& range) {
    change([&] { mapped_.unmap(range, this_thread(), now_ns()); });
  }

  void expect_segments() { has_segments_.store(true); }

  void note_block(const AddressRange& block) {
    if (!has_open_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    taken_.note_block(block);
    has_open_.store(taken_.has_open());
  }

 private:
  [[nodiscard]] static uint64_t this_thread() { return reinterpret_cast<uint64_t>(&ThreadContext::current()); }

  // `device`: kNone takes that of the current context.
  template <class Note>
  void note_taken(uint64_t bytes, uint32_t device, Note&& note) {
    ThreadContext& thread = ThreadContext::current();
    if (!is_followed() || thread.makes_own_calls) return;
    const OwnCalls own;
    if (device == kNone) device = CudaDriver::mapped().current_device();
    if (device == kNone) return;
    const ContextNodes nodes = thread.here_in_native_code();
    const std::lock_guard lock(mutex_);
    note(TakenBytes{this_thread(), device, 0, bytes, nodes, now_ns()});
    if (!has_segments_.load(std::memory_order_relaxed)) taken_.settle(INT64_MAX);
    has_open_.store(taken_.has_open());
  }

  template <class Change>
  void change(Change&& change) {
    if (!is_followed()) return;
    const std::lock_guard lock(mutex_);
    change();
  }

  void forget_taken() {
    taken_.forget();
    mapped_.forget();
  }

  void before_phase() override {
    if (!held_.is_known()) forget_taken();
  }
  void before_phase_end() override { taken_.settle(INT64_MAX); }

  void settle(int64_t until_ns) {
    if (!has_open_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    taken_.settle(until_ns);
    has_open_.store(taken_.has_open());
  }

  std::atomic<bool> is_wanted_{false};
  std::atomic<bool> has_segments_{false};
  std::atomic<bool> has_open_{false};
  TakenMemory taken_{held_};     // lock held
  MappedMemory mapped_{taken_};  // lock held
};

CudaMemorySource& only_cuda_source() {
  static CudaMemorySource& source = *new CudaMemorySource;  // callbacks come until the process is gone
  return source;
}

bool has_failed(const cupti::CallbackData& data) {
  return data.function_return_value != nullptr &&
         *static_cast<const cuda::Result*>(data.function_return_value) != cuda::Result::Success;
}

template <class Params>
const Params& params_of(const cupti::CallbackData& data) {
  return *static_cast<const Params*>(data.function_params);
}

// Freed memory may be another thread's before the call has returned, so it counts as given back from its beginning.
void note_begin(cupti::AllocationCall call, const cupti::CallbackData& data) {
  switch (call) {
    case cupti::AllocationCall::GiveBack:
      return only_cuda_source().give_back(params_of<GiveBackParams>(data).address);
    case cupti::AllocationCall::Release:
      return only_cuda_source().release(params_of<ReleaseParams>(data).handle);
    case cupti::AllocationCall::Unmap:
      return only_cuda_source().unmap(params_of<UnmapParams>(data).range);
    default:
      return;
  }
}

void note_created(const CreateParams& params) {
  const CreateProperties& properties = *params.properties;
  if (properties.location_type == kOfGpu)
    only_cuda_source().create(*params.handle, params.bytes, static_cast<uint32_t>(properties.location));
}

void note_end(cupti::AllocationCall call, const cupti::CallbackData& data) {
  switch (call) {
    case cupti::AllocationCall::Take:
      return only_cuda_source().take(*params_of<TakeParams>(data).address, params_of<TakeParams>(data).bytes);
    case cupti::AllocationCall::TakePitched: {
      const auto& params = params_of<PitchedParams>(data);
      return only_cuda_source().take(*params.address, *params.pitch_bytes * params.rows);
    }
    case cupti::AllocationCall::Create:
      return note_created(params_of<CreateParams>(data));
    case cupti::AllocationCall::Map:
      return only_cuda_source().map(params_of<MapParams>(data).handle, params_of<MapParams>(data).range);
    case cupti::AllocationCall::Retain:
      return only_cuda_source().retain(*params_of<RetainParams>(data).handle);
    default:
      return;
  }
}

}  // namespace

EventSource& cuda_memory_source() { return only_cuda_source(); }

namespace cuda_memory {

bool is_wanted() noexcept { return only_cuda_source().is_wanted(); }

// In a capture a call in a stream becomes a node of a graph, and takes or gives back nothing yet.
void note_call(uint32_t cbid, const cupti::CallbackData& data) noexcept {
  if (!is_wanted() || data.function_params == nullptr) return;
  const cupti::AllocationCall call = cupti::allocation_call(cbid);
  if (cupti::is_in_stream(cbid) && StreamCaptures::instance().any()) return;
  if (data.site == cupti::CallbackSite::Enter)
    note_begin(call, data);
  else if (!has_failed(data))
    note_end(call, data);
}

void expect_segments() noexcept { only_cuda_source().expect_segments(); }

void note_block(uint64_t address, uint64_t bytes) noexcept { only_cuda_source().note_block({address, bytes}); }

}  // namespace cuda_memory
}  // namespace bragg
