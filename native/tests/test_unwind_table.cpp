// Rules out of tables that are damaged: refused, never read outside of them.
#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "check.h"
#include "symbols/unwind_table.h"

namespace {

using bragg::Bytes;
using bragg::UnwindBase;
using bragg::UnwindRule;
using bragg::UnwindTable;

// A copy of the tables of the test program, as if they were loaded at address 4096, and its functions.
struct Tables {
  std::vector<uint8_t> segment;
  UnwindTable table;
  std::vector<uint64_t> functions;
};

constexpr uint64_t kBase = 4096;

Tables own_tables() {
  Tables tables;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto& found = *static_cast<Tables*>(argument);
        const ElfW(Phdr)* header = nullptr;
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) header = &info->dlpi_phdr[i];
        for (int i = 0; header != nullptr && i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || header->p_vaddr < segment.p_vaddr ||
              header->p_vaddr >= segment.p_vaddr + segment.p_filesz)
            continue;
          // From the file: in memory sanitizers guard what lies between variables.
          std::ifstream file("/proc/self/exe", std::ios::binary);
          file.seekg(static_cast<int64_t>(segment.p_offset));
          found.segment.resize(segment.p_filesz);
          file.read(reinterpret_cast<char*>(found.segment.data()), static_cast<int64_t>(segment.p_filesz));
          found.table.address = kBase + segment.p_vaddr;
          found.table.header = kBase + header->p_vaddr;
        }
        return 1;  // the first one is the program
      },
      &tables);
  tables.table.segment = tables.segment;
  return tables;
}

uint64_t header_offset(const Tables& tables) { return tables.table.header - tables.table.address; }

int32_t number_at(const Tables& tables, uint64_t offset) {
  int32_t number = 0;
  std::memcpy(&number, tables.segment.data() + offset, sizeof number);
  return number;
}

// The functions of the sorted table: 12 bytes after its beginning, one each 8 bytes.
std::vector<uint64_t> functions_of(const Tables& tables) {
  std::vector<uint64_t> functions;
  const uint64_t header = header_offset(tables);
  for (int32_t i = 0; i < number_at(tables, header + 8); ++i)
    functions.push_back(tables.table.header + static_cast<uint64_t>(int64_t{number_at(tables, header + 12 + 8 * i)}));
  return functions;
}

}  // namespace

TEST(the_first_instruction_of_every_function_finds_its_caller) {
  const Tables tables = own_tables();
  const std::vector<uint64_t> functions = functions_of(tables);
  CHECK(functions.size() > 100);
  uint32_t usual = 0;
  for (const uint64_t function : functions) {
    const UnwindRule rule = find_unwind_rule(tables.table, function);
    const bool is_usual = rule.function == function && rule.cfa == bragg::SavedAt{UnwindBase::StackPointer, 8} &&
                          rule.return_address == bragg::SavedAt{UnwindBase::Cfa, -8};
    usual += is_usual ? 1 : 0;
  }
  // All but _start, which has no caller, parts moved out of functions (sanitizers make many), and tables of linkage.
  CHECK(usual > functions.size() / 2);
}

TEST(an_address_outside_of_all_functions_has_no_rule) {
  const Tables tables = own_tables();
  CHECK(!find_unwind_rule(tables.table, 0).is_known());
  CHECK(!find_unwind_rule(tables.table, ~uint64_t{0}).is_known());
}

TEST(damaged_tables_are_never_read_outside) {
  Tables tables = own_tables();
  const std::vector<uint64_t> functions = functions_of(tables);
  const std::vector<uint8_t> intact = tables.segment;
  std::mt19937 random(7);
  const uint64_t first = header_offset(tables);
  for (int round = 0; round < 400; ++round) {
    for (int i = 0; i < 200; ++i)
      tables.segment[first + random() % (intact.size() - first)] = static_cast<uint8_t>(random());
    for (int i = 0; i < 20; ++i)
      (void)find_unwind_rule(tables.table, functions[random() % functions.size()] + random() % 64);
    std::copy(intact.begin() + static_cast<int64_t>(first), intact.end(),
              tables.segment.begin() + static_cast<int64_t>(first));
  }
}

TEST(tables_that_end_early_are_never_read_outside) {
  const Tables tables = own_tables();
  const std::vector<uint64_t> functions = functions_of(tables);
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const uint64_t size = header_offset(tables) + random() % (tables.segment.size() - header_offset(tables));
    const std::vector<uint8_t> cut(tables.segment.begin(), tables.segment.begin() + static_cast<int64_t>(size));
    const UnwindTable table{cut, tables.table.address, tables.table.header};
    for (int i = 0; i < 5; ++i) (void)find_unwind_rule(table, functions[random() % functions.size()]);
  }
}
