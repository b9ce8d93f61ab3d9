#include "symbols/unwind_table.h"

#include <optional>
#include <string_view>

#include "symbols/unwind_rows.h"

namespace bragg {
namespace {

// Encodings of pointers (DW_EH_PE): the low half is the format, the high half what it is counted from.
constexpr uint8_t kAbsolute = 0x00, kLeb = 0x01, kU16 = 0x02, kU32 = 0x03, kU64 = 0x04, kSignedLeb = 0x09, kI16 = 0x0A,
                  kI32 = 0x0B, kI64 = 0x0C, kFromHere = 0x10, kFromHeader = 0x30, kOmitted = 0xFF;

// A cursor that knows the address of what it reads.
class TableCursor : public ByteCursor {
 public:
  TableCursor(const UnwindTable& table, uint64_t address)
      : ByteCursor(table.segment, offset_in(table, address)), table_(table) {}

  [[nodiscard]] uint64_t address() const { return table_.address + at(); }
  void skip(uint64_t size) { (void)take(size); }

  uint64_t pointer(uint8_t encoding) {
    const uint64_t here = address();
    const uint64_t value = number(encoding & 0x0F);
    switch (encoding & 0x70) {
      case 0:
        return value;
      case kFromHere:
        return here + value;
      case kFromHeader:
        return table_.header + value;
      default:
        throw BadBytes("a pointer is counted from what is not known here");
    }
  }

  uint64_t number(uint8_t format) {
    switch (format) {
      case kAbsolute:
      case kU64:
      case kI64:
        return read<uint64_t>();
      case kLeb:
        return unsigned_leb();
      case kSignedLeb:
        return static_cast<uint64_t>(signed_leb());
      case kU16:
        return read<uint16_t>();
      case kI16:
        return static_cast<uint64_t>(int64_t{read<int16_t>()});
      case kU32:
        return read<uint32_t>();
      case kI32:
        return static_cast<uint64_t>(int64_t{read<int32_t>()});
      default:
        throw BadBytes("a pointer has an unknown format");
    }
  }

 private:
  static size_t offset_in(const UnwindTable& table, uint64_t address) {
    if (address < table.address) throw BadBytes("a pointer leads out of its segment");
    return address - table.address;
  }

  const UnwindTable& table_;
};

// length, then `length` bytes: the cursor is behind the length.
uint64_t read_length(TableCursor& cursor) {
  const auto length = cursor.read<uint32_t>();
  return length == 0xFFFFFFFF ? cursor.read<uint64_t>() : length;
}

// z: size and data  R: encoding of addresses  P: encoding, pointer to the personality  L: encoding of another table
void read_augmentation(TableCursor& cursor, std::string_view augmentation, CommonEntry& entry) {
  if (augmentation.empty()) return;
  if (augmentation[0] != 'z') throw BadBytes("an entry has unknown additions");
  entry.has_augmentation = true;
  const uint64_t size = cursor.unsigned_leb();
  const size_t end = cursor.at() + size;
  for (const char letter : augmentation.substr(1)) {
    if (letter == 'R') entry.encoding = cursor.read<uint8_t>();
    if (letter == 'L') cursor.skip(1);
    if (letter == 'S') entry.is_signal_frame = true;
    if (letter == 'P') {
      const auto encoding = cursor.read<uint8_t>();
      (void)cursor.number(encoding & 0x0F);
    }
  }
  if (cursor.at() > end) throw BadBytes("the additions of an entry are longer than they say");
  cursor.skip(end - cursor.at());
}

CommonEntry read_common_entry(const UnwindTable& table, uint64_t address) {
  TableCursor cursor(table, address);
  const uint64_t length = read_length(cursor);
  const size_t end = cursor.at() + length;
  if (cursor.read<uint32_t>() != 0) throw BadBytes("what is common to functions is not where they say");
  const auto version = cursor.read<uint8_t>();
  const std::string_view augmentation = cursor.string();
  if (version == 4) cursor.skip(2);  // sizes of an address and of a segment selector
  CommonEntry entry{.registers = table.registers};
  entry.code_alignment = cursor.unsigned_leb();
  entry.data_alignment = cursor.signed_leb();
  const uint64_t return_register = version == 1 ? cursor.read<uint8_t>() : cursor.unsigned_leb();
  if (return_register != table.registers.return_address)
    throw BadBytes("the return address is kept in an unknown register");
  read_augmentation(cursor, augmentation, entry);
  if (cursor.at() > end) throw BadBytes("an entry is longer than it says");
  entry.instructions = cursor.take(end - cursor.at());
  return entry;
}

// Of the function that begins last before the address:
//   u8 version 1, u8 encodings of 1 the pointer to .eh_frame 2 the count 3 the table; pointer, count;
//   (i32 address, i32 entry)[count], both counted from the header, by address
std::optional<uint64_t> find_entry(const UnwindTable& table, uint64_t pc) {
  constexpr uint8_t kSorted = kFromHeader | kI32;
  TableCursor cursor(table, table.header);
  if (cursor.read<uint8_t>() != 1) throw BadBytes("an unknown version");
  const auto pointer = cursor.read<uint8_t>();
  const auto count_encoding = cursor.read<uint8_t>();
  if (cursor.read<uint8_t>() != kSorted || count_encoding == kOmitted) throw BadBytes("it cannot be searched");
  if (pointer != kOmitted) (void)cursor.pointer(pointer);
  const uint64_t count = cursor.number(count_encoding & 0x0F);
  if (count > cursor.left() / 8) throw BadBytes("it ends too early");
  const Bytes rows = cursor.take(count * 8);
  const auto number_at = [&](uint64_t row, size_t column) {
    return table.header + static_cast<uint64_t>(int64_t{ByteCursor(rows, row * 8 + column).read<int32_t>()});
  };
  uint64_t first = 0;
  uint64_t last = count;  // the first one behind the address is in [first, last]
  while (first < last) {
    const uint64_t middle = first + (last - first) / 2;
    if (number_at(middle, 0) <= pc) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  if (first == 0) return {};
  return number_at(first - 1, 4);
}

UnwindRule read_rule(const UnwindTable& table, uint64_t pc) {
  const std::optional<uint64_t> entry = find_entry(table, pc);
  if (!entry) return {};
  TableCursor cursor(table, *entry);
  const uint64_t length = read_length(cursor);
  const size_t end = cursor.at() + length;
  const uint64_t common_at = cursor.address();
  const CommonEntry common = read_common_entry(table, common_at - cursor.read<uint32_t>());
  const uint64_t start = cursor.pointer(common.encoding);
  const uint64_t size = cursor.number(common.encoding & 0x07);
  if (pc < start || pc - start >= size) return {};
  if (common.has_augmentation) cursor.skip(cursor.unsigned_leb());
  if (cursor.at() > end) throw BadBytes("an entry is longer than it says");
  UnwindRule rule = read_row(common, cursor.take(end - cursor.at()), start, pc);
  rule.function = start;
  return rule;
}

}  // namespace

UnwindRule find_unwind_rule(const UnwindTable& table, uint64_t pc) noexcept {
  try {
    return read_rule(table, pc);
  } catch (const BadBytes&) {
    return {};
  }
}

}  // namespace bragg
