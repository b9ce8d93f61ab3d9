#include "context/native_frames.h"

#include <pthread.h>

#include <cstring>

namespace bragg {

ThreadStack find_stack() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* begin = nullptr;
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &begin, &size) == 0;
  pthread_attr_destroy(&attributes);
  const auto first = reinterpret_cast<uintptr_t>(begin);
  return is_known ? ThreadStack{first, first + size} : ThreadStack{};
}

// Reads what other functions keep, also between their variables, where sanitizers expect nobody.
[[gnu::no_sanitize("address", "thread")]] bool NativeFrameIterator::load(uint64_t address,
                                                                         uint64_t& value) const noexcept {
  if (address < stack_begin_ || address >= stack_end_ || stack_end_ - address < sizeof value) return false;
  if (address % sizeof value != 0) return false;
  value = *reinterpret_cast<const volatile uint64_t*>(address);
  return true;
}

bool NativeFrameIterator::resolve(const SavedAt& place, uint64_t cfa, uint64_t& address) const noexcept {
  const auto distance = static_cast<uint64_t>(int64_t{place.offset});
  switch (place.base) {
    case UnwindBase::StackPointer:
      address = registers_.stack + distance;
      return true;
    case UnwindBase::FramePointer:
      address = registers_.frame + distance;
      return true;
    case UnwindBase::Cfa:
      address = cfa + distance;
      return true;
    default:
      return false;
  }
}

// 0: there is no caller.
bool NativeFrameIterator::read_return_address(const UnwindRule& rule, uint64_t cfa, uint64_t& address) const noexcept {
  address = registers_.link;
  if (rule.return_address.base == UnwindBase::Link) return address != 0;
  uint64_t at = 0;
  address = 0;
  return !resolve(rule.return_address, cfa, at) || load(at, address);
}

// To the caller's registers.
bool NativeFrameIterator::step(const UnwindRule& rule, uint64_t& cfa) noexcept {
  if (!resolve(rule.cfa, 0, cfa) || (rule.cfa_is_stored && !load(cfa, cfa))) return false;
  // A function that has saved no return address may keep nothing on the stack.
  if (cfa < registers_.stack + (rule.return_address.is_in_memory() ? 1 : 0) || cfa > stack_end_) return false;
  Registers caller{0, cfa, registers_.frame};
  if (!read_return_address(rule, cfa, caller.instruction)) return false;
  caller.instruction = without_signature(caller.instruction);
  uint64_t at = 0;
  if (resolve(rule.frame_pointer, cfa, at) && !load(at, caller.frame)) return false;
  registers_ = caller;
  was_interrupted_ = rule.is_signal_frame;
  is_over_ = caller.instruction == 0;
  return true;
}

bool NativeFrameIterator::next(NativeFrame& out) noexcept {
  if (is_over_) return false;
  // A call may be the last instruction of its function: the one behind it then belongs to another one.
  const uint64_t pc = registers_.instruction - (was_interrupted_ ? 0 : 1);
  const CodePlace& place = code_.find(pc);
  out = {place.frame, 0, place.rule.function, place.owner};
  return place.rule.is_known() && step(place.rule, out.cfa);
}

}  // namespace bragg
