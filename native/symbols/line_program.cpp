#include "symbols/line_program.h"

#include <string_view>
#include <utility>

namespace bragg {
namespace {

enum StandardOpcode : uint8_t {
  kCopy = 1,
  kAdvancePc,
  kAdvanceLine,
  kSetFile,
  kSetColumn,
  kNegateStatement,
  kSetBasicBlock,
  kConstAddPc,
  kFixedAdvancePc,
};

enum ExtendedOpcode : uint8_t {
  kEndSequence = 1,
  kSetAddress = 2,
  // NVIDIA's own. The function that the next rows are inlined from, and the row of the call; 0 ends the inlining.
  kInlinedCall = 0x90,
  kFunctionName = 0x91,
};

enum Form : uint64_t {
  kData2 = 0x05,
  kData4 = 0x06,
  kData8 = 0x07,
  kString = 0x08,
  kBlock = 0x09,
  kData1 = 0x0B,
  kStrp = 0x0E,
  kUdata = 0x0F,
  kData16 = 0x1E,
  kLineStrp = 0x1F,
};

constexpr uint64_t kPathContent = 1, kDirectoryContent = 2;

std::string join(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  return std::string(directory) + '/' + std::string(name);
}

struct HeaderEntry {
  std::string_view path;
  uint64_t directory = 0;
};

// One unit of a line section: its header, then its program.
class UnitReader {
 public:
  UnitReader(Bytes unit, size_t unit_at, const LineStrings& strings)
      : cursor_(unit), unit_at_(unit_at), strings_(strings) {}

  LineUnit read() {
    version_ = cursor_.read<uint16_t>();
    if (version_ < 2 || version_ > 5) throw BadBytes("its line table has version " + std::to_string(version_));
    if (version_ == 5) cursor_.take(2);  // sizes of addresses and of segment selectors
    const auto header_size = cursor_.read<uint32_t>();
    const size_t program_at = cursor_.at() + header_size;
    read_parameters();
    if (version_ == 5)
      read_files();
    else
      read_old_files();
    if (program_at < cursor_.at() || program_at - cursor_.at() > cursor_.left())
      throw BadBytes("the header of a line table has a wrong size");
    // ptxas adds a word where functions were inlined.
    if (program_at - cursor_.at() >= sizeof(uint32_t)) unit_.names_at = cursor_.read<uint32_t>();
    cursor_.take(program_at - cursor_.at());
    while (cursor_.left() != 0) step();
    if (!rows_.empty()) unit_.sequences.push_back(std::move(rows_));
    return std::move(unit_);
  }

 private:
  void read_parameters() {
    instruction_size_ = cursor_.read<uint8_t>();
    if (version_ >= 4) cursor_.take(1);  // operations of an instruction
    cursor_.take(1);                     // whether rows are statements
    line_base_ = cursor_.read<int8_t>();
    line_range_ = cursor_.read<uint8_t>();
    opcode_base_ = cursor_.read<uint8_t>();
    if (line_range_ == 0 || opcode_base_ == 0) throw BadBytes("the header of a line table is damaged");
    operand_counts_ = cursor_.take(opcode_base_ - 1u);
  }

  void read_old_files() {
    std::vector<std::string_view> directories{{}};
    for (std::string_view name = cursor_.string(); !name.empty(); name = cursor_.string()) directories.push_back(name);
    unit_.files.emplace_back();  // numbered from 1
    for (std::string_view name = cursor_.string(); !name.empty(); name = cursor_.string()) {
      add_file(directories, {name, cursor_.unsigned_leb()});
      cursor_.unsigned_leb();  // time
      cursor_.unsigned_leb();  // size
    }
  }

  void read_files() {
    std::vector<std::string_view> directories;
    for (const HeaderEntry& entry : read_entries()) directories.push_back(entry.path);
    for (const HeaderEntry& entry : read_entries()) add_file(directories, entry);
  }

  void add_file(const std::vector<std::string_view>& directories, const HeaderEntry& entry) {
    if (entry.directory >= directories.size()) throw BadBytes("a file of its line table has no directory");
    unit_.files.push_back(join(directories[entry.directory], entry.path));
  }

  std::vector<HeaderEntry> read_entries() {
    std::vector<std::pair<uint64_t, uint64_t>> format;  // content, form
    for (int left = cursor_.read<uint8_t>(); left > 0; --left) {
      const uint64_t content = cursor_.unsigned_leb();
      format.emplace_back(content, cursor_.unsigned_leb());
    }
    const uint64_t count = cursor_.unsigned_leb();
    if (count > cursor_.left()) throw BadBytes("a line table has more files than bytes");
    std::vector<HeaderEntry> entries(format.empty() ? 0 : count);
    for (HeaderEntry& entry : entries) {
      for (const auto& [content, form] : format) {
        const auto [number, text] = read_form(form);
        if (content == kPathContent) entry.path = text;
        if (content == kDirectoryContent) entry.directory = number;
      }
    }
    return entries;
  }

  std::pair<uint64_t, std::string_view> read_form(uint64_t form) {
    switch (form) {
      case kString:
        return {0, cursor_.string()};
      case kStrp:
        return {0, ByteCursor(strings_.debug_str, cursor_.read<uint32_t>()).string()};
      case kLineStrp:
        return {0, ByteCursor(strings_.debug_line_str, cursor_.read<uint32_t>()).string()};
      case kUdata:
        return {cursor_.unsigned_leb(), {}};
      case kData1:
        return {cursor_.read<uint8_t>(), {}};
      case kData2:
        return {cursor_.read<uint16_t>(), {}};
      case kData4:
        return {cursor_.read<uint32_t>(), {}};
      case kData8:
        return {cursor_.read<uint64_t>(), {}};
      case kData16:
        cursor_.take(16);
        return {};
      case kBlock:
        cursor_.take(cursor_.unsigned_leb());
        return {};
      default:
        throw BadBytes("the header of a line table has form " + std::to_string(form));
    }
  }

  void step() {
    const auto opcode = cursor_.read<uint8_t>();
    if (opcode >= opcode_base_) return special(opcode);
    switch (opcode) {
      case 0:
        return extended();
      case kCopy:
        return emit();
      case kAdvancePc:
        return advance(cursor_.unsigned_leb());
      case kAdvanceLine:
        return advance_line(cursor_.signed_leb());
      case kSetFile:
        row_.file = to_u32(cursor_.unsigned_leb());
        return;
      case kConstAddPc:
        return advance((255u - opcode_base_) / line_range_);
      case kFixedAdvancePc:
        row_.address += cursor_.read<uint16_t>();
        return;
      default:
        for (int left = operand_counts_[opcode - 1u]; left > 0; --left) cursor_.unsigned_leb();
    }
  }

  void special(uint8_t opcode) {
    const unsigned adjusted = opcode - opcode_base_;
    advance(adjusted / line_range_);
    advance_line(line_base_ + static_cast<int>(adjusted % line_range_));
    emit();
  }

  void extended() {
    const uint64_t size = cursor_.unsigned_leb();
    const size_t begin = cursor_.at();
    ByteCursor operands(cursor_.take(size));
    switch (operands.read<uint8_t>()) {
      case kEndSequence:
        row_.line = 0;
        emit();
        unit_.sequences.push_back(std::move(rows_));
        rows_.clear();
        row_ = kFirstRow;
        return;
      case kSetAddress:
        row_.origin = unit_at_ + begin + operands.at();
        row_.address = operands.left() == 4 ? operands.read<uint32_t>() : operands.read<uint64_t>();
        return;
      case kInlinedCall:
        row_.call_row = to_u32(operands.unsigned_leb());
        row_.function = to_u32(operands.unsigned_leb());
        if (row_.call_row > rows_.size()) throw BadBytes("a row of its line table is called from a later one");
        return;
      case kFunctionName:
        row_.function = to_u32(operands.unsigned_leb());
        return;
      default:
        return;  // other vendors' and later ones
    }
  }

  void advance(uint64_t instructions) { row_.address += instructions * instruction_size_; }
  void advance_line(int64_t lines) { row_.line += static_cast<uint32_t>(lines); }
  void emit() { rows_.push_back(row_); }

  static constexpr LineProgramRow kFirstRow{.file = 1, .line = 1};

  ByteCursor cursor_;
  size_t unit_at_;
  const LineStrings& strings_;
  uint16_t version_ = 0;
  uint8_t instruction_size_ = 1, line_range_ = 1, opcode_base_ = 1;
  int8_t line_base_ = 0;
  Bytes operand_counts_;
  LineUnit unit_;
  std::vector<LineProgramRow> rows_;
  LineProgramRow row_ = kFirstRow;
};

}  // namespace

std::vector<LineUnit> read_line_section(Bytes section, const LineStrings& strings) {
  std::vector<LineUnit> units;
  for (ByteCursor cursor(section); cursor.left() != 0;) {
    const auto size = cursor.read<uint32_t>();
    if (size == 0xFFFFFFFFu) throw BadBytes("its line table is of 64-bit DWARF");
    const size_t at = cursor.at();
    units.push_back(UnitReader(cursor.take(size), at, strings).read());
  }
  return units;
}

}  // namespace bragg
