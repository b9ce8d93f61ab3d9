// The keyword arguments that a session is made with.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "api/bragg_core.h"

namespace bragg {

struct SessionOptions {
  // Raises TypeError: one is missing, is of another type or not known; ValueError: it has no such choice.
  [[nodiscard]] static SessionOptions read(const std::string& part_path, const nanobind::kwargs& given);

  // The same for the core; valid as long as these are.
  [[nodiscard]] bragg_session_options native() const;

  std::string part_path;
  int backend = BRAGG_AUTO;
  int context = 0;  // 0 shadow, 1 python, 2 native
  int data = 0;     // 0 tree, 1 trace
  int graphs = 0;   // 0 node, 1 graph
  int gpu_api = BRAGG_GPU_API_OFF;
  uint32_t flush_interval_ms = 1000;
  uint32_t tree_limit_mb = 0;
  uint32_t rotate_interval_ms = 0;
  uint32_t sample_interval_us = 0;
  int sampling = BRAGG_SAMPLE_OFF;
  uint32_t sample_period = 0;
  double sample_budget = 0.03;
  std::string meta = "{}";
  std::string cupti_candidates;  // ':'-separated
};

// As the core takes lists of paths.
[[nodiscard]] std::string join_paths(const std::vector<std::string>& paths);

}  // namespace bragg
