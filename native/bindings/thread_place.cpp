#include "bindings/thread_place.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace bragg {
namespace {

constexpr int kMaxReads = 4;     // of a thread that calls and returns
constexpr int kMaxInternal = 4;  // frames of the interpreter's own, one upon the other
constexpr int kMaxBlocks = 3;    // of memory: those of generators lie alone
constexpr uintptr_t kPageBytes = 4096;

[[nodiscard]] std::optional<const void*> pointer_at(const void* object, uint32_t offset) noexcept {
  const void* value = nullptr;
  if (object == nullptr || !peek_bytes(static_cast<const std::byte*>(object) + offset, &value, sizeof value)) return {};
  return value;
}

// Copies of a thread's frames. Most lie right after their callers, so one read has several: it is the call of the
// kernel that costs, 0.8 us for 8 bytes and 0.9 us for 2,048.
class FrameMemory {
 public:
  // Valid up to the next call; null: it is not mapped, or too much has been read.
  [[nodiscard]] const void* copy_of(const void* frame, size_t size) noexcept {
    const auto address = reinterpret_cast<uintptr_t>(frame);
    if (size > bytes_.size() || address < bytes_.size() || address > UINTPTR_MAX - size) return nullptr;
    if (address < start_ || address + size > start_ + n_bytes_) {
      const uintptr_t end = address + size, start = end - bytes_.size();
      const uintptr_t page = address & ~uintptr_t{kPageBytes - 1};
      // The page before may not be mapped.
      if (!load(start, end) && (page <= start || !load(page, end))) return nullptr;
    }
    return bytes_.data() + (address - start_);
  }

 private:
  [[nodiscard]] bool load(uintptr_t start, uintptr_t end) noexcept {
    if (n_blocks_ == kMaxBlocks) return false;
    const bool is_mapped = peek_bytes(reinterpret_cast<const void*>(start), bytes_.data(), end - start);
    start_ = start;
    n_bytes_ = is_mapped ? end - start : 0;
    n_blocks_ += is_mapped ? 1 : 0;
    return is_mapped;
  }

  std::array<std::byte, 2048> bytes_;
  uintptr_t start_ = 0;
  size_t n_bytes_ = 0;
  int n_blocks_ = 0;
};

class PlaceReader {
 public:
  PlaceReader(const PythonLayout& layout, const void* thread_state) noexcept
      : layout_(layout),
        state_(thread_state),
        frame_size_(std::max({layout.frame_previous, layout.frame_code, layout.frame_instruction, layout.frame_function,
                              layout.frame_owner}) +
                    sizeof(uint64_t)) {}

  // Nothing: it is in no frame.
  [[nodiscard]] std::optional<ThreadPlace> read() const noexcept {
    const void* frame = innermost_frame();
    if (frame == nullptr) return {};
    FrameMemory memory;
    ThreadPlace place;
    for (int n_internal = 0; frame != nullptr && !place.is_full() && n_internal <= kMaxInternal;) {
      const void* copy = memory.copy_of(frame, frame_size_);
      if (copy == nullptr) break;
      const bool is_programs = !is_internal(copy);
      if (is_programs) place.append(raw_of(frame, copy));
      n_internal = is_programs ? 0 : n_internal + 1;
      frame = detail::read<const void*>(copy, layout_.frame_previous);
    }
    return place;
  }

 private:
  [[nodiscard]] const void* innermost_frame() const noexcept {
    const auto top = pointer_at(state_, layout_.thread_state_frame);
    if (!top || layout_.has_cframe == 0) return top.value_or(nullptr);
    return pointer_at(*top, layout_.cframe_frame).value_or(nullptr);
  }

  [[nodiscard]] bool is_internal(const void* copy) const noexcept {
    return detail::read<int8_t>(copy, layout_.frame_owner) >= layout_.first_internal_owner ||
           (detail::read<uintptr_t>(copy, layout_.frame_function) & layout_.reference_mask) ==
               layout_.internal_function;
  }

  [[nodiscard]] RawFrame raw_of(const void* frame, const void* copy) const noexcept {
    const uintptr_t code = detail::read<uintptr_t>(copy, layout_.frame_code) & layout_.reference_mask;
    const int64_t offset = layout_.instruction_is_index != 0
                               ? int64_t{2} * detail::read<int32_t>(copy, layout_.frame_instruction)
                               : static_cast<int64_t>(detail::read<uintptr_t>(copy, layout_.frame_instruction) - code -
                                                      layout_.code_instructions);
    return {reinterpret_cast<const void*>(code), offset > 0 ? static_cast<uint32_t>(offset) : 0, frame};
  }

  const PythonLayout& layout_;
  const void* state_;
  size_t frame_size_;  // of what is read of it
};

// The frames of `place` that the thread was in before, too. Callers do not move on.
[[nodiscard]] ThreadPlace common_part(const ThreadPlace& before, const ThreadPlace& place) noexcept {
  const auto is_part = [&](std::span<const RawFrame> frames) {
    for (auto rest = before.frames(); !rest.empty(); rest = rest.subspan(1)) {
      const size_t n = std::min(rest.size(), frames.size());
      if (rest[0].is_of(frames[0]) && std::equal(rest.begin() + 1, rest.begin() + n, frames.begin() + 1)) return true;
    }
    return false;
  };
  auto frames = place.frames();
  while (!frames.empty() && !is_part(frames)) frames = frames.subspan(1);
  ThreadPlace part;
  for (const RawFrame& frame : frames) part.append(frame);
  return part;
}

}  // namespace

ThreadPlace place_of(const void* thread_state) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr || thread_state == nullptr) return {};
  const PlaceReader reader(*layout, thread_state);
  const auto place = reader.read();
  return place && place == reader.read() ? *place : ThreadPlace{};
}

std::optional<ThreadPlace> passing_place_of(const void* thread_state) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr || thread_state == nullptr) return {};
  const PlaceReader reader(*layout, thread_state);
  auto before = reader.read();
  if (!before) return {};
  ThreadPlace common;
  for (int i = 1; i < kMaxReads; ++i) {
    const ThreadPlace place = reader.read().value_or(ThreadPlace{});
    common = common_part(*before, place);
    if (common == place && place.innermost().is_of(before->innermost())) break;
    before = place;
  }
  return common;
}

bool peek_bytes(const void* from, void* into, size_t size) noexcept {
  const iovec source{const_cast<void*>(from), size}, target{into, size};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == static_cast<ssize_t>(size);
}

void ThreadPlaces::see(const ThreadPlace& place, int64_t now_ns) noexcept {
  if (count_ > 0 && (stays_[count_ - 1].place == place || count_ == stays_.size()))
    stays_[count_ - 1].until_ns = now_ns;
  else
    stays_[count_++] = {place, now_ns};
}

}  // namespace bragg
