// Call frame instructions of DWARF, executed until the row of one address.
#pragma once

#include <cstdint>

#include "symbols/unwind_table.h"

namespace bragg {

// What functions have in common.
struct CommonEntry {
  UnwindRegisters registers = kOwnRegisters;
  Bytes instructions = {};
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t encoding = 0;  // of addresses
  bool has_augmentation = false;
  bool is_signal_frame = false;
};

// The rule at `pc` of the function that begins at `start`. Throws BadBytes.
[[nodiscard]] UnwindRule read_row(const CommonEntry& common, Bytes function_instructions, uint64_t start, uint64_t pc);

}  // namespace bragg
