#include "backends/torch_memory/memory_source.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "backends/torch_memory/held_memory.h"
#include "backends/torch_memory/imported_function.h"
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

constexpr std::array<std::pair<const char*, const char*>, kMemoryMetrics> kMetrics{{{"gpu_memory_peak", "B"},
                                                                                    {"gpu_memory_end", "B"},
                                                                                    {"gpu_memory_reserved", "B"},
                                                                                    {"gpu_memory_reservations", "1"}}};

constinit std::atomic<void*> torch_report{nullptr};
constinit std::atomic<bool> is_followed{false};

void report_block(void* block, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device);

class MemorySource final : public EventSource {
 public:
  void start(const SourceOptions& options) override {
    if (!options.memory) return;
    is_wanted_ = true;
    follow();
  }
  void collect(const Collecting&) override {}  // what is freed in a pause is no longer held after it
  void begin_phase(const SourceOptions& options) override {
    if (!options.memory) return;
    const std::lock_guard lock(mutex_);
    held_.begin_phase(options.phase, now_ns());
    is_followed.store(true);
  }
  void end_phase(const SourceOptions& options) override {
    if (!options.memory) return;
    const std::lock_guard lock(mutex_);
    held_.end_phase(options.phase);
    is_followed.store(held_.is_wanted());
  }
  void stop() override { is_wanted_ = false; }

  // PyTorch may be imported at any time. A poll sees that before the first block, since CUDA must start in between.
  void poll(uint64_t) override {
    if (is_wanted_) follow();
  }
  void drain(int64_t, bool) override {}

  void gather() override {
    if (!is_replaced_) return;
    const std::lock_guard lock(mutex_);
    for (const MemoryChange& change : held_.take_changes()) changes_.push_back(change);
    for (const MemoryPoint& point : held_.take_points(now_ns())) points_.push_back(point);
  }
  bool take(EventSink& sink) override {
    for (const MemoryChange& change : std::exchange(changes_, {})) tell(change, sink);
    for (const MemoryPoint& point : std::exchange(points_, {})) {
      const Tracks& tracks = tracks_of(point.device, sink);
      sink.take(CounterSample{tracks.allocated, point.time_ns, static_cast<double>(point.allocated)});
      sink.take(CounterSample{tracks.reserved, point.time_ns, static_cast<double>(point.reserved)});
    }
    return false;
  }
  void describe(JsonObject& meta, const SourceOptions& options) const override {
    if (!options.memory) return;
    JsonObject json;
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) json.put("reason", reason_);
    held_.describe(json, options.phase);
    meta.raw("gpu_memory", json.text());
  }

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  // A child cannot use its parent's GPUs.
  void after_fork_in_child() override {
    new (&mutex_) std::mutex;
    new (&follow_mutex_) std::mutex;
    held_ = HeldMemory(unknown_);  // known since before the fork: names are locked here
    is_wanted_ = false;
    is_followed.store(false);
    changes_.clear();
    points_.clear();
    tracks_.clear();
  }

  // Threads: any that gets or frees a block, PyTorch's lock held.
  void note(const void* block, int64_t bytes, uint64_t allocated, uint64_t reserved, TorchDevice device) noexcept {
    ThreadContext& thread = ThreadContext::current();
    thread.cost.measure(CostPart::Values, [&] {
      const ContextNodes nodes = bytes > 0 ? thread.here() : ContextNodes{};
      const std::lock_guard lock(mutex_);
      held_.take({static_cast<uint32_t>(device.index), reinterpret_cast<uint64_t>(block), bytes, allocated, reserved,
                  nodes, now_ns()});
    });
  }

 private:
  struct Tracks {
    TrackId allocated, reserved;
  };

  [[nodiscard]] static ContextNodes unknown() {
    const FrameId frame = intern_frame(FrameKind::State, "[allocated before the recording]");
    const NodeId node = CallingContextTree::instance().child(kRootNode, frame);
    return {node, node};
  }

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
  }

  // Once: it is looked for again with each library that the program loads.
  void tell_reason(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(reason_, reason) == reason) return;
    }
    std::fprintf(stderr, "bragg: memory of GPUs is not recorded: %s\n", reason.c_str());
  }

  static void tell(const MemoryChange& change, EventSink& sink) {
    static const std::array metrics = [] {
      std::array<MetricId, kMemoryMetrics> ids{};
      for (size_t i = 0; i < kMemoryMetrics; ++i)
        ids[i] = MetricNames::instance().intern(kMetrics[i].first, kMetrics[i].second, MetricKind::Inclusive, false);
      return ids;
    }();
    ArrivedValue value;
    value.target.shadow = change.nodes.shadow;
    value.target.python = change.nodes.python;
    value.target.mask = static_cast<uint16_t>(1u << change.phase);
    value.target.metric = metrics[static_cast<size_t>(change.metric)];
    value.target.is_float = false;
    value.bits = static_cast<uint64_t>(change.delta);
    if (value.target.metric != MetricId::None) sink.take(value);
  }

  const Tracks& tracks_of(uint32_t device, EventSink& sink) {
    const auto [entry, is_new] = tracks_.try_emplace(device);
    if (is_new)
      entry->second = {sink.add_counter("memory allocated", "B", device),
                       sink.add_counter("memory reserved", "B", device)};
    return entry->second;
  }

  std::atomic<bool> is_wanted_{false};
  std::mutex follow_mutex_;
  uint64_t looked_at_ = 0;  // so many libraries had been loaded when the allocator's was looked for
  std::atomic<bool> is_replaced_{false};
  const ContextNodes unknown_ = unknown();
  mutable std::mutex mutex_;  // of the two below
  HeldMemory held_{unknown_};
  std::string reason_;
  // Consumer side.
  std::vector<MemoryChange> changes_;
  std::vector<MemoryPoint> points_;
  std::map<uint32_t, Tracks> tracks_;
};

MemorySource& only_source() {
  static MemorySource& source = *new MemorySource;  // PyTorch frees blocks during static destruction
  return source;
}

// What it calls may throw.
void report_block(void* block, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device) {
  const bool is_of_gpu = device.type == kCudaType || device.type == kHipType;
  if (is_of_gpu && is_followed.load(std::memory_order_relaxed))
    only_source().note(block, bytes, allocated, reserved, device);
  reinterpret_cast<Report*>(torch_report.load(std::memory_order_relaxed))(block, bytes, allocated, reserved, device);
}

}  // namespace

EventSource& memory_source() { return only_source(); }

}  // namespace bragg
