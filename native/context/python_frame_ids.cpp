#include "context/python_frame_ids.h"

#include <algorithm>

#include "context/code_location.h"
#include "context/hash.h"

namespace bragg {

constinit std::atomic<uint32_t> PythonFrameIds::epoch_{0};

PythonFrameIds& PythonFrameIds::instance() {
  static PythonFrameIds& ids = *new PythonFrameIds;  // code objects die until the interpreter is gone
  return ids;
}

size_t PythonFrameIds::InstructionHash::operator()(const Instruction& instruction) const noexcept {
  return hash_of(reinterpret_cast<uintptr_t>(instruction.code), instruction.offset);
}

FrameId PythonFrameIds::intern(const RawFrame& raw) {
  const Instruction instruction{raw.code, raw.instruction_offset};
  const std::lock_guard lock(mutex_);
  if (const auto found = ids_.find(instruction); found != ids_.end()) return found->second;
  const CodeLocation place = describe(raw);
  const FrameId frame = FrameTable::instance().intern_python(place.qualified_name, place.file,
                                                             static_cast<uint32_t>(std::max(place.line, 0)));
  ids_.emplace(instruction, frame);
  codes_.insert(raw.code);
  return frame;
}

// All are dropped: a program that makes and drops code without end would leave ids behind otherwise.
void PythonFrameIds::forget(const void* code) {
  const std::lock_guard lock(mutex_);
  if (!codes_.contains(code)) return;
  ids_.clear();
  codes_.clear();
  epoch_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace bragg
