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
using bragg::SavedAt;
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

// At the first instruction of a function.
constexpr bool kHasLink = bragg::kOwnRegisters.has_link;
constexpr SavedAt kFirstCfa{UnwindBase::StackPointer, kHasLink ? 0 : 8};
constexpr SavedAt kFirstReturnAddress = kHasLink ? SavedAt{UnwindBase::Link, 0} : SavedAt{UnwindBase::Cfa, -8};

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

// The tables, at address 512, of one function of 32 bytes at address 256, as compilers write them for aarch64 with
// signed return addresses:
//   paciasp; stp x29, x30, [sp, -32]!; mov x29, sp; ...; ldp x29, x30, [sp], 32; autiasp; ret
std::vector<uint8_t> arm_tables() {
  const std::vector<std::vector<uint8_t>> parts{
      {1, 0x1B, 3, 0x3B, 16, 0, 0, 0, 1, 0, 0, 0},  // header: one function
      {0x00, 0xFF, 0xFF, 0xFF, 40, 0, 0, 0},        // at 512 - 256, and its entry at 512 + 40
      {16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0},    // what is common to functions
      {4, 0x78, 30, 1, 0x1B, 0x0C, 31, 0},          // units of 4 and of -8 bytes; at first CFA = sp
      {33, 0, 0, 0, 24, 0, 0, 0},                   // the entry
      {0xD0, 0xFE, 0xFF, 0xFF, 32, 0, 0, 0, 0},     // the function
      {0x41, 0x2D},                                 // behind paciasp: signed
      {0x41, 0x0E, 32, 0x9D, 4, 0x9E, 3},           // behind stp: CFA = sp + 32, x29 at -32, x30 at -24
      {0x41, 0x0D, 29},                             // behind mov: CFA = x29 + 32
      {0x42, 0xDD, 0xDE, 0x0C, 31, 0},              // behind ldp
      {0x41, 0x2D},                                 // behind autiasp
  };
  std::vector<uint8_t> tables;
  for (const std::vector<uint8_t>& part : parts) tables.insert(tables.end(), part.begin(), part.end());
  return tables;
}
constexpr size_t kFirstInstruction = 57;

}  // namespace

TEST(the_first_instruction_of_every_function_finds_its_caller) {
  const Tables tables = own_tables();
  const std::vector<uint64_t> functions = functions_of(tables);
  CHECK(functions.size() > 100);
  uint32_t usual = 0;
  for (const uint64_t function : functions) {
    const UnwindRule rule = find_unwind_rule(tables.table, function);
    const bool is_usual =
        rule.function == function && rule.cfa == kFirstCfa && rule.return_address == kFirstReturnAddress;
    usual += is_usual ? 1 : 0;
  }
  // All but _start, which has no caller, parts moved out of functions (sanitizers make many), and tables of linkage.
  CHECK(usual > functions.size() / 2);
}

TEST(a_processor_with_a_link_register_has_the_return_address_there_until_it_is_saved) {
  const std::vector<uint8_t> tables = arm_tables();
  const UnwindTable table{tables, 512, 512, bragg::kArmRegisters};
  for (const uint64_t pc : {256u, 260u, 276u, 280u, 284u}) {
    const UnwindRule rule = find_unwind_rule(table, pc);
    CHECK_EQ(rule.function, 256u);
    CHECK(rule.cfa == SavedAt(UnwindBase::StackPointer, 0));
    CHECK(rule.return_address == SavedAt(UnwindBase::Link, 0));
    CHECK(rule.frame_pointer == SavedAt());
  }
  CHECK(find_unwind_rule(table, 264).cfa == SavedAt(UnwindBase::StackPointer, 32));
  const UnwindRule rule = find_unwind_rule(table, 268);
  CHECK(rule.cfa == SavedAt(UnwindBase::FramePointer, 32));
  CHECK(rule.return_address == SavedAt(UnwindBase::Cfa, -24));
  CHECK(rule.frame_pointer == SavedAt(UnwindBase::Cfa, -32));
}

TEST(a_function_without_a_caller_says_so_and_not_that_it_is_in_the_link_register) {
  std::vector<uint8_t> tables = arm_tables();
  tables[kFirstInstruction] = 0x07;  // undefined: x30
  tables[kFirstInstruction + 1] = 30;
  const UnwindTable table{tables, 512, 512, bragg::kArmRegisters};
  CHECK(find_unwind_rule(table, 256).is_known());
  CHECK(find_unwind_rule(table, 256).return_address == SavedAt());
}

TEST(instructions_of_one_processor_are_refused_for_another) {
  const std::vector<uint8_t> tables = arm_tables();
  const UnwindTable table{tables, 512, 512, bragg::kX86Registers};
  CHECK(!find_unwind_rule(table, 256).is_known());
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
