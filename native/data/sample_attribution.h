// Which launches instruction samples belong to. The hardware tells a sample's function and instruction; kernel records
// tell which nodes launched that function meanwhile, and for how long it ran.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "backends/instruction_samples.h"
#include "context/calling_context_tree.h"
#include "data/sample_table.h"

namespace bragg {

// A node of one phase.
struct SampleTarget {
  uint32_t slot = 0;
  NodeId node = kRootNode;
  auto operator<=>(const SampleTarget&) const = default;
};

// A kernel that ran.
struct SampledKernel {
  SampleTarget target;
  StringId function = StringId::None;
  uint64_t cubin_crc = 0;                           // 0: not known
  CorrelationId correlation = CorrelationId::None;  // None: its samples do not tell theirs
  // How many samples it gets compared to others of its function: GPU time that was sampled, times multiprocessors.
  double weight = 0;
};

// Threads: consumer only. Samples and records come in batches, late, and not in the same order: a window lasts from one
// `settle` to the next, and what has no kernel in its window is looked for in the one before, else waits for the next.
class SampleAttribution {
 public:
  // `target` nullptr: nobody's.
  using Give = std::function<void(const SampleTarget* target, const Code& code, const PcSample& sample, uint64_t count,
                                  bool is_exact)>;

  void add(const SampledKernel& kernel);
  void add(const PcSample& sample);
  void settle(const Give& give);
  // Hands out what still waits, as nobody's.
  void give_up(const Give& give);
  // The phase in this slot has ended.
  void forget(uint32_t slot);

 private:
  struct Share {
    SampleTarget target;
    double weight;
  };
  using Shares = std::map<SampleTarget, double>;
  struct CodeOrder {
    bool operator()(const Code& a, const Code& b) const {
      return a.function != b.function ? a.function < b.function : a.cubin_crc < b.cubin_crc;
    }
  };
  // By (instruction, reason), so that the order is always the same.
  using Counts = std::map<std::pair<uint32_t, StringId>, uint64_t>;
  struct Serial {
    PcSample sample;
    uint32_t windows = 0;  // that it has waited
  };

  [[nodiscard]] std::vector<Share> shares_of(const Code& code) const;
  [[nodiscard]] const SampleTarget* target_of(CorrelationId correlation) const;
  void settle_serial(const Give& give);

  std::map<Code, Shares, CodeOrder> kernels_;  // of this window
  std::map<Code, Shares, CodeOrder> kernels_before_;
  std::unordered_map<CorrelationId, SampleTarget> launches_;  // serialized: of this window and the one before
  std::unordered_map<CorrelationId, SampleTarget> launches_before_;
  std::map<Code, Counts, CodeOrder> waiting_;
  std::vector<Serial> serial_;
};

}  // namespace bragg
