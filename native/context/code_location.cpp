#include "context/code_location.h"

#include "context/utf8.h"

namespace bragg {
namespace {

using detail::read;

constexpr uint32_t kPython311 = 0x030B0000;

// Line arithmetic is modulo 2^32, so that no table, however damaged, overflows an int.
struct Line {
  uint32_t value;
  void add(int32_t delta) noexcept { value += static_cast<uint32_t>(delta); }
  [[nodiscard]] int get() const noexcept { return static_cast<int>(value); }
};

int delta_line(std::span<const uint8_t> table, int first_line, uint32_t offset) noexcept {
  constexpr int8_t kNoLine = -128;
  Line line{static_cast<uint32_t>(first_line)};
  uint32_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    const auto delta = static_cast<int8_t>(table[i + 1]);
    if (delta != kNoLine) line.add(delta);
    end += table[i];
    if (offset < end) return delta == kNoLine ? 0 : line.get();
  }
  return 0;
}

// Groups of six bits, lowest first; bit 6: more follow. The sign is in the lowest bit of the number.
int32_t signed_varint(std::span<const uint8_t> bytes) noexcept {
  uint32_t value = 0;
  uint32_t shift = 0;
  for (const uint8_t byte : bytes) {
    if (shift < 32) value |= static_cast<uint32_t>(byte & 0x3F) << shift;
    if ((byte & 0x40) == 0) break;
    shift += 6;
  }
  const auto magnitude = static_cast<int32_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

// One entry:  1cccc nnn  [column bytes, bit 7 clear]...   covers n + 1 code units of 2 bytes
//   c  0- 9  same line          c 13  line delta (signed varint), no column
//     10-12  line delta c - 10     14  line delta, end line, columns (varints)
//                                  15  no location
int location_line(std::span<const uint8_t> table, int first_line, uint32_t offset) noexcept {
  Line line{static_cast<uint32_t>(first_line)};
  uint32_t end = 0;
  for (size_t i = 0; i < table.size();) {
    const uint8_t head = table[i++];
    const int code = (head >> 3) & 15;
    if (code == 13 || code == 14) line.add(signed_varint(table.subspan(i)));
    if (code >= 10 && code <= 12) line.add(code - 10);
    end += 2u * ((head & 7u) + 1);
    if (offset < end) return code == 15 ? 0 : line.get();
    while (i < table.size() && (table[i] & 0x80) == 0) ++i;
  }
  return 0;
}

template <class Unit>
std::string to_utf8(const void* units, size_t length) {
  std::string out;
  out.reserve(length);
  for (size_t i = 0; i < length; ++i) append_utf8(out, read<Unit>(units, static_cast<uint32_t>(i * sizeof(Unit))));
  return out;
}

const void* characters(const PythonLayout& layout, const std::byte* text, uint32_t state) noexcept {
  if ((state & layout.text_compact_mask) == 0) return read<const void*>(text, layout.text_data_pointer);
  return text + ((state & layout.text_ascii_mask) != 0 ? layout.text_ascii_data : layout.text_compact_data);
}

std::string text(const PythonLayout& layout, const void* object) {
  const auto state = read<uint32_t>(object, layout.text_state);
  const auto length = read<size_t>(object, layout.text_length);
  const void* data = characters(layout, static_cast<const std::byte*>(object), state);
  switch ((state & layout.text_kind_mask) >> layout.text_kind_shift) {
    case 1:
      return to_utf8<uint8_t>(data, length);
    case 2:
      return to_utf8<uint16_t>(data, length);
    default:
      return to_utf8<uint32_t>(data, length);
  }
}

std::span<const uint8_t> bytes(const PythonLayout& layout, const void* object) noexcept {
  const auto* data = static_cast<const uint8_t*>(object) + layout.bytes_data;
  return {data, read<size_t>(object, layout.bytes_size)};
}

}  // namespace

int line_at(std::span<const uint8_t> table, LineTableFormat format, int first_line, uint32_t offset) noexcept {
  return format == LineTableFormat::LineDeltas ? delta_line(table, first_line, offset)
                                               : location_line(table, first_line, offset);
}

int line_of(const RawFrame& frame) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr) return 0;
  const auto format =
      layout->version_hex >= kPython311 ? LineTableFormat::LocationEntries : LineTableFormat::LineDeltas;
  const auto table = bytes(*layout, read<const void*>(frame.code, layout->code_line_table));
  return line_at(table, format, read<int32_t>(frame.code, layout->code_first_line), frame.instruction_offset);
}

CodeLocation describe(const RawFrame& frame) {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr) return {};
  return {text(*layout, read<const void*>(frame.code, layout->code_name)),
          text(*layout, read<const void*>(frame.code, layout->code_file)), line_of(frame)};
}

}  // namespace bragg
