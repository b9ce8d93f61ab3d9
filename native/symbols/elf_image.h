// Sections, symbols and relocations of a cubin, which is a 64-bit ELF file.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/byte_cursor.h"

namespace bragg {

struct ElfSection {
  std::string_view name;
  uint32_t type = 0;
  uint64_t flags = 0;
  Bytes bytes;        // empty for sections that take no space in the file
  uint32_t link = 0;  // number of the section that this one refers to
  uint32_t info = 0;
};

struct ElfSymbol {
  std::string_view name;
  bool is_function = false;
  uint32_t section = 0;
  uint64_t value = 0;
  uint64_t size = 0;
};

// Where in another section a relocation points to.
struct ElfTarget {
  uint32_t section = 0;
  uint64_t offset = 0;
};

// Points into the bytes that it was made of. Throws BadBytes when they are not a cubin.
class ElfImage {
 public:
  explicit ElfImage(Bytes file);

  [[nodiscard]] const std::vector<ElfSection>& sections() const { return sections_; }
  [[nodiscard]] const std::vector<ElfSymbol>& symbols() const { return symbols_; }  // by symbol number
  [[nodiscard]] const ElfSection* find(std::string_view name) const;
  [[nodiscard]] bool is_code(uint32_t section) const;
  // By offset within the section.
  [[nodiscard]] std::unordered_map<uint64_t, ElfTarget> relocations_of(const ElfSection& section) const;

 private:
  void read_sections(Bytes file);
  void read_symbols();

  std::vector<ElfSection> sections_;
  std::vector<ElfSymbol> symbols_;
};

}  // namespace bragg
