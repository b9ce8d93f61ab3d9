// Walks of the thread's own stack, through what compilers make of functions.
#include "context/native_frames.h"

#include <alloca.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "context/call_path.h"

namespace {

using bragg::CodeCache;
using bragg::NativeFrame;
using bragg::NativeFrameIterator;
using bragg::Registers;

// Functions that are not over when their call returns, so that none is left by a jump.
#define STAYS asm volatile("" ::: "memory")

struct Walk {
  std::vector<uint64_t> functions;  // innermost first
  std::vector<uint64_t> cfas;
  bool is_over = false;

  [[nodiscard]] bool contains(std::span<const uint64_t> wanted) const {
    return std::search(functions.begin(), functions.end(), wanted.begin(), wanted.end()) != functions.end();
  }
  [[nodiscard]] int64_t count(uint64_t function) const {
    return std::count(functions.begin(), functions.end(), function);
  }
};

template <class Function>
uint64_t address_of(Function* function) {
  return reinterpret_cast<uintptr_t>(function);
}

[[gnu::noinline]] Walk walk() {
  static thread_local CodeCache code;
  const Registers here = bragg::registers_here();
  Walk walk;
  NativeFrameIterator frames(code, here, bragg::find_stack().end_for(here.stack));
  for (NativeFrame frame{}; frames.next(frame);) {
    walk.functions.push_back(frame.function);
    walk.cfas.push_back(frame.cfa);
  }
  walk.is_over = frames.is_over();
  return walk;
}

[[gnu::noinline]] Walk inner() {
  Walk found = walk();
  STAYS;
  return found;
}

[[gnu::noinline]] Walk outer() {
  Walk found = inner();
  STAYS;
  return found;
}

[[gnu::noinline, gnu::noipa]] Walk recursive(int depth) {
  Walk found = depth == 0 ? walk() : recursive(depth - 1);
  STAYS;
  return found;
}

[[gnu::noinline]] Walk with_variable_frame(size_t size) {
  auto* memory = static_cast<char*>(alloca(size));
  std::memset(memory, 1, size);
  Walk found = outer();
  asm volatile("" ::"r"(memory) : "memory");
  return found;
}

[[gnu::noinline]] Walk with_aligned_frame(int value) {
  alignas(128) std::array<int, 64> numbers{};
  numbers.fill(value);
  asm volatile("" ::"r"(numbers.data()) : "memory");
  Walk found = outer();
  asm volatile("" ::"r"(numbers.data()) : "memory");
  return found;
}

Walk before_the_end;

[[noreturn, gnu::noinline]] void ends() {
  before_the_end = walk();
  throw std::runtime_error("the end");
}

// Its last instruction is a call.
[[noreturn, gnu::noinline]] void calls_the_end() { ends(); }

#ifndef __SANITIZE_THREAD__  // which forbids handlers to allocate
Walk in_handler;

void on_signal(int) { in_handler = walk(); }

[[gnu::noinline]] void interrupted() {
  raise(SIGUSR2);
  STAYS;
}

void handle_signal(int flags) {
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = flags;
  sigaction(SIGUSR2, &action, nullptr);
}
#endif

}  // namespace

TEST(callers_are_found_up_to_the_beginning_of_the_program) {
  const Walk found = outer();
  CHECK(found.contains(std::array{address_of(walk), address_of(inner), address_of(outer)}));
  CHECK(found.is_over);
  CHECK(std::is_sorted(found.cfas.begin(), found.cfas.end()));
}

TEST(every_call_of_a_recursion_is_a_frame) {
  const Walk found = recursive(5000);
  CHECK_EQ(found.count(address_of(recursive)), 5001);
  CHECK(found.is_over);
}

TEST(frames_of_variable_size_and_of_larger_alignment_are_passed) {
  const std::array expected{address_of(inner), address_of(outer), address_of(with_variable_frame)};
  for (const size_t size : {1u, 1000u, 100'000u}) {
    const Walk found = with_variable_frame(size);
    CHECK(found.contains(expected));
    CHECK(found.is_over);
  }
  const Walk found = with_aligned_frame(3);
  CHECK(found.contains(std::array{address_of(inner), address_of(outer), address_of(with_aligned_frame)}));
  CHECK(found.is_over);
}

TEST(a_call_that_does_not_return_belongs_to_its_function) {
  try {
    calls_the_end();
  } catch (const std::runtime_error&) {
  }
  CHECK(before_the_end.contains(std::array{address_of(walk), address_of(ends), address_of(calls_the_end)}));
  CHECK(before_the_end.is_over);
}

#ifndef __SANITIZE_THREAD__
TEST(a_signal_handler_is_called_by_what_it_interrupts) {
  handle_signal(0);
  interrupted();
  CHECK_EQ(in_handler.count(address_of(on_signal)), 1);
  // Linux has no table for what returns from handlers on aarch64: there the walk ends, and says so.
  const bool is_told = !bragg::kOwnRegisters.has_link;
  CHECK_EQ(in_handler.count(address_of(interrupted)), is_told ? 1 : 0);
  CHECK_EQ(in_handler.is_over, is_told);
}

TEST(another_stack_than_the_threads_is_not_walked) {
  static std::array<char, 1 << 16> memory;
  const stack_t stack{.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  stack_t before{};
  sigaltstack(&stack, &before);
  handle_signal(SA_ONSTACK);
  interrupted();
  sigaltstack(&before, nullptr);
  CHECK(!in_handler.is_over);
  CHECK(in_handler.functions.empty());
}
#endif

TEST(threads_walk_side_by_side_to_where_they_began) {
  std::vector<std::thread> threads;
  std::array<int, 4> whole{};
  for (int& count : whole)
    threads.emplace_back([&count] {
      for (int i = 0; i < 200; ++i) {
        const Walk found = recursive(i);
        count += found.is_over && found.count(address_of(recursive)) == i + 1 ? 1 : 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : whole) CHECK_EQ(count, 200);
}

TEST(a_damaged_stack_ends_the_walk) {
  CodeCache code;
  std::array<uint64_t, 64> stack;
  const uint64_t begin = address_of(stack.data());
  for (uint64_t value = 0; value < 64; ++value) {
    stack.fill(value % 2 == 0 ? value : begin + 8 * value);
    NativeFrameIterator frames(code, {address_of(outer) + value, begin, begin + 8 * (value % 16)},
                               begin + sizeof stack);
    uint32_t count = 0;
    for (NativeFrame frame{}; frames.next(frame);) ++count;
    CHECK(count <= stack.size());
  }
}

// A stack that a library made, of which only that library knows where it ends.
struct OtherStack {
  ucontext_t caller{};
  ucontext_t own{};
  bragg::NativeCallPath path;
  size_t frames = 0;
};

[[gnu::noinline]] void read_path(OtherStack* stack) {
  stack->frames = stack->path.read({}, {}).size();
  STAYS;
}

TEST(the_path_on_a_stack_that_is_not_the_threads_own_is_cut) {
  static OtherStack other;
  read_path(&other);
  CHECK(other.frames > 1);
  CHECK(!other.path.was_cut());
  std::vector<char> memory(1 << 17);
  getcontext(&other.own);
  other.own.uc_stack.ss_sp = memory.data();
  other.own.uc_stack.ss_size = memory.size();
  other.own.uc_link = &other.caller;
  makecontext(&other.own, reinterpret_cast<void (*)()>(+[] { read_path(&other); }), 0);
  swapcontext(&other.caller, &other.own);
  CHECK_EQ(other.frames, 1);
  CHECK(other.path.was_cut());
}

TEST(code_of_no_library_ends_the_walk) {
  CodeCache code;
  std::array<uint64_t, 64> stack{};
  const uint64_t begin = address_of(stack.data());
  NativeFrameIterator frames(code, {begin, begin, begin}, begin + sizeof stack);
  NativeFrame frame{};
  CHECK(!frames.next(frame));
  CHECK(!frames.is_over());
}
