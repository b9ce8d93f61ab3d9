#include "symbols/unwind_rows.h"

#include <array>

namespace bragg {
namespace {

class RowProgram {
 public:
  RowProgram(const CommonEntry& common, uint64_t start, uint64_t pc)
      : common_(common), registers_(common.registers), location_(start), pc_(pc) {
    save(registers_.return_address, unchanged(registers_.return_address));
  }

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
      case 1:  // advance_loc
        return advance(low);
      case 2:  // offset
        save(low, {UnwindBase::Cfa, offset(cursor.unsigned_leb() * common_.data_alignment)});
        return true;
      case 3:  // restore
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
        throw BadBytes("an instruction that compilers do not use");
      case 0x02:  // advance_loc1
        return advance(cursor.read<uint8_t>());
      case 0x03:  // advance_loc2
        return advance(cursor.read<uint16_t>());
      case 0x04:  // advance_loc4
        return advance(cursor.read<uint32_t>());
      case 0x05: {  // offset_extended
        const uint64_t number = cursor.unsigned_leb();
        save(number, {UnwindBase::Cfa, offset(cursor.unsigned_leb() * common_.data_alignment)});
        return true;
      }
      case 0x06:  // restore_extended
        restore(cursor.unsigned_leb());
        return true;
      case 0x07:  // undefined
        save(cursor.unsigned_leb(), {});
        return true;
      case 0x08: {  // same_value
        const uint64_t number = cursor.unsigned_leb();
        save(number, unchanged(number));
        return true;
      }
      case 0x09: {  // register
        const uint64_t number = cursor.unsigned_leb();
        (void)cursor.unsigned_leb();
        if (is_followed(number)) throw BadBytes("it is kept in another register");
        return true;
      }
      case 0x0A:  // remember_state
        if (n_remembered_ == kMaxRemembered) throw BadBytes("too many rows are remembered");
        remembered_[n_remembered_++] = row_;
        return true;
      case 0x0B:  // restore_state
        if (n_remembered_ == 0) throw BadBytes("no row is remembered");
        row_ = remembered_[--n_remembered_];
        return true;
      case 0x0C: {  // def_cfa
        const uint64_t number = cursor.unsigned_leb();
        define_cfa(number, cursor.unsigned_leb());
        return true;
      }
      case 0x0D:  // def_cfa_register
        row_.cfa.base = base_of(cursor.unsigned_leb());
        row_.cfa_is_stored = false;
        return true;
      case 0x0E:  // def_cfa_offset
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
      case 0x13:  // def_cfa_offset_sf
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
      case 0x2D:  // AARCH64_negate_ra_state
        if (!registers_.has_link) throw BadBytes("an instruction of another processor");
        return true;  // whether a return address is signed does not matter: a signature is removed from any
      case 0x2E:      // GNU_args_size
        (void)cursor.unsigned_leb();
        return true;
      default:
        throw BadBytes("an unknown instruction");
    }
  }

  bool advance(uint64_t delta) {
    location_ += delta * common_.code_alignment;
    return location_ <= pc_;
  }

  static int32_t offset(int64_t value) {
    if (value != static_cast<int32_t>(value)) throw BadBytes("a frame of more than 2 GB");
    return static_cast<int32_t>(value);
  }
  static int32_t offset(uint64_t value) { return offset(static_cast<int64_t>(value)); }

  UnwindBase base_of(uint64_t number) const {
    if (number == registers_.stack_pointer) return UnwindBase::StackPointer;
    return number == registers_.frame_pointer ? UnwindBase::FramePointer : UnwindBase::Unknown;
  }

  bool is_followed(uint64_t number) const {
    return number == registers_.frame_pointer || number == registers_.return_address;
  }

  // Where a register is that the function has not saved.
  SavedAt unchanged(uint64_t number) const {
    const bool is_link = registers_.has_link && number == registers_.return_address;
    return {is_link ? UnwindBase::Link : UnwindBase::Unknown, 0};
  }

  void define_cfa(uint64_t number, uint64_t at) {
    row_.cfa = {base_of(number), offset(at)};
    row_.cfa_is_stored = false;
  }

  void save(uint64_t number, SavedAt place) {
    if (number == registers_.frame_pointer) row_.frame_pointer = place;
    if (number == registers_.return_address) row_.return_address = place;
  }

  void restore(uint64_t number) {
    if (number == registers_.frame_pointer) row_.frame_pointer = initial_.frame_pointer;
    if (number == registers_.return_address) row_.return_address = initial_.return_address;
  }

  bool refuse(uint64_t number) const {
    if (is_followed(number)) throw BadBytes("it is computed");
    return true;
  }

  // A register and an offset, and perhaps what is stored there. All others are not known.
  SavedAt expression(ByteCursor& program, bool& is_stored) const {
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
  const UnwindRegisters& registers_;
  uint64_t location_;
  uint64_t pc_;
  UnwindRule row_;
  UnwindRule initial_;
  std::array<UnwindRule, kMaxRemembered> remembered_;
  size_t n_remembered_ = 0;
};

}  // namespace

UnwindRule read_row(const CommonEntry& common, Bytes function_instructions, uint64_t start, uint64_t pc) {
  return RowProgram(common, start, pc).run(function_instructions);
}

}  // namespace bragg
