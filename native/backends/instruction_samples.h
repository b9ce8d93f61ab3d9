// Samples of the instructions that a device runs, as any source tells them.
#pragma once

#include <cstdint>

#include "context/event.h"
#include "context/frame_table.h"

namespace bragg {

enum class SamplingMode : uint8_t { Off, Continuous, Windows, Serialized };

struct SamplingOptions {
  SamplingMode mode = SamplingMode::Off;
  uint32_t period = 0;   // 2^n cycles; 0: the source's choice
  double budget = 0.03;  // share of the program's time that windows may cost
};

// How often an instruction was seen with one stall reason.
struct PcSample {
  uint64_t cubin_crc = 0;
  StringId function = StringId::None;  // symbol of the kernel
  StringId reason = StringId::None;    // the vendor's name
  uint32_t pc_offset = 0;
  CorrelationId correlation = CorrelationId::None;  // None: launch not known
  uint64_t count = 0;
};

// How often an instruction was executed, of one launch: `instruction.reason` is what was counted, by the vendor's name.
struct InstructionCount {
  ContextNodes kernel;
  SessionMask mask = 0;
  PcSample instruction;
};

}  // namespace bragg
