// The C and C++ call path of the calling thread: its own stack, read by the rules of the tables for exceptions.
//
// Threads: any, each for itself. Takes a lock for instructions that this thread has not met, none for others.
#pragma once

#include <array>
#include <cstdint>

#include "context/hash.h"
#include "context/loaded_code.h"

namespace bragg {

struct Registers {
  uint64_t instruction;
  uint64_t stack;
  uint64_t frame;
  uint64_t link = 0;  // where a call leaves the return address, if that is a register; 0: overwritten since
};

#if defined(__x86_64__)
inline constexpr bool kCanUnwind = true;

[[gnu::always_inline]] inline Registers registers_here() noexcept {
  Registers registers;
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=&r"(registers.instruction), "=&r"(registers.stack), "=&r"(registers.frame));
  return registers;
}

inline uint64_t without_signature(uint64_t return_address) noexcept { return return_address; }
#elif defined(__aarch64__)
inline constexpr bool kCanUnwind = true;

[[gnu::always_inline]] inline Registers registers_here() noexcept {
  Registers registers;
  asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
               : "=&r"(registers.instruction), "=&r"(registers.stack), "=&r"(registers.frame), "=&r"(registers.link));
  return registers;
}

// xpaclri, which does nothing on processors that sign no pointers.
inline uint64_t without_signature(uint64_t return_address) noexcept {
  register uint64_t link asm("x30") = return_address;
  asm("hint #7" : "+r"(link));
  return link;
}
#else
inline constexpr bool kCanUnwind = false;

inline Registers registers_here() noexcept { return {}; }

inline uint64_t without_signature(uint64_t return_address) noexcept { return return_address; }
#endif

struct NativeFrame {
  FrameId frame;      // None: not shown
  uint64_t cfa;       // the stack pointer of its caller: what the function keeps on the stack is below
  uint64_t function;  // its address
  CodeOwner owner;
};

// What a thread knows of instructions; emptied when a library is loaded or unloaded.
class CodeCache {
 public:
  [[nodiscard]] const CodePlace& find(uint64_t pc) noexcept {
    if (const uint32_t epoch = LoadedCode::epoch(); epoch != epoch_) forget(epoch);
    Entry& entry = entries_[spread(pc) >> (64 - kBits)];
    if (entry.pc != pc) entry = {pc, LoadedCode::instance().find(pc)};
    return entry.place;
  }

 private:
  static constexpr uint32_t kBits = 11;  // 2048 instructions, 112 KB: a step of a model meets some hundreds
  struct Entry {
    uint64_t pc = 0;
    CodePlace place;
  };
  void forget(uint32_t epoch) noexcept {
    entries_.fill({});
    epoch_ = epoch;
  }

  uint32_t epoch_ = 0;
  std::array<Entry, 1u << kBits> entries_;
};

// The calling thread's own.
struct ThreadStack {
  uint64_t begin = 0;
  uint64_t end = 0;  // 0: not known
  // 0: it is on another one, of a signal handler or a coroutine, beyond which memory may be missing.
  [[nodiscard]] uint64_t end_for(uint64_t stack_pointer) const noexcept {
    return stack_pointer >= begin && stack_pointer < end ? end : 0;
  }
};
[[nodiscard]] ThreadStack find_stack() noexcept;

// Innermost frame first: the one that `registers` are of.
class NativeFrameIterator {
 public:
  NativeFrameIterator(CodeCache& code, Registers registers, uint64_t stack_end) noexcept
      : code_(code), registers_(registers), stack_begin_(registers.stack), stack_end_(stack_end) {}

  // False at the outermost frame, and where the caller cannot be found: code without tables, a damaged stack.
  [[nodiscard]] bool next(NativeFrame& out) noexcept;
  // The outermost frame was given.
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }

 private:
  [[nodiscard]] bool load(uint64_t address, uint64_t& value) const noexcept;
  [[nodiscard]] bool resolve(const SavedAt& place, uint64_t cfa, uint64_t& address) const noexcept;
  [[nodiscard]] bool read_return_address(const UnwindRule& rule, uint64_t cfa, uint64_t& address) const noexcept;
  [[nodiscard]] bool step(const UnwindRule& rule, uint64_t& cfa) noexcept;

  CodeCache& code_;
  Registers registers_;
  uint64_t stack_begin_;
  uint64_t stack_end_;
  bool was_interrupted_ = true;  // the instruction is the next one, and not behind a call
  bool is_over_ = false;
};

}  // namespace bragg
