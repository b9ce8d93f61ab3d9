// Which source lines the instructions of a cubin come from. Needs no CUPTI and no driver.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "symbols/byte_cursor.h"

namespace bragg {

inline constexpr uint32_t kUnknown = 0xFFFFFFFFu;

// A place in the source. Where a function was inlined, `call_site` is where it was called.
struct SourceLocation {
  uint32_t file = kUnknown;  // index into Cubin::names
  uint32_t line = 0;
  uint32_t function = kUnknown;   // that was inlined: index into Cubin::names; a symbol as the compiler writes it
  uint32_t call_site = kUnknown;  // index into Cubin::locations, less than this one's
  auto operator<=>(const SourceLocation&) const = default;
};

// From this offset in the code section on, until the next row.
struct LineRow {
  uint32_t offset_bytes = 0;
  uint32_t location = kUnknown;  // index into Cubin::locations
  [[nodiscard]] bool is_known() const { return location != kUnknown; }
};
struct PtxRow {
  uint32_t offset_bytes = 0;
  uint32_t text = kUnknown;  // index into Cubin::ptx
  uint32_t line = 0;         // of the text, from 1
  [[nodiscard]] bool is_known() const { return text != kUnknown; }
};

// Several functions may share a section: a kernel and what it calls without inlining.
struct CodeSection {
  std::vector<LineRow> lines;     // by offset
  std::vector<PtxRow> ptx_lines;  // by offset
};

struct CubinFunction {
  std::string name;
  uint32_t symbol = 0;  // its number in the symbol table
  uint32_t section = 0;
  uint32_t offset_bytes = 0;  // in the section
  uint32_t size_bytes = 0;
};

struct Cubin {
  std::vector<CubinFunction> functions;  // by symbol number
  std::map<uint32_t, CodeSection> sections;
  std::vector<SourceLocation> locations;
  std::vector<std::string> names;
  std::vector<std::string> ptx;  // without comments and .loc lines, as ptxas keeps it; line numbers are the original's

  // The row of an instruction; nullptr when nothing is known of it. `offset_bytes` counts from the function's start.
  [[nodiscard]] const SourceLocation* find(const CubinFunction& function, uint64_t offset_bytes) const;
};

// Threads: any. Throws BadBytes, which says what is wrong; a cubin without line information is not wrong.
[[nodiscard]] Cubin read_cubin(Bytes file);

}  // namespace bragg
