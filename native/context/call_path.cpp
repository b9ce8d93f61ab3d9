#include "context/call_path.h"

#include "context/found_once.h"

namespace bragg {
namespace {

constinit FoundOnce<FrameId> unknown_code_frame;

FrameId unknown_code() noexcept {
  return unknown_code_frame.get([] { return intern_frame(FrameKind::Native, "[unknown native code]"); });
}

}  // namespace

void NativeCallPath::collect_python(const OpeningFrames& opened_in) noexcept {
  n_python_ = n_stretches_ = 0;
  bool is_inside = true;
  PythonEvaluationIterator frames;
  RawFrame raw{};
  for (uint64_t evaluation = 0; n_python_ < kMaxFrames && frames.next(raw, evaluation);) {
    const RawFrame* opener = is_inside ? opened_in.find(raw) : nullptr;
    // The frame that opened the entry is above it in the tree: it is added again only if it has moved on since.
    if (is_inside && (opener == nullptr || opener->instruction_offset != raw.instruction_offset))
      python_[n_python_++] = raw;
    is_inside = is_inside && opener == nullptr;
    if (evaluation != 0) stretches_[n_stretches_++] = {n_python_, evaluation};
    if (evaluation != 0 && !is_inside) break;
  }
  reached_opening_ = !is_inside;
}

void NativeCallPath::append_python(uint32_t end) noexcept {
  while (n_told_ < end && n_path_ < kMaxFrames) path_[n_path_++] = {python_[n_told_++], FrameId::None};
}

void NativeCallPath::append_native(FrameId frame) noexcept {
  if (frame != FrameId::None && n_path_ < kMaxFrames) path_[n_path_++] = {{}, frame};
}

uint64_t NativeCallPath::stack_end(uint64_t stack_pointer) noexcept {
  if (stack_.end == 0) stack_ = find_stack();
  return stack_.end_for(stack_pointer);
}

std::span<const PathFrame> NativeCallPath::read(const OpeningFrames& frames, const OpeningCalls& calls) noexcept {
  collect_python(frames);
  n_path_ = n_told_ = 0;
  const Registers here = registers_here();
  NativeFrameIterator native(code_, here, stack_end(here.stack));
  NativeFrame frame{};
  uint32_t stretch = 0;
  uint32_t n_program = 0;  // of the path, up to the outermost frame that is not of the C library
  bool is_complete = false;
  for (uint32_t n_native = 0; !is_complete && n_native < kMaxNative && native.next(frame); ++n_native) {
    if (stretch < n_stretches_ && stretches_[stretch].evaluation < frame.cfa) {
      append_python(stretches_[stretch].end);
      is_complete = ++stretch == n_stretches_;
    } else if (calls.contains(frame)) {
      is_complete = true;
    } else {
      append_native(frame.frame);
    }
    if (frame.owner != CodeOwner::System) n_program = n_path_;
  }
  if (native.is_over()) n_path_ = n_program;  // what begins a thread
  was_cut_ = !is_complete && !native.is_over();
  if (was_cut_) append_native(unknown_code());
  append_python(n_python_);
  return {path_.data(), n_path_};
}

void NativeCallPath::read_opening(OpeningCalls& calls) noexcept {
  const Registers here = registers_here();
  NativeFrameIterator native(code_, here, stack_end(here.stack));
  NativeFrame frame{};
  for (calls.count = 0; calls.count < OpeningCalls::kCount && native.next(frame);)
    calls.calls[calls.count++] = {frame.cfa, frame.function};
}

}  // namespace bragg
