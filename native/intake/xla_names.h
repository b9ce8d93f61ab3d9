// What XLA says in the ranges of its domain `TSL`, which end in pairs of keys and values:
//   XlaModule:#prefix=jit(f)/layer1,hlo_module=jit_f,program_id=1988#, which names of its operations leave out
//   Thunk:#name=jit(f)/transpose(jvp(jit(f)))/layer1/transpose,hlo_op=gemm_fusion_dot.1,unique_hlo_op_id=12884901893#
//   XlaCompile:#module=jit_f#
//   XlaPass:#name=config-assigner,module=jit_f,program_id=1988#
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "context/frame_table.h"

namespace bragg::xla {

inline constexpr std::string_view kDomain = "TSL";

struct PathFrame {
  FrameKind kind;
  std::string name;
  std::string_view role{};  // the attribute that tells readers what it is; empty: its name does
  friend bool operator==(const PathFrame&, const PathFrame&) = default;
};

struct Range {
  std::vector<PathFrame> path{};  // outermost first; empty: the text is none of these, unless it is a detail
  std::string source{};           // file:line, when XLA is asked for it (--xla_gpu_trace_annotation_level=1)
  bool is_detail = false;         // one of the hundreds of steps of a compilation, or what ranges carry: not kept
};

// A module and an operation are operators, as is the path of its names that an operation stands for; readers of
// captures split it. Of a compilation there are the whole, its autotuning and its code generation.
[[nodiscard]] Range parse_range(std::string_view text);

// Whether ranges are read like this from now on. Threads: any.
inline constinit std::atomic<bool> is_wanted{false};

}  // namespace bragg::xla
