#include "symbols/unwind_table.h"

#include <array>
#include <optional>
#include <string_view>

namespace bragg {
namespace {

// Numbers of registers in DWARF for x86-64.
constexpr uint64_t kFramePointer = 6, kStackPointer = 7, kReturnAddress = 16;

// Encodings of pointers (DW_EH_PE): the low half is the format, the high half what it is counted from.
constexpr uint8_t kAbsolute = 0x00, kLeb = 0x01, kU16 = 0x02, kU32 = 0x03, kU64 = 0x04, kSignedLeb = 0x09, kI16 = 0x0A,
                  kI32 = 0x0B, kI64 = 0x0C, kFromHere = 0x10, kFromHeader = 0x30, kOmitted = 0xFF;

UnwindBase base_of(uint64_t number) noexcept {
  if (number == kStackPointer) return UnwindBase::StackPointer;
  return number == kFramePointer ? UnwindBase::FramePointer : UnwindBase::Unknown;
}

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
        throw BadCubin("a pointer is counted from what is not known here");
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
        throw BadCubin("a pointer has an unknown format");
    }
  }

 private:
  static size_t offset_in(const UnwindTable& table, uint64_t address) {
    if (address < table.address) throw BadCubin("a pointer leads out of its segment");
    return address - table.address;
  }

  const UnwindTable& table_;
};

// What functions have in common.
struct CommonEntry {
  Bytes instructions;
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t encoding = kAbsolute;
  bool has_augmentation = false;
  bool is_signal_frame = false;
};

// length, then `length` bytes: the cursor is behind the length.
uint64_t read_length(TableCursor& cursor) {
  const auto length = cursor.read<uint32_t>();
  return length == 0xFFFFFFFF ? cursor.read<uint64_t>() : length;
}

// z: size and data  R: encoding of addresses  P: encoding, pointer to the personality  L: encoding of another table
void read_augmentation(TableCursor& cursor, std::string_view augmentation, CommonEntry& entry) {
  if (augmentation.empty()) return;
  if (augmentation[0] != 'z') throw BadCubin("an entry has unknown additions");
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
  if (cursor.at() > end) throw BadCubin("the additions of an entry are longer than they say");
  cursor.skip(end - cursor.at());
}

CommonEntry read_common_entry(const UnwindTable& table, uint64_t address) {
  TableCursor cursor(table, address);
  const uint64_t length = read_length(cursor);
  const size_t end = cursor.at() + length;
  if (cursor.read<uint32_t>() != 0) throw BadCubin("what is common to functions is not where they say");
  const auto version = cursor.read<uint8_t>();
  const std::string_view augmentation = cursor.string();
  if (version == 4) cursor.skip(2);  // sizes of an address and of a segment selector
  CommonEntry entry;
  entry.code_alignment = cursor.unsigned_leb();
  entry.data_alignment = cursor.signed_leb();
  const uint64_t return_register = version == 1 ? cursor.read<uint8_t>() : cursor.unsigned_leb();
  if (return_register != kReturnAddress) throw BadCubin("the return address is kept in an unknown register");
  read_augmentation(cursor, augmentation, entry);
  if (cursor.at() > end) throw BadCubin("an entry is longer than it says");
  entry.instructions = cursor.take(end - cursor.at());
  return entry;
}

// Executes call frame instructions until the row of one address.
class RowProgram {
 public:
  RowProgram(const CommonEntry& common, uint64_t start, uint64_t pc) : common_(common), location_(start), pc_(pc) {}

  UnwindRule run(Bytes function_instructions) {
    execute(common_.instructions);
    initial_ = row_;
    execute(function_instructions);
    row_.is_signal_frame = common_.is_signal_frame;
    return row_;
  }

 private:
  static constexpr size_t kMaxRemembered = 16;  // compilers nest once

  void execute(Bytes instructions) {
    for (ByteCursor cursor(instructions); cursor.left() != 0;) {
      const auto instruction = cursor.read<uint8_t>();
      if (!step(cursor, instruction >> 6, instruction & 0x3F, instruction)) return;
    }
  }

  // False: the next row is behind the address.
  bool step(ByteCursor& cursor, int primary, uint64_t low, uint8_t instruction) {
    switch (primary) {
      case 1:
        return advance(low);
      case 2:
        save(low, {UnwindBase::Cfa, offset(cursor.unsigned_leb() * common_.data_alignment)});
        return true;
      case 3:
        restore(low);
        return true;
      default:
        return extended(cursor, instruction);
    }
  }

  bool extended(ByteCursor& cursor, uint8_t instruction) {
    switch (instruction) {
      case 0x00:  // nop
        return true;
      case 0x01:  // set_loc
        throw BadCubin("an instruction that compilers do not use");
      case 0x02:
        return advance(cursor.read<uint8_t>());
      case 0x03:
        return advance(cursor.read<uint16_t>());
      case 0x04:
        return advance(cursor.read<uint32_t>());
      case 0x05: {  // offset_extended
        const uint64_t number = cursor.unsigned_leb();
        save(number, {UnwindBase::Cfa, offset(cursor.unsigned_leb() * common_.data_alignment)});
        return true;
      }
      case 0x06:
        restore(cursor.unsigned_leb());
        return true;
      case 0x07:    // undefined
      case 0x08: {  // same_value
        const uint64_t number = cursor.unsigned_leb();
        save(number, {});
        return true;
      }
      case 0x09: {  // register
        const uint64_t number = cursor.unsigned_leb();
        (void)cursor.unsigned_leb();
        if (number == kFramePointer || number == kReturnAddress) throw BadCubin("it is kept in another register");
        return true;
      }
      case 0x0A:
        if (n_remembered_ == kMaxRemembered) throw BadCubin("too many rows are remembered");
        remembered_[n_remembered_++] = row_;
        return true;
      case 0x0B:
        if (n_remembered_ == 0) throw BadCubin("no row is remembered");
        row_ = remembered_[--n_remembered_];
        return true;
      case 0x0C: {  // def_cfa
        const uint64_t number = cursor.unsigned_leb();
        define_cfa(number, cursor.unsigned_leb());
        return true;
      }
      case 0x0D:
        row_.cfa.base = base_of(cursor.unsigned_leb());
        row_.cfa_is_stored = false;
        return true;
      case 0x0E:
        row_.cfa.offset = offset(cursor.unsigned_leb());
        return true;
      case 0x0F: {  // def_cfa_expression
        row_.cfa = expression(cursor, row_.cfa_is_stored);
        return true;
      }
      case 0x10: {  // expression
        const uint64_t number = cursor.unsigned_leb();
        bool is_stored = false;
        const SavedAt place = expression(cursor, is_stored);
        if (is_stored || place.base == UnwindBase::Unknown) return refuse(number);
        save(number, place);
        return true;
      }
      case 0x11: {  // offset_extended_sf
        const uint64_t number = cursor.unsigned_leb();
        save(number, {UnwindBase::Cfa, offset(static_cast<uint64_t>(cursor.signed_leb()) * common_.data_alignment)});
        return true;
      }
      case 0x12: {  // def_cfa_sf
        const uint64_t number = cursor.unsigned_leb();
        define_cfa(number, static_cast<uint64_t>(cursor.signed_leb()) * common_.data_alignment);
        return true;
      }
      case 0x13:
        row_.cfa.offset = offset(static_cast<uint64_t>(cursor.signed_leb()) * common_.data_alignment);
        return true;
      case 0x14:    // val_offset
      case 0x15: {  // val_offset_sf
        const uint64_t number = cursor.unsigned_leb();
        (void)cursor.unsigned_leb();
        return refuse(number);
      }
      case 0x16: {  // val_expression
        const uint64_t number = cursor.unsigned_leb();
        (void)cursor.take(cursor.unsigned_leb());
        return refuse(number);
      }
      case 0x2E:  // GNU_args_size
        (void)cursor.unsigned_leb();
        return true;
      default:
        throw BadCubin("an unknown instruction");
    }
  }

  bool advance(uint64_t delta) {
    location_ += delta * common_.code_alignment;
    return location_ <= pc_;
  }

  static int32_t offset(int64_t value) {
    if (value != static_cast<int32_t>(value)) throw BadCubin("a frame of more than 2 GB");
    return static_cast<int32_t>(value);
  }
  static int32_t offset(uint64_t value) { return offset(static_cast<int64_t>(value)); }

  void define_cfa(uint64_t number, uint64_t at) {
    row_.cfa = {base_of(number), offset(at)};
    row_.cfa_is_stored = false;
  }

  void save(uint64_t number, SavedAt place) {
    if (number == kFramePointer) row_.frame_pointer = place;
    if (number == kReturnAddress) row_.return_address = place;
  }

  void restore(uint64_t number) {
    if (number == kFramePointer) row_.frame_pointer = initial_.frame_pointer;
    if (number == kReturnAddress) row_.return_address = initial_.return_address;
  }

  static bool refuse(uint64_t number) {
    if (number == kFramePointer || number == kReturnAddress) throw BadCubin("it is computed");
    return true;
  }

  // A register and an offset, and perhaps what is stored there. All others are not known.
  static SavedAt expression(ByteCursor& program, bool& is_stored) {
    constexpr uint8_t kRegisterAndOffset = 0x70, kLoad = 0x06;
    is_stored = false;
    ByteCursor cursor(program.take(program.unsigned_leb()));
    const auto operation = cursor.read<uint8_t>();
    if (operation < kRegisterAndOffset || operation > kRegisterAndOffset + 31) return {};
    const UnwindBase base = base_of(operation - kRegisterAndOffset);
    const int32_t distance = offset(cursor.signed_leb());
    if (cursor.left() == 0) return {base, distance};
    is_stored = cursor.read<uint8_t>() == kLoad;
    return is_stored && cursor.left() == 0 ? SavedAt{base, distance} : SavedAt{};
  }

  const CommonEntry& common_;
  uint64_t location_;
  uint64_t pc_;
  UnwindRule row_;
  UnwindRule initial_;
  std::array<UnwindRule, kMaxRemembered> remembered_;
  size_t n_remembered_ = 0;
};

// Of the function that begins last before the address:
//   u8 version 1, u8 encodings of 1 the pointer to .eh_frame 2 the count 3 the table; pointer, count;
//   (i32 address, i32 entry)[count], both counted from the header, by address
std::optional<uint64_t> find_entry(const UnwindTable& table, uint64_t pc) {
  constexpr uint8_t kSorted = kFromHeader | kI32;
  TableCursor cursor(table, table.header);
  if (cursor.read<uint8_t>() != 1) throw BadCubin("an unknown version");
  const auto pointer = cursor.read<uint8_t>();
  const auto count_encoding = cursor.read<uint8_t>();
  if (cursor.read<uint8_t>() != kSorted || count_encoding == kOmitted) throw BadCubin("it cannot be searched");
  if (pointer != kOmitted) (void)cursor.pointer(pointer);
  const uint64_t count = cursor.number(count_encoding & 0x0F);
  if (count > cursor.left() / 8) throw BadCubin("it ends too early");
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
  if (cursor.at() > end) throw BadCubin("an entry is longer than it says");
  UnwindRule rule = RowProgram(common, start, pc).run(cursor.take(end - cursor.at()));
  rule.function = start;
  return rule;
}

}  // namespace

UnwindRule find_unwind_rule(const UnwindTable& table, uint64_t pc) noexcept {
  try {
    return read_rule(table, pc);
  } catch (const BadCubin&) {
    return {};
  }
}

}  // namespace bragg
