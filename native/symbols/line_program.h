// The line tables of DWARF 2 to 5, with the call sites of inlined functions as ptxas adds them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/byte_cursor.h"

namespace bragg {

struct LineProgramRow {
  uint64_t address = 0;
  uint64_t origin = 0;    // where in the section the operand stands that the address counts from; relocations name it
  uint32_t file = 0;      // index into the unit's files
  uint32_t line = 0;      // 0 after the last instruction
  uint32_t call_row = 0;  // 1 + index of the row of this sequence that called; 0: not inlined
  uint32_t function = 0;  // of an inlined function: its name's offset in the unit's names
};

// Rows in program order; addresses ascend in each sequence of a file that compilers wrote.
struct LineUnit {
  std::vector<std::string> files;
  uint64_t names_at = 0;  // where in .debug_str the names of inlined functions of this unit begin
  std::vector<std::vector<LineProgramRow>> sequences;
};

// Strings of names in headers of DWARF 5; empty where the file has none.
struct LineStrings {
  Bytes debug_str, debug_line_str;
};

// Throws BadBytes.
[[nodiscard]] std::vector<LineUnit> read_line_section(Bytes section, const LineStrings& strings);

}  // namespace bragg
