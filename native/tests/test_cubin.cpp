// Cubins of real compilers (tests/golden/cubins), and damaged ones.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "check.h"
#include "symbols/cubin.h"
#include "symbols/line_program.h"

namespace {

using bragg::Cubin;
using bragg::CubinFunction;
using bragg::kUnknown;
using bragg::SourceLocation;

const std::filesystem::path kCubins = BRAGG_GOLDEN_DIR "/cubins";
constexpr uint32_t kInstructionBytes = 16;

std::vector<uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Cubin golden(const char* name) { return bragg::read_cubin(bytes_of(kCubins / (std::string(name) + ".cubin"))); }

const CubinFunction& function_of(const Cubin& cubin, const std::string& name) {
  return *std::find_if(cubin.functions.begin(), cubin.functions.end(),
                       [&](const CubinFunction& function) { return function.name == name; });
}

std::string chain_text(const Cubin& cubin, const SourceLocation* location) {
  std::string text;
  while (location != nullptr) {
    text += (text.empty() ? "" : " < ") + cubin.names[location->file] + ':' + std::to_string(location->line);
    location = location->call_site == kUnknown ? nullptr : &cubin.locations[location->call_site];
  }
  return text;
}

uint32_t ptx_line(const Cubin& cubin, const CubinFunction& function, uint32_t offset) {
  uint32_t line = 0;
  for (const bragg::PtxRow& row : cubin.sections.at(function.section).ptx_lines)
    if (row.offset_bytes <= function.offset_bytes + offset) line = row.line;
  return line;
}

// As in the .lines files.
std::string lines_text(const Cubin& cubin, const CubinFunction& function) {
  std::ostringstream text;
  std::string last;
  text << function.name << '\n';
  for (uint32_t offset = 0; offset < function.size_bytes; offset += kInstructionBytes) {
    const std::string row =
        std::to_string(ptx_line(cubin, function, offset)) + ' ' + chain_text(cubin, cubin.find(function, offset));
    if (row != last) text << "  0x" << std::hex << std::setw(4) << std::setfill('0') << offset << ' ' << row << '\n';
    last = row;
  }
  return text.str();
}

TEST(every_instruction_has_the_lines_and_call_sites_that_nvdisasm_shows) {
  int cubins = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCubins)) {
    if (entry.path().extension() != ".lines") continue;
    ++cubins;
    const Cubin cubin = golden(entry.path().stem().c_str());
    std::ifstream file(entry.path());
    const std::string expected{std::istreambuf_iterator<char>(file), {}};
    std::istringstream lines(expected);
    std::string found;
    for (std::string line; std::getline(lines, line);)
      if (line[0] != ' ') found += lines_text(cubin, function_of(cubin, line));
    CHECK_EQ(found, expected);
  }
  CHECK_EQ(cubins, 5);
}

TEST(an_inlined_function_has_its_name_and_the_kernel_has_none) {
  const Cubin cubin = golden("nvcc-13.5-inlined-sm80");
  std::vector<std::string> names;
  for (const SourceLocation& location : cubin.locations) {
    CHECK_EQ(location.function == kUnknown, location.call_site == kUnknown);
    if (location.function != kUnknown) names.push_back(cubin.names[location.function]);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  CHECK_EQ(names.size(), 3);
  CHECK_EQ(names.front(), "_Z4polyf");
  CHECK_EQ(names.back(), "_Z6sum_ofILi4EEfPKf");
}

TEST(names_that_a_linker_joined_are_those_of_their_unit) {
  const auto names_at = [](const Cubin& cubin, const std::string& file, uint32_t line) {
    std::string names;
    for (const SourceLocation& location : cubin.locations)
      if (cubin.names[location.file] == file && location.line == line && location.call_site != kUnknown)
        names += location.function == kUnknown ? "?" : cubin.names[location.function];
    return names;
  };
  CHECK_EQ(names_at(golden("nvcc-13.5-linked-sm100"), "/kernels/other.cu", 2), "_Z5otherf");
  CHECK_EQ(names_at(golden("nvcc-13.5-linked-sm90"), "/kernels/other.cu", 2), "?");  // it lost where they begin
}

TEST(the_name_of_the_kernel_that_triton_gives_to_all_that_it_inlines_is_not_believed) {
  const Cubin cubin = golden("triton-3.9-softmax-sm90");
  for (const SourceLocation& location : cubin.locations) CHECK_EQ(location.function, kUnknown);
  CHECK(std::any_of(cubin.locations.begin(), cubin.locations.end(),
                    [](const SourceLocation& location) { return location.call_site != kUnknown; }));
}

TEST(a_function_that_is_called_is_found_within_the_section_of_its_kernel) {
  const Cubin cubin = golden("triton-3.7-with-call-sm80");
  const CubinFunction& kernel = function_of(cubin, "with_call");
  const auto callee = std::find_if(cubin.functions.begin(), cubin.functions.end(),
                                   [](const CubinFunction& function) { return function.offset_bytes != 0; });
  REQUIRE(callee != cubin.functions.end());
  CHECK_EQ(callee->section, kernel.section);
  CHECK_EQ(chain_text(cubin, cubin.find(*callee, 0)), "/kernels/kernels.py:28");
  CHECK_EQ(cubin.find(*callee, 0), cubin.find(kernel, callee->offset_bytes));
  CHECK(cubin.find(kernel, kernel.size_bytes) == nullptr);
}

TEST(the_ptx_of_each_unit_is_kept) {
  const Cubin cubin = golden("nvcc-13.5-linked-sm100");
  REQUIRE(cubin.ptx.size() == 2);
  const auto text_of = [&](const char* kernel) {
    const uint32_t section = function_of(cubin, kernel).section;
    return cubin.ptx[cubin.sections.at(section).ptx_lines.front().text];
  };
  CHECK(text_of("_Z5thirdPKfPf").find(".entry _Z5thirdPKfPf(") != std::string::npos);
  CHECK(text_of("_Z6fourthPKfPf").find(".entry _Z6fourthPKfPf(") != std::string::npos);
}

// Bytes of a line section of DWARF 5 with one directory, one file and one row, for an address without relocation.
std::vector<uint8_t> dwarf5(uint8_t form_of_paths, const std::vector<uint8_t>& directory,
                            const std::vector<uint8_t>& file) {
  std::vector<uint8_t> header{1, 1, 1, 0xFB, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1};  // to the operand counts
  const auto append = [&](const std::vector<uint8_t>& bytes) {
    header.insert(header.end(), bytes.begin(), bytes.end());
  };
  append({1, 1, form_of_paths, 1});
  append(directory);
  append({2, 1, form_of_paths, 2, 0x0B, 1});
  append(file);
  append({0});
  const std::vector<uint8_t> program{0, 9, 2, 0x40, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0x13, 0, 1, 1};
  std::vector<uint8_t> unit{5, 0, 8, 0, static_cast<uint8_t>(header.size()), 0, 0, 0};
  unit.insert(unit.end(), header.begin(), header.end());
  unit.insert(unit.end(), program.begin(), program.end());
  std::vector<uint8_t> section{static_cast<uint8_t>(unit.size()), 0, 0, 0};
  section.insert(section.end(), unit.begin(), unit.end());
  return section;
}

TEST(file_names_of_dwarf_5_are_read_in_place_and_from_the_string_section) {
  const std::vector<uint8_t> strings{'/', 'k', 0, 'a', '.', 'c', 'u', 0};
  for (const auto& section :
       {dwarf5(0x08, {'/', 'k', 0}, {'a', '.', 'c', 'u', 0}), dwarf5(0x1F, {0, 0, 0, 0}, {3, 0, 0, 0})}) {
    const auto units = bragg::read_line_section(section, {{}, strings});
    REQUIRE(units.size() == 1 && units[0].sequences.size() == 1);
    CHECK_EQ(units[0].files.at(0), "/k/a.cu");
    const bragg::LineProgramRow& row = units[0].sequences[0].front();
    CHECK_EQ(row.address, 0x40);
    CHECK_EQ(row.file, 0);
    CHECK_EQ(row.line, 5);
  }
}

std::string error_of(const std::vector<uint8_t>& file) {
  try {
    (void)bragg::read_cubin(file);
    return "";
  } catch (const bragg::BadBytes& error) {
    return error.what();
  }
}

TEST(what_is_no_cubin_is_told) {
  CHECK_EQ(error_of({}), "it ends too early");
  CHECK_EQ(error_of(std::vector<uint8_t>(64)), "it is not an ELF file");
  std::vector<uint8_t> program = bytes_of("/proc/self/exe");
  CHECK_EQ(error_of(program), "it is not a cubin");
}

TEST(a_cubin_that_is_cut_anywhere_is_told) {
  const std::vector<uint8_t> whole = bytes_of(kCubins / "triton-3.9-softmax-sm90.cubin");
  for (size_t size = 0; size < whole.size(); size += 61) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    // Program headers, which nobody here reads, stand at the end.
    if (error_of(cut).empty() && whole.size() - size > 512) bragg::test::fail(__FILE__, __LINE__, std::to_string(size));
  }
}

TEST(damaged_cubins_give_an_error_or_rows_within_bounds) {
  std::mt19937 random(7);
  int errors = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCubins)) {
    if (entry.path().extension() != ".cubin") continue;
    const std::vector<uint8_t> whole = bytes_of(entry.path());
    for (int round = 0; round < 400; ++round) {
      std::vector<uint8_t> damaged = whole;
      for (uint32_t left = 1 + random() % 8; left > 0; --left)
        damaged[random() % damaged.size()] = static_cast<uint8_t>(random() % 4 == 0 ? 0xFF : random());
      try {
        const Cubin cubin = bragg::read_cubin(damaged);
        for (const SourceLocation& location : cubin.locations) {
          CHECK(location.file < cubin.names.size());
          CHECK(location.call_site == kUnknown || location.call_site < cubin.locations.size());
        }
        for (const CubinFunction& function : cubin.functions) (void)cubin.find(function, random() % 65536);
      } catch (const bragg::BadBytes&) {
        ++errors;
      }
    }
  }
  CHECK(errors > 100);
}

}  // namespace
