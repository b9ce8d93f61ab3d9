// Where a function keeps what its caller needs, from the tables for C++ exceptions (.eh_frame) of a loaded library.
#pragma once

#include <cstdint>

#include "symbols/byte_cursor.h"

namespace bragg {

// Numbers of registers in the tables of a processor. Source: System V ABI, AMD64 supplement; DWARF for the Arm 64-bit
// Architecture.
struct UnwindRegisters {
  uint64_t frame_pointer;
  uint64_t stack_pointer;
  uint64_t return_address;
  bool has_link;  // a call leaves the return address in a register, and not on the stack
};
inline constexpr UnwindRegisters kX86Registers{6, 7, 16, false};
inline constexpr UnwindRegisters kArmRegisters{29, 31, 30, true};
#if defined(__aarch64__)
inline constexpr UnwindRegisters kOwnRegisters = kArmRegisters;
#else
inline constexpr UnwindRegisters kOwnRegisters = kX86Registers;
#endif

// What an address is counted from. CFA: the stack pointer of the caller, once the call has returned. Link: from
// nothing, it is in the link register.
enum class UnwindBase : uint8_t { Unknown, StackPointer, FramePointer, Cfa, Link };

struct SavedAt {
  UnwindBase base = UnwindBase::Unknown;
  int32_t offset = 0;
  [[nodiscard]] bool is_in_memory() const { return base != UnwindBase::Unknown && base != UnwindBase::Link; }
  friend bool operator==(const SavedAt&, const SavedAt&) = default;
};

// How to get from a frame to its caller's, at one instruction.
struct UnwindRule {
  SavedAt cfa;                   // unknown: it is not told
  bool cfa_is_stored = false;    // `cfa` is where the CFA is kept, and not the CFA itself
  SavedAt return_address;        // unknown: the frame has no caller
  SavedAt frame_pointer;         // unknown: it still has the caller's
  bool is_signal_frame = false;  // the caller was interrupted, and did not call
  uint64_t function = 0;         // address of the first instruction that the table describes together with this one

  [[nodiscard]] bool is_known() const { return cfa.base != UnwindBase::Unknown; }
};

// The part of a loaded library that has its tables.
struct UnwindTable {
  Bytes segment;         // readable memory
  uint64_t address = 0;  // where the segment begins
  uint64_t header = 0;   // address of .eh_frame_hdr, within the segment
  UnwindRegisters registers = kOwnRegisters;
};

// Threads: any. Not known where the table is damaged, does not cover `pc`, or is written in a form that compilers do
// not use.
[[nodiscard]] UnwindRule find_unwind_rule(const UnwindTable& table, uint64_t pc) noexcept;

}  // namespace bragg
