#include "backends/gpu_memory/cuda_memory_source.h"

#include <atomic>
#include <new>

#include "backends/cuda/cuda.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/driver/cupti_cbids.h"
#include "backends/gpu_memory/followed_memory.h"
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
    taken_.forget();
    has_open_.store(false);
    is_wanted_.store(false);
  }

  [[nodiscard]] bool is_wanted() const { return is_wanted_.load(std::memory_order_relaxed); }

  void take(uint64_t address, uint64_t bytes) {
    ThreadContext& thread = ThreadContext::current();
    if (!is_followed() || thread.makes_own_calls) return;
    const OwnCalls own;
    const uint32_t device = CudaDriver::mapped().current_device();
    if (device == kNone) return;
    const ContextNodes nodes = thread.here_in_native_code();
    const std::lock_guard lock(mutex_);
    taken_.take({reinterpret_cast<uint64_t>(&thread), device, address, bytes, nodes, now_ns()});
    if (!has_segments_.load(std::memory_order_relaxed)) taken_.settle(INT64_MAX);
    has_open_.store(taken_.has_open());
  }
  using FollowedMemory::take;

  void give_back(uint64_t address) {
    if (!is_followed() || address == 0) return;
    const std::lock_guard lock(mutex_);
    taken_.give_back(reinterpret_cast<uint64_t>(&ThreadContext::current()), address, now_ns());
  }

  void expect_segments() { has_segments_.store(true); }

  void note_block(uint64_t address) {
    if (!has_open_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    taken_.note_block(address);
    has_open_.store(taken_.has_open());
  }

 private:
  void before_phase() override {
    if (!held_.is_known()) taken_.forget();
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
  TakenMemory taken_{held_};  // lock held
};

CudaMemorySource& only_source() {
  static CudaMemorySource& source = *new CudaMemorySource;  // callbacks come until the process is gone
  return source;
}

bool has_failed(const cupti::CallbackData& data) {
  return data.function_return_value != nullptr &&
         *static_cast<const cuda::Result*>(data.function_return_value) != cuda::Result::Success;
}

// Freed memory may be another thread's before the call has returned, so it counts as given back from its beginning.
void note(cupti::AllocationCall call, const cupti::CallbackData& data) {
  if (call == cupti::AllocationCall::GiveBack) {
    if (data.site == cupti::CallbackSite::Enter)
      only_source().give_back(static_cast<const GiveBackParams*>(data.function_params)->address);
    return;
  }
  if (data.site != cupti::CallbackSite::Exit || has_failed(data)) return;
  if (call == cupti::AllocationCall::TakePitched) {
    const auto& params = *static_cast<const PitchedParams*>(data.function_params);
    only_source().take(*params.address, *params.pitch_bytes * params.rows);
  } else {
    const auto& params = *static_cast<const TakeParams*>(data.function_params);
    only_source().take(*params.address, params.bytes);
  }
}

}  // namespace

EventSource& cuda_memory_source() { return only_source(); }

namespace cuda_memory {

bool is_wanted() noexcept { return only_source().is_wanted(); }

// In a capture a call in a stream becomes a node of a graph, and takes or gives back nothing yet.
void note_call(uint32_t cbid, const cupti::CallbackData& data) noexcept {
  if (!is_wanted() || data.function_params == nullptr || data.context == nullptr) return;
  const cupti::AllocationCall call = cupti::allocation_call(cbid);
  if (cupti::is_in_stream(cbid) && StreamCaptures::instance().any()) return;
  note(call, data);
}

void expect_segments() noexcept { only_source().expect_segments(); }

void note_block(uint64_t address) noexcept { only_source().note_block(address); }

}  // namespace cuda_memory
}  // namespace bragg
