// Raw activity buffers as files, so that what a GPU delivered once can be walked again without one.
//
//   0  "BRGBUF1\0"   8  u32 cupti_version   12  u32 buffer_bytes   16  u32 names_bytes   20  zeros to 64
//   64 the buffer; a kernel record's name pointer is 1 + its offset in the names, 0 for none
//   .. the names, each ended by a NUL
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bragg {

// `buffer` is left as it was. An unwritable directory loses the dump only.
void dump_buffer(const std::string& directory, std::span<uint8_t> buffer, uint32_t cupti_version);

struct DumpedBuffer {
  uint32_t cupti_version = 0;
  std::vector<uint8_t> bytes;
  std::vector<char> names;  // the name pointers in `bytes` point here
};

// Empty bytes if the file is not a dump.
[[nodiscard]] DumpedBuffer read_dumped_buffer(const std::string& path);

}  // namespace bragg
