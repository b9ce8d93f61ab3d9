#include "symbols/elf_image.h"

#include <algorithm>

namespace bragg {
namespace {

constexpr uint16_t kCudaMachine = 190;
constexpr uint32_t kSymbolTable = 2, kRelocationsWithAddend = 4, kNoBits = 8, kRelocations = 9;
constexpr uint64_t kExecutable = 4;
constexpr uint8_t kFunction = 2;

struct FileHeader {
  uint8_t magic[4], width, byte_order, rest[10];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_headers, section_headers;
  uint32_t flags;
  uint16_t size, program_header_size, n_program_headers, section_header_size, n_sections, name_section;
};
static_assert(sizeof(FileHeader) == 64);

struct SectionHeader {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t alignment, entry_size;
};
static_assert(sizeof(SectionHeader) == 64);

struct SymbolEntry {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
};
static_assert(sizeof(SymbolEntry) == 24);

struct RelocationEntry {
  uint64_t offset, info;
};

std::string_view string_at(Bytes table, uint64_t offset) {
  return table.empty() && offset == 0 ? std::string_view() : ByteCursor(table, offset).string();
}

}  // namespace

ElfImage::ElfImage(Bytes file) {
  read_sections(file);
  read_symbols();
}

void ElfImage::read_sections(Bytes file) {
  const auto header = ByteCursor(file).read<FileHeader>();
  if (std::memcmp(header.magic,
                  "\x7F"
                  "ELF",
                  4) != 0)
    throw BadBytes("it is not an ELF file");
  if (header.width != 2 || header.byte_order != 1 || header.machine != kCudaMachine)
    throw BadBytes("it is not a cubin");
  if (header.section_header_size != sizeof(SectionHeader)) throw BadBytes("its section headers have an unknown size");
  std::vector<SectionHeader> headers;
  ByteCursor cursor(file, header.section_headers);
  for (int i = 0; i < header.n_sections; ++i) headers.push_back(cursor.read<SectionHeader>());
  for (const SectionHeader& entry : headers) {
    const bool in_file = entry.type != kNoBits && entry.size != 0;
    const Bytes bytes = in_file ? ByteCursor(file, entry.offset).take(entry.size) : Bytes();
    sections_.push_back({{}, entry.type, entry.flags, bytes, entry.link, entry.info});
  }
  if (header.name_section >= sections_.size()) throw BadBytes("its sections have no names");
  for (size_t i = 0; i < headers.size(); ++i)
    sections_[i].name = string_at(sections_[header.name_section].bytes, headers[i].name);
}

void ElfImage::read_symbols() {
  const auto table = std::find_if(sections_.begin(), sections_.end(),
                                  [](const ElfSection& section) { return section.type == kSymbolTable; });
  if (table == sections_.end()) return;
  if (table->link >= sections_.size()) throw BadBytes("its symbols have no names");
  for (ByteCursor cursor(table->bytes); cursor.left() != 0;) {
    const auto entry = cursor.read<SymbolEntry>();
    symbols_.push_back({string_at(sections_[table->link].bytes, entry.name), (entry.info & 0xF) == kFunction,
                        entry.section, entry.value, entry.size});
  }
}

const ElfSection* ElfImage::find(std::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const ElfSection& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

bool ElfImage::is_code(uint32_t section) const {
  return section < sections_.size() && (sections_[section].flags & kExecutable) != 0;
}

std::unordered_map<uint64_t, ElfTarget> ElfImage::relocations_of(const ElfSection& section) const {
  const auto number = static_cast<uint32_t>(&section - sections_.data());
  std::unordered_map<uint64_t, ElfTarget> found;
  for (const ElfSection& table : sections_) {
    if ((table.type != kRelocations && table.type != kRelocationsWithAddend) || table.info != number) continue;
    for (ByteCursor cursor(table.bytes); cursor.left() != 0;) {
      const auto entry = cursor.read<RelocationEntry>();
      const uint64_t addend = table.type == kRelocationsWithAddend ? cursor.read<uint64_t>() : 0;
      const uint64_t symbol = entry.info >> 32;
      if (symbol >= symbols_.size()) throw BadBytes("a relocation names no symbol");
      found[entry.offset] = {symbols_[symbol].section, symbols_[symbol].value + addend};
    }
  }
  return found;
}

}  // namespace bragg
