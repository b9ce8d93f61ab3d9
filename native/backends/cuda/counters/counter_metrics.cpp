#include "backends/cuda/counters/counter_metrics.h"

#include <algorithm>
#include <cstdint>

namespace bragg {
namespace {

#define OF_PEAK ".avg.pct_of_peak_sustained_elapsed"

template <class Visit>
void for_each_part(std::string_view text, char separator, Visit&& visit) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    if (!part.empty()) visit(part);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
}

bool is_in(std::string_view set, std::string_view sets) {
  bool found = false;
  for_each_part(sets, ' ', [&](std::string_view each) { found = found || each == set; });
  return found;
}

Counter of_cupti(std::string_view name) {
  const bool adds_up = name.ends_with(".sum");
  const std::string_view unit = adds_up ? "1/s" : name.find(".pct") != name.npos ? "%" : "";
  return {std::string(name),     std::string(unit), adds_up ? CounterScale::PerSecond : CounterScale::AsIs,
          {{std::string(name)}}, std::string(name), ""};
}

}  // namespace

bool are_right_together(const Counter& one, const Counter& other) {
  return one.unit_counted == other.unit_counted || one.unit_counted == CountedUnit::Any ||
         other.unit_counted == CountedUnit::Any;
}

// All of them fit one pass on GH100, GB100, AD102 and GB202 (CUPTI 13.0; those of `default` from 12.9 to 13.1). 12.6
// and 12.8 know no bytes of DRAM on GH100, only shares of its peak.
const std::vector<NamedCounter>& named_counters() {
  using enum CounterScale;
  using enum CountedUnit;
  static const std::vector<NamedCounter>& table = *new std::vector<NamedCounter>{
      {"dram_read",
       "default dram l2 units",
       {"DRAM read",
        "B/s",
        PerSecond,
        {{"dram__bytes_read.sum"}, {"dram__bytes_op_read.sum"}},
        "dram_read_bytes",
        "dram"}},
      {"dram_write",
       "default dram l2 units",
       {"DRAM write",
        "B/s",
        PerSecond,
        {{"dram__bytes_write.sum"}, {"dram__bytes_op_write.sum"}},
        "dram_write_bytes",
        "dram"}},
      {"tensor_active",
       "default tensor",
       {"tensor pipe active",
        "%",
        AsIs,
        {{"sm__pipe_tensor_cycles_active_realtime" OF_PEAK}, {"sm__pipe_tensor_cycles_active" OF_PEAK}},
        "tensor_active_time",
        "tensor_active",
        Multiprocessors}},
      {"sm_active",
       "default tensor",
       {"SM active",
        "%",
        PercentOfSecond,
        {{"sm__cycles_active.avg", "sm__cycles_elapsed.avg"}},
        "sm_active_time",
        "sm_active",
        Multiprocessors}},
      {"occupancy",
       "default",
       {"warps active",
        "%",
        AsIs,
        {{"tpc__warps_active_shader_cs_realtime" OF_PEAK},
         {"TPC.TriageCompute.tpc__warps_active_shader_cs_realtime" OF_PEAK},
         {"sm__warps_active" OF_PEAK}},
        "occupancy_time",
        "occupancy",
        Multiprocessors}},
      {"instructions",
       "default",
       {"instructions",
        "1/s",
        PerSecond,
        {{"sm__inst_executed_realtime.sum"}, {"sm__inst_executed.sum"}},
        "gpu_instructions",
        "gpu_instructions",
        Multiprocessors}},
      {"gpc_clock", "default", {"GPC clock", "Hz", AsIs, {{"gpc__cycles_elapsed.avg.per_second"}}, "gpc_clock", ""}},
      {"l2_busy",
       "l2 units",
       {"L2 busy",
        "%",
        AsIs,
        {{"LTS.TriageCompute.lts__throughput" OF_PEAK}, {"lts__t_sectors" OF_PEAK}},
        "l2_busy_time",
        "l2_busy"}},
      {"l1_busy",
       "units",
       {"L1 busy", "%", AsIs, {{"SM_A.TriageCompute.l1tex__throughput" OF_PEAK}}, "l1_busy_time", "l1_busy", L2}},
      {"pipe_busy",
       "units",
       {"pipe busy", "%", AsIs, {{"TriageCompute.sm__throughput" OF_PEAK}}, "pipe_busy_time", "pipe_busy", L2}},
      {"l2_sectors", "l2", {"L2 sectors", "1/s", PerSecond, {{"lts__t_sectors.sum"}}, "l2_sectors", "l2", L2}},
      {"l2_hit_rate",
       "l2",
       {"L2 hit rate",
        "",
        AsIs,
        {{"LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.ratio"},
         {"lts__average_t_sector_hit_rate_realtime.ratio"}},
        "l2_hit_rate",
        "",
        L2}},
      {"nvlink_receive",
       "nvlink",
       {"NVLink receive", "B/s", PerSecond, {{"nvlrx__bytes.sum"}}, "nvlink_receive_bytes", "nvlink"}},
      {"nvlink_send",
       "nvlink",
       {"NVLink send", "B/s", PerSecond, {{"nvltx__bytes.sum"}}, "nvlink_send_bytes", "nvlink"}},
      {"pcie_read",
       "pcie",
       {"PCIe read",
        "B/s",
        PerSecond,
        {{"pcie__read_bytes.sum"}, {"PCI.TriageCompute.pcie__read_bytes.sum"}},
        "pcie_read_bytes",
        "pcie"}},
      {"pcie_write",
       "pcie",
       {"PCIe write",
        "B/s",
        PerSecond,
        {{"pcie__write_bytes.sum"}, {"PCI.TriageCompute.pcie__write_bytes.sum"}},
        "pcie_write_bytes",
        "pcie"}},
  };
  return table;
}

std::vector<Counter> counters_of(std::string_view wanted) {
  std::vector<Counter> chosen;
  const auto add = [&](const Counter& counter) {
    if (std::ranges::find(chosen, counter.track, &Counter::track) == chosen.end()) chosen.push_back(counter);
  };
  for_each_part(wanted, ',', [&](std::string_view name) {
    bool is_known = false;
    for (const NamedCounter& row : named_counters()) {
      if (row.name != name && !is_in(name, row.sets)) continue;
      is_known = true;
      add(row.counter);
    }
    if (!is_known) add(of_cupti(name));
  });
  return chosen;
}

double counter_value(CounterScale scale, std::span<const double> metrics, double seconds) {
  switch (scale) {
    case CounterScale::PerSecond:
      return metrics[0] / seconds;
    case CounterScale::PercentOfSecond:
      return metrics[1] > 0 ? 100 * metrics[0] / metrics[1] : 0;
    case CounterScale::AsIs:
      break;
  }
  return metrics[0];
}

}  // namespace bragg
