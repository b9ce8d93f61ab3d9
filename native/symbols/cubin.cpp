#include "symbols/cubin.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "symbols/elf_image.h"
#include "symbols/line_program.h"

namespace bragg {
namespace {

constexpr std::string_view kSourceLines = ".debug_line", kPtxLines = ".nv_debug_line_sass",
                           kPtxText = ".nv_debug_ptx_txt";

using Relocations = std::unordered_map<uint64_t, ElfTarget>;

Bytes bytes_of(const ElfSection* section) { return section == nullptr ? Bytes() : section->bytes; }

// Rows of the same address: the last one counts.
template <class Row>
void add_row(std::vector<Row>& rows, Row row) {
  if (!rows.empty() && rows.back().offset_bytes == row.offset_bytes)
    rows.back() = row;
  else
    rows.push_back(row);
}

// Where one sequence ends and another begins, the beginning counts: find() takes the last row of an offset.
template <class Row>
void sort_rows(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.offset_bytes, a.is_known()) < std::pair(b.offset_bytes, b.is_known());
  });
}

class CubinReader {
 public:
  explicit CubinReader(Bytes file) : elf_(file) {}

  Cubin read() {
    read_functions();
    read_source_lines();
    read_ptx_lines();
    for (auto& [number, section] : cubin_.sections) {
      sort_rows(section.lines);
      sort_rows(section.ptx_lines);
    }
    return std::move(cubin_);
  }

 private:
  void read_functions() {
    for (size_t number = 0; number < elf_.symbols().size(); ++number) {
      const ElfSymbol& symbol = elf_.symbols()[number];
      if (!symbol.is_function || !elf_.is_code(symbol.section)) continue;
      cubin_.functions.push_back({std::string(symbol.name), static_cast<uint32_t>(number), symbol.section,
                                  to_u32(symbol.value), to_u32(symbol.size)});
      cubin_.sections[symbol.section];
      if (symbol.value == 0) first_functions_[symbol.section] = symbol.name;
    }
  }

  void read_source_lines() {
    const ElfSection* section = elf_.find(kSourceLines);
    if (section == nullptr) return;
    const auto relocations = elf_.relocations_of(*section);
    for (const LineUnit& unit : units_of(*section)) {
      // Linkers for sm_90 and before join the names of all units and leave each unit's beginning at 0.
      const bool has_names = unit.names_at != 0 || !names_are_taken_;
      for (const auto& sequence : unit.sequences) add_sequence(unit, sequence, has_names, relocations);
    }
  }

  void add_sequence(const LineUnit& unit, const std::vector<LineProgramRow>& sequence, bool has_names,
                    const Relocations& relocations) {
    std::vector<uint32_t> locations;
    for (const LineProgramRow& row : sequence) {
      const auto place = place_of(row, relocations);
      const bool is_inlined = row.call_row != 0;
      names_are_taken_ |= is_inlined;
      if (row.line == 0) {
        locations.push_back(kUnknown);
      } else {
        if (row.file >= unit.files.size()) throw BadBytes("its line table names no file");
        const std::string function = is_inlined && has_names ? function_name(unit.names_at + row.function) : "";
        locations.push_back(location_id({name_id(unit.files[row.file]), row.line,
                                         place && is_known(function, place->section) ? name_id(function) : kUnknown,
                                         is_inlined ? locations[row.call_row - 1] : kUnknown}));
      }
      if (place) add_row(cubin_.sections[place->section].lines, {to_u32(place->offset), locations.back()});
    }
  }

  // Triton gives all functions that it inlines the name of the kernel.
  [[nodiscard]] bool is_known(const std::string& function, uint32_t section) const {
    const auto kernel = first_functions_.find(section);
    return !function.empty() && (kernel == first_functions_.end() || kernel->second != function);
  }

  void read_ptx_lines() {
    const ElfSection* section = elf_.find(kPtxLines);
    if (section == nullptr) return;
    const auto texts = read_ptx();
    const auto relocations = elf_.relocations_of(*section);
    for (const LineUnit& unit : units_of(*section)) {
      for (const auto& sequence : unit.sequences) {
        for (const LineProgramRow& row : sequence) {
          const auto place = place_of(row, relocations);
          if (!place) continue;
          const uint32_t text = row.line == 0 ? kUnknown : ptx_text_of(row, unit, texts);
          add_row(cubin_.sections[place->section].ptx_lines,
                  {to_u32(place->offset), text, text == kUnknown ? 0 : row.line});
        }
      }
    }
  }

  // Numbers of the PTX texts by section name.
  std::unordered_map<std::string_view, uint32_t> read_ptx() {
    std::unordered_map<std::string_view, uint32_t> numbers;
    for (const ElfSection& section : elf_.sections()) {
      if (!section.name.starts_with(kPtxText)) continue;
      numbers.emplace(section.name, static_cast<uint32_t>(cubin_.ptx.size()));
      std::string text(section.bytes.begin(), section.bytes.end());
      std::replace(text.begin(), text.end(), '\0', '\n');
      cubin_.ptx.push_back(std::move(text));
    }
    return numbers;
  }

  // The files of the PTX line table are sections. Only a linker, which brings several, names them reliably.
  [[nodiscard]] uint32_t ptx_text_of(const LineProgramRow& row, const LineUnit& unit,
                                     const std::unordered_map<std::string_view, uint32_t>& texts) const {
    if (texts.size() == 1) return 0;
    const auto text = texts.find(row.file < unit.files.size() ? unit.files[row.file] : std::string_view());
    return text == texts.end() ? kUnknown : text->second;
  }

  [[nodiscard]] std::vector<LineUnit> units_of(const ElfSection& section) const {
    return read_line_section(section.bytes,
                             {bytes_of(elf_.find(".debug_str")), bytes_of(elf_.find(".debug_line_str"))});
  }

  // Where the code of a row is; none when its section was removed.
  [[nodiscard]] std::optional<ElfTarget> place_of(const LineProgramRow& row, const Relocations& relocations) const {
    const auto target = relocations.find(row.origin);
    if (target == relocations.end() || !elf_.is_code(target->second.section)) return std::nullopt;
    return ElfTarget{target->second.section, target->second.offset + row.address};
  }

  [[nodiscard]] std::string function_name(uint64_t at) const {
    return std::string(ByteCursor(bytes_of(elf_.find(".debug_str")), at).string());
  }

  uint32_t name_id(const std::string& name) {
    const auto [entry, is_new] = name_ids_.try_emplace(name, static_cast<uint32_t>(cubin_.names.size()));
    if (is_new) cubin_.names.push_back(name);
    return entry->second;
  }

  uint32_t location_id(const SourceLocation& location) {
    const auto [entry, is_new] = location_ids_.try_emplace(location, static_cast<uint32_t>(cubin_.locations.size()));
    if (is_new) cubin_.locations.push_back(location);
    return entry->second;
  }

  ElfImage elf_;
  Cubin cubin_;
  std::unordered_map<uint32_t, std::string_view> first_functions_;  // by section
  bool names_are_taken_ = false;                                    // by an earlier unit
  std::unordered_map<std::string, uint32_t> name_ids_;
  std::map<SourceLocation, uint32_t> location_ids_;
};

}  // namespace

const SourceLocation* Cubin::find(const CubinFunction& function, uint64_t offset_bytes) const {
  const auto section = sections.find(function.section);
  if (section == sections.end()) return nullptr;
  const std::vector<LineRow>& rows = section->second.lines;
  const auto after = std::upper_bound(rows.begin(), rows.end(), function.offset_bytes + offset_bytes,
                                      [](uint64_t offset, const LineRow& row) { return offset < row.offset_bytes; });
  if (after == rows.begin() || std::prev(after)->location == kUnknown) return nullptr;
  return &locations[std::prev(after)->location];
}

Cubin read_cubin(Bytes file) { return CubinReader(file).read(); }

}  // namespace bragg
