"""Environment variables that carry a recording into a process; ARCHITECTURE.md says what each one means."""

from __future__ import annotations

CAPTURE_DIR = "BRAGG_CAPTURE_DIR"
OPTIONS = "BRAGG_OPTIONS"
OPERATORS = "BRAGG_OPERATORS"
CORE_DIR = "BRAGG_CORE_DIR"
CUPTI_PATHS = "BRAGG_CUPTI_PATHS"
CUPTI_DIR = "BRAGG_CUPTI_DIR"
CUPTI_SHARED = "BRAGG_CUPTI_SHARED"  # read by the core, too
NVTX = "BRAGG_NVTX"

# Injection variables of other software, through which a process loads the native core; each admits one tool.
CUDA_INJECTION = "CUDA_INJECTION64_PATH"
ITT_COLLECTOR = "INTEL_LIBITTNOTIFY64"
NVTX_INJECTION = "NVTX_INJECTION64_PATH"
NCCL_PROFILER = "NCCL_PROFILER_PLUGIN"

# Triton's own switch for the ranges of its profiler.
TRITON_NVTX = "TRITON_ENABLE_NVTX"
