// CUPTI's SASS metrics around one launch of a CUDA context: how often each instruction of the kernel was executed.
//
// CUPTI patches the kernel's code while it counts; the launch runs once, many times as long. Kernels are patched at
// their first launch in the range, so that others stay as they are. Counts are flushed before the range ends. Seen with
// CUPTI 13.0 on an H200: where the launch is to have a record, all counts are 0; where none of kernels was wanted when
// the kernel was loaded, only its first launch is counted; records cannot be wanted while a range lasts; who has unset
// a configuration cannot enable another one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/counters/profiler_host.h"
#include "backends/cuda/cuda.h"
#include "backends/instruction_samples.h"

namespace bragg {

// Threads: one at a time; `begin` and `end` on the thread that launches, within the driver's call.
class InstructionCounter {
 public:
  InstructionCounter(const SassMetricsLibrary& library, cuda::Context context, uint32_t device)
      : library_(library), context_(context), device_(device), host_(library.host, cupti::ProfilerType::Range) {}
  ~InstructionCounter() { close(); }
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  // Whether a name of CUPTI is a metric of this kind.
  [[nodiscard]] static bool counts(std::string_view metric);
  // Those that this chip has; the others go to `left_out`.
  [[nodiscard]] CuptiFailure choose(const std::vector<std::string>& metrics, std::vector<std::string>& left_out);
  [[nodiscard]] bool has_metrics() const { return !configs_.empty(); }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // What the context launches from now on is counted.
  [[nodiscard]] CuptiFailure begin();
  // Waits for the launch. A count of each metric and executed instruction; `reason` is the metric.
  [[nodiscard]] CuptiFailure end(std::vector<PcSample>& counts);
  void close();

 private:
  [[nodiscard]] CuptiFailure flush(std::vector<PcSample>& counts);
  void disable();

  const SassMetricsLibrary& library_;
  cuda::Context context_;
  uint32_t device_;
  ProfilerHost host_;
  std::vector<std::string> names_;
  std::vector<cupti::SassMetricConfig> configs_;  // CUPTI may keep a pointer to them
  std::vector<StringId> metrics_;                 // of each
  bool is_configured_ = false;
  bool is_enabled_ = false;
  std::optional<cuda_backend::NoKernelRecords> no_records_;  // of the launch
};

}  // namespace bragg
