// Names and lines of code objects, read from their memory without the GIL.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "context/python_frames.h"

namespace bragg {

struct CodeLocation {
  std::string qualified_name;  // the plain name before 3.11
  std::string file;
  int line = 0;  // 0: the instruction has none
};

// Threads: any, as long as `frame.code` is alive. UTF-8; a lone surrogate (an undecodable byte of a file name) becomes
// U+FFFD. Empty when no layout is set.
[[nodiscard, gnu::visibility("default")]] CodeLocation describe(const RawFrame& frame);

// The line alone.
[[nodiscard, gnu::visibility("default")]] int line_of(const RawFrame& frame) noexcept;

// How a code object maps instructions to lines.
enum class LineTableFormat {
  LineDeltas,      // 3.10: pairs of u8 bytes covered, i8 line delta (-128: no line)
  LocationEntries  // 3.11 on: see location_line
};

// Line of the instruction at `offset` bytes; 0 if it has none, lies past the table, or the table is damaged.
[[nodiscard]] int line_at(std::span<const uint8_t> table, LineTableFormat format, int first_line,
                          uint32_t offset) noexcept;

}  // namespace bragg
