#include "backends/gpu_memory/torch_memory_source.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "backends/gpu_memory/cuda_memory_source.h"
#include "backends/gpu_memory/followed_memory.h"
#include "backends/gpu_memory/imported_function.h"
#include "context/clock.h"
#include "context/loaded_library.h"
#include "context/thread_context.h"

namespace bragg {
namespace {

// c10::Device, by value: in one register.
struct TorchDevice {
  int8_t type;
  int8_t index;
};
static_assert(sizeof(TorchDevice) == 2);
constexpr int8_t kCudaType = 1, kHipType = 6;  // c10::DeviceType; builds for ROCm say CUDA

// The libraries whose allocator reports each block, and the function of libc10 that they call for it: void(void* block,
// int64_t bytes, size_t allocated, size_t reserved, c10::Device). They hold the allocator's lock, so events of one GPU
// are in order. The same in PyTorch 2.0 to 2.11.
constexpr const char* kLibraries[] = {"libc10_cuda.so", "libc10_hip.so"};
constexpr const char* kReport = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
using Report = void(void*, int64_t, size_t, size_t, TorchDevice);

constexpr FollowedMemory::Names kTorchNames{"gpu_memory",
                                            {{{"gpu_memory_peak", "B"},
                                              {"gpu_memory_end", "B"},
                                              {"gpu_memory_reserved", "B"},
                                              {"gpu_memory_reservations", "1"}}},
                                            "memory allocated",
                                            "memory reserved"};

constinit std::atomic<void*> torch_report{nullptr};

void report_block(void* block, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device);

class TorchMemorySource final : public FollowedMemory {
 public:
  TorchMemorySource() : FollowedMemory(kTorchNames) {}

  void start(const SourceOptions& options) override {
    if (!options.memory) return;
    is_wanted_ = true;
    follow();
  }
  void stop() override { is_wanted_ = false; }

  // PyTorch may be imported at any time. A poll sees that before the first block, since CUDA must start in between.
  void poll(uint64_t) override {
    if (is_wanted_) follow();
  }

  void after_fork_in_child() override {
    FollowedMemory::after_fork_in_child();
    new (&follow_mutex_) std::mutex;
    is_wanted_ = false;
  }

  // Threads: any that gets or frees a block, PyTorch's lock held.
  void note(const void* block, int64_t bytes, uint64_t allocated, uint64_t reserved, TorchDevice device) noexcept {
    if (!is_followed()) return;
    if (bytes > 0) cuda_memory::note_block(reinterpret_cast<uint64_t>(block), static_cast<uint64_t>(bytes));
    ThreadContext& thread = ThreadContext::current();
    thread.cost.measure(CostPart::Values, [&] {
      const ContextNodes nodes = bytes > 0 ? thread.here() : ContextNodes{};
      const std::lock_guard lock(mutex_);
      held_.take({static_cast<uint32_t>(device.index), reinterpret_cast<uint64_t>(block), bytes, allocated, reserved,
                  nodes, now_ns()});
    });
  }

 private:
  void follow() {
    const std::lock_guard lock(follow_mutex_);
    const uint64_t loaded = libraries_loaded();
    if (is_replaced_ || std::exchange(looked_at_, loaded) == loaded) return;
    for (const char* name : kLibraries)
      for (const std::string& path : mapped_libraries(name))
        if (replace_imported_function(path, kReport, reinterpret_cast<void*>(&report_block), torch_report))
          is_replaced_ = true;
        else
          tell_reason(path + " does not tell its blocks as expected");
    if (is_replaced_) cuda_memory::expect_segments();
  }

  // Once: it is looked for again with each library that the program loads.
  void tell_reason(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(reason_, reason) == reason) return;
    }
    std::fprintf(stderr, "bragg: memory of GPUs is not recorded: %s\n", reason.c_str());
  }

  std::atomic<bool> is_wanted_{false};
  std::mutex follow_mutex_;
  uint64_t looked_at_ = 0;  // so many libraries had been loaded when the allocator's was looked for
  std::atomic<bool> is_replaced_{false};
};

TorchMemorySource& only_torch_source() {
  static TorchMemorySource& source = *new TorchMemorySource;  // PyTorch frees blocks during static destruction
  return source;
}

// What it calls may throw.
void report_block(void* block, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device) {
  const bool is_of_gpu = device.type == kCudaType || device.type == kHipType;
  if (is_of_gpu) only_torch_source().note(block, bytes, allocated, reserved, device);
  reinterpret_cast<Report*>(torch_report.load(std::memory_order_relaxed))(block, bytes, allocated, reserved, device);
}

}  // namespace

EventSource& torch_memory_source() { return only_torch_source(); }

}  // namespace bragg
