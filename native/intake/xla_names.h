// What XLA says in the ranges of its domain `TSL`:
//   XlaModule:#prefix=...,hlo_module=jit_f,program_id=1988#
//   Thunk:#name=jit(f)/transpose(jvp(jit(f)))/layer1/transpose,hlo_op=gemm_fusion_dot.1,unique_hlo_op_id=12884901893#
// A name is a path: scopes of the program inside the transformations of JAX, and at last the primitive.
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
  friend bool operator==(const PathFrame&, const PathFrame&) = default;
};

struct Range {
  std::vector<PathFrame> path;  // outermost first; empty: the text is none of these
  std::string source;           // file:line, when XLA is asked for it (--xla_gpu_trace_annotation_level=1)
};

// A module is an operator. A thunk is its scopes, `[backward]` if JAX transposed it, its primitive and its HLO
// operation.
[[nodiscard]] Range parse_range(std::string_view text);

// Whether ranges are read like this from now on. Threads: any.
inline constinit std::atomic<bool> is_wanted{false};

}  // namespace bragg::xla
