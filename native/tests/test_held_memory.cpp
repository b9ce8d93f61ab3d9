// Who holds the memory of a GPU, from events as PyTorch's allocator tells them, and from the fake allocator itself.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "backends/gpu_memory/held_memory.h"
#include "backends/gpu_memory/imported_function.h"
#include "check.h"

namespace {

using bragg::ContextNodes;
using bragg::HeldMemory;
using bragg::MemoryMetric;
using bragg::NodeId;

constexpr uint32_t kPhase = 3;
constexpr int64_t kMs = 1'000'000;

ContextNodes at(uint32_t node) { return {NodeId{node}, NodeId{node}}; }

// An allocator of one GPU.
class Program {
 public:
  Program() { held.begin_phase(kPhase, kMs); }

  void allocate(uint64_t address, int64_t bytes, uint32_t node) {
    allocated_ += static_cast<uint64_t>(bytes);
    reserved_ = std::max(reserved_, allocated_);
    sizes_[address] = bytes;
    tell(address, bytes, node);
  }
  void free(uint64_t address) {
    allocated_ -= static_cast<uint64_t>(sizes_[address]);
    tell(address, -sizes_[address], 0);
  }
  void tell(uint64_t address, int64_t bytes, uint32_t node) {
    held.take({0, address, bytes, allocated_, reserved_, at(node), time_ns += kMs});
  }
  void begin_with(uint64_t allocated) { allocated_ = reserved_ = allocated; }

  // By node, what was told of a metric so far.
  std::map<uint32_t, int64_t>& told(MemoryMetric metric) {
    for (const bragg::MemoryChange& change : held.take_changes())
      if ((told_[change.metric][number_of(change.nodes.shadow)] += change.delta) == 0)
        told_[change.metric].erase(number_of(change.nodes.shadow));
    return told_[metric];
  }

  HeldMemory held{at(99)};
  int64_t time_ns = 0;

 private:
  std::map<uint64_t, int64_t> sizes_;
  std::map<MemoryMetric, std::map<uint32_t, int64_t>> told_;
  uint64_t allocated_ = 0, reserved_ = 0;
};

using ByNode = std::map<uint32_t, int64_t>;

TEST(memory_that_the_allocator_kept_from_before_is_not_charged_to_the_first_block) {
  const auto first_block = [](int64_t bytes, uint64_t reserved) {
    Program program;
    program.held.take({0, 1, bytes, static_cast<uint64_t>(bytes), reserved, at(10), kMs});
    return program.told(MemoryMetric::Reserved);
  };
  constexpr uint64_t kMib = 1 << 20;
  CHECK(first_block(1024, 64 * kMib).empty());
  CHECK(first_block(1024, 2 * kMib) == (ByNode{{10, 2 * kMib}}));
  CHECK(first_block(5 * kMib, 20 * kMib) == (ByNode{{10, 20 * kMib}}));
  CHECK(first_block(33 * kMib, 34 * kMib) == (ByNode{{10, 34 * kMib}}));
}

TEST(the_peak_is_told_by_who_holds_it_then) {
  Program program;
  program.allocate(1, 100, 10);
  program.allocate(2, 50, 20);
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{10, 100}, {20, 50}}));
  program.free(1);
  program.allocate(3, 30, 30);
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{10, 100}, {20, 50}}));
  program.allocate(4, 120, 20);  // 200 now
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{20, 170}, {30, 30}}));
  program.free(4);
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{20, 170}, {30, 30}}));
  CHECK(program.told(MemoryMetric::End) == (ByNode{{20, 50}, {30, 30}}));
  CHECK(program.told(MemoryMetric::Reservations) == (ByNode{{10, 1}, {20, 2}}));
  CHECK(program.told(MemoryMetric::Reserved) == (ByNode{{10, 100}, {20, 100}}));
}

TEST(memory_of_before_is_nobodys_and_sums_stay_right) {
  Program program;
  program.begin_with(1000);
  program.allocate(1, 100, 10);
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{10, 100}, {99, 1000}}));
  CHECK(program.told(MemoryMetric::Reservations).empty() ||
        program.told(MemoryMetric::Reservations) == (ByNode{{10, 1}}));
  program.begin_with(700);
  program.tell(77, -400, 0);  // one of before
  CHECK(program.told(MemoryMetric::End) == (ByNode{{10, 100}, {99, 600}}));
}

TEST(a_phase_begins_with_what_is_held_and_has_a_peak_of_its_own) {
  Program program;
  program.allocate(1, 500, 10);
  program.free(1);
  program.allocate(2, 50, 20);
  program.held.begin_phase(4, program.time_ns);
  program.held.end_phase(kPhase);
  program.allocate(3, 40, 30);
  std::map<uint32_t, ByNode> peaks;
  for (const auto& change : program.held.take_changes())
    if (change.metric == MemoryMetric::Peak) peaks[change.phase][number_of(change.nodes.shadow)] += change.delta;
  CHECK(peaks[kPhase] == (ByNode{{10, 500}}));
  CHECK(peaks[4] == (ByNode{{20, 50}, {30, 40}}));
  bragg::JsonObject json;
  program.held.describe(json, 4);
  CHECK(json.text().find("\"peak_bytes\":90,") != std::string::npos);
}

TEST(points_of_the_timeline_are_few_and_never_miss_the_highest_or_the_last) {
  Program program;
  for (uint64_t i = 0; i < 1000; ++i) {
    program.allocate(i, 10, 10);
    program.free(i);
    program.time_ns -= 2 * kMs - 1000;  // 1 us for both
  }
  program.allocate(5000, 7, 10);
  const auto points = program.held.take_points(program.time_ns + kMs);
  CHECK(points.size() < 20u);
  CHECK_EQ(points.front().allocated, 10u);
  CHECK_EQ(points.back().allocated, 7u);
}

TEST(a_curve_keeps_its_extremes_while_it_is_folded) {
  bragg::MemoryCurve curve;
  uint64_t before = 0;
  for (int64_t ms = 0; ms < 5000; ++ms) {
    const uint64_t now = ms == 1234 ? 999 : 100 + static_cast<uint64_t>(ms % 7);
    curve.take(kMs * (ms + 1), before, now, 2000);
    before = now;
  }
  const std::string json = curve.json();
  CHECK(json.find("999") != std::string::npos);
  CHECK(std::count(json.begin(), json.end(), ',') < 3 * 512);
}

std::atomic<void*> original{nullptr};
std::atomic<uint64_t> seen{0};

struct Device {
  int8_t type, index;
};

void replacement(void* block, int64_t bytes, size_t allocated, size_t reserved, Device device) {
  seen += device.type == 1 && device.index == 5 && reserved == 2u << 20 && allocated <= 1024 ? 1 : 100;
  reinterpret_cast<decltype(&replacement)>(original.load())(block, bytes, allocated, reserved, device);
}

TEST(a_function_that_a_library_imports_is_replaced_bound_lazily_or_in_a_read_only_table) {
  for (const char* name : {"libc10_cuda.so", "libc10_hip.so"}) {
    const std::string path = std::string(BRAGG_FAKES_DIR "/torch/") + name;
    constexpr const char* kSymbol = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
    CHECK(!bragg::replace_imported_function(path, kSymbol, nullptr, original));  // not loaded
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    CHECK(library != nullptr);
    CHECK(!bragg::replace_imported_function(path, "nobody_calls_it", nullptr, original));
    CHECK(bragg::replace_imported_function(path, kSymbol, reinterpret_cast<void*>(&replacement), original));
    const auto function = [&]<class F>(F*, const char* symbol) { return reinterpret_cast<F*>(dlsym(library, symbol)); };
    const auto allocate = function(static_cast<uint64_t (*)(size_t, int)>(nullptr), "fake_allocate");
    const auto free = function(static_cast<void (*)(uint64_t, int)>(nullptr), "fake_free");
    const auto reports = function(static_cast<uint64_t (*)()>(nullptr), "fake_reports");
    const uint64_t before = reports();
    seen = 0;
    free(allocate(1000, 5), 5);
    CHECK_EQ(seen.load(), 2u);
    CHECK_EQ(reports() - before, 2u);
  }
}

}  // namespace
