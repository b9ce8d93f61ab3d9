#include "bindings/thread_place.h"

#include <sys/uio.h>
#include <unistd.h>

#include <utility>

namespace bragg {
namespace {

struct PeekedFrame {
  const void* previous;
  uintptr_t code;
  uintptr_t function;
  uint64_t instruction;  // an int32 where it is an index
  int8_t owner;
};

template <size_t n>
[[nodiscard]] bool peek(const std::array<iovec, n>& from, const std::array<iovec, n>& into) noexcept {
  ssize_t wanted = 0;
  for (const iovec& part : into) wanted += static_cast<ssize_t>(part.iov_len);
  return process_vm_readv(getpid(), into.data(), n, from.data(), n, 0) == wanted;
}

iovec field(const void* object, uint32_t offset, size_t size) noexcept {
  return {const_cast<std::byte*>(static_cast<const std::byte*>(object) + offset), size};
}

[[nodiscard]] std::optional<const void*> pointer_at(const void* object, uint32_t offset) noexcept {
  const void* value = nullptr;
  if (object == nullptr || !peek<1>({field(object, offset, sizeof value)}, {iovec{&value, sizeof value}})) return {};
  return value;
}

constexpr int kMaxReads = 4;     // of a thread that calls and returns
constexpr int kMaxInternal = 4;  // frames of the interpreter's own, one upon the other

class PlaceReader {
 public:
  PlaceReader(const PythonLayout& layout, const void* thread_state) noexcept : layout_(layout), state_(thread_state) {}

  [[nodiscard]] ThreadPlace innermost() const noexcept {
    const void* frame = innermost_frame();
    const RawFrame innermost = next_from(frame);
    return {innermost, innermost.code != nullptr ? next_from(frame) : RawFrame{}};
  }

  [[nodiscard]] bool has_frames() const noexcept { return innermost_frame() != nullptr; }

 private:
  // The first frame of the program from this one on; `frame` is then what called it.
  [[nodiscard]] RawFrame next_from(const void*& frame) const noexcept {
    PeekedFrame peeked{};
    for (int i = 0; i < kMaxInternal && frame != nullptr && peek_frame(frame, peeked); ++i) {
      const void* peeked_at = std::exchange(frame, peeked.previous);
      if (!is_internal(peeked)) return raw_of(peeked_at, peeked);
    }
    return {};
  }

  [[nodiscard]] const void* innermost_frame() const noexcept {
    const auto top = pointer_at(state_, layout_.thread_state_frame);
    if (!top || layout_.has_cframe == 0) return top.value_or(nullptr);
    return pointer_at(*top, layout_.cframe_frame).value_or(nullptr);
  }

  [[nodiscard]] bool peek_frame(const void* frame, PeekedFrame& into) const noexcept {
    const size_t instruction_size = layout_.instruction_is_index != 0 ? sizeof(int32_t) : sizeof(uintptr_t);
    into.instruction = 0;
    return peek<5>(
        {field(frame, layout_.frame_previous, sizeof into.previous), field(frame, layout_.frame_code, sizeof into.code),
         field(frame, layout_.frame_function, sizeof into.function),
         field(frame, layout_.frame_instruction, instruction_size),
         field(frame, layout_.frame_owner, sizeof into.owner)},
        {iovec{&into.previous, sizeof into.previous}, iovec{&into.code, sizeof into.code},
         iovec{&into.function, sizeof into.function}, iovec{&into.instruction, instruction_size},
         iovec{&into.owner, sizeof into.owner}});
  }

  [[nodiscard]] bool is_internal(const PeekedFrame& peeked) const noexcept {
    return peeked.owner >= layout_.first_internal_owner ||
           (peeked.function & layout_.reference_mask) == layout_.internal_function;
  }

  [[nodiscard]] RawFrame raw_of(const void* frame, const PeekedFrame& peeked) const noexcept {
    const uintptr_t code = peeked.code & layout_.reference_mask;
    const int64_t offset = layout_.instruction_is_index != 0
                               ? int64_t{2} * static_cast<int32_t>(peeked.instruction)
                               : static_cast<int64_t>(peeked.instruction - code - layout_.code_instructions);
    return {reinterpret_cast<const void*>(code), offset > 0 ? static_cast<uint32_t>(offset) : 0, frame};
  }

  const PythonLayout& layout_;
  const void* state_;
};

}  // namespace

ThreadPlace place_of(const void* thread_state) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr || thread_state == nullptr) return {};
  const PlaceReader reader(*layout, thread_state);
  const ThreadPlace place = reader.innermost();
  return place == reader.innermost() ? place : ThreadPlace{};
}

std::optional<ThreadPlace> passing_place_of(const void* thread_state) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr || thread_state == nullptr) return {};
  const PlaceReader reader(*layout, thread_state);
  if (!reader.has_frames()) return {};
  ThreadPlace before = reader.innermost();
  for (int i = 1; i < kMaxReads; ++i) {
    const ThreadPlace place = reader.innermost();
    if (place.frame.is_of(before.frame) && place.caller.is_of(before.caller)) return place;
    before = place;
  }
  return ThreadPlace{};
}

bool peek_bytes(const void* from, void* into, size_t size) noexcept {
  return peek<1>({field(from, 0, size)}, {iovec{into, size}});
}

void ThreadPlaces::see(const ThreadPlace& place, int64_t now_ns) noexcept {
  if (count_ > 0 && (stays_[count_ - 1].place == place || count_ == stays_.size()))
    stays_[count_ - 1].until_ns = now_ns;
  else
    stays_[count_++] = {place, now_ns};
}

}  // namespace bragg
