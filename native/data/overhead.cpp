#include "data/overhead.h"

#include <array>
#include <atomic>
#include <string_view>

#include "backends/record_cost.h"
#include "data/json.h"
#include "data/phase.h"

namespace bragg {
namespace {

constexpr std::array<std::string_view, kCostParts> kNames{"launches", "operators", "scopes",
                                                          "samples",  "values",    "api_calls"};
constinit std::array<std::atomic<uint32_t>, kCostParts> beside_ns{};

}  // namespace

void set_cost_beside(CostPart part, uint32_t ns_per_call) noexcept {
  beside_ns[static_cast<size_t>(part)].store(ns_per_call, std::memory_order_relaxed);
}

std::string overhead_json(const Phase& phase, const ThreadTotals& now, uint64_t gpu_fed_ns) {
  const ThreadTotals& before = phase.before;
  const PhaseCounters& counters = phase.counters;
  const CostTotals cost = now.cost.since(before.cost);
  const uint64_t n_records = counters.kernels + counters.copies + counters.sets;
  JsonObject json;
  json.put("work_ns", phase.work.total_ns()).put("gpu_fed_ns", gpu_fed_ns);
  if (phase.ready_before_work_ns)
    json.put("work_ready_ns", static_cast<uint64_t>(now.cpu.main_ready_ns - *phase.ready_before_work_ns));
  for (size_t i = 0; i < kCostParts; ++i) {
    const uint64_t calls = cost.parts[i].calls();
    const uint64_t ns = cost.parts[i].ns();
    if (ns == 0) continue;
    const uint64_t beside = beside_ns[i].load(std::memory_order_relaxed);
    const std::string name(kNames[i]);
    json.put(name + "_calls", calls);
    json.put(name + "_ns", ns + calls * beside);
    if (static_cast<CostPart>(i) == CostPart::Operators && beside == 0) json.put("uncalibrated_operators", calls);
  }
  if (cost.waits_ns != 0) json.put("waits_ns", cost.waits_ns);
  if (n_records != 0) {
    const uint64_t each_ns = launch_record_ns(cost.parts[static_cast<size_t>(CostPart::Launches)]);
    json.put("records_calls", counters.launches).put("records_ns", counters.launches * each_ns);
    json.put("gpu_records_calls", n_records).put("gpu_records_ns", n_records * kGpuRecordNs);
  }
  const CpuTimes spent{now.cpu.recorder_ns - before.cpu.recorder_ns, now.cpu.process_ns - before.cpu.process_ns};
  const auto elapsed_ns = static_cast<uint64_t>(std::max<int64_t>(now.cpu_at_ns - phase.started_ns(), 0));
  json.put("recorder_cpu_ns", spent.recorder_ns);
  json.put("recorder_ns", taken_from_program_ns(spent, elapsed_ns, usable_cores()));
  return json.text();
}

}  // namespace bragg
