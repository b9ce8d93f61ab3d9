#include "backends/gpu_memory/imported_function.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "context/loaded_library.h"

namespace bragg {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#else
constexpr uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#endif

// What a library's dynamic section says of its imports.
struct Imports {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  struct {
    const ElfW(Rela) * rows = nullptr;
    size_t bytes = 0;
  } tables[2];  // of calls, and of addresses
  bool has_rela = true;
};

// Loaders make addresses of these offsets, or leave them.
template <class Pointer>
Pointer* at(const Imports& imports, ElfW(Addr) value) {
  return reinterpret_cast<Pointer*>(value < imports.base ? imports.base + value : value);
}

Imports imports_of(const link_map& library) {
  Imports imports;
  imports.base = library.l_addr;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) imports.symbols = at<const ElfW(Sym)>(imports, value);
    if (entry->d_tag == DT_STRTAB) imports.names = at<const char>(imports, value);
    if (entry->d_tag == DT_JMPREL) imports.tables[0].rows = at<const ElfW(Rela)>(imports, value);
    if (entry->d_tag == DT_PLTRELSZ) imports.tables[0].bytes = value;
    if (entry->d_tag == DT_RELA) imports.tables[1].rows = at<const ElfW(Rela)>(imports, value);
    if (entry->d_tag == DT_RELASZ) imports.tables[1].bytes = value;
    if (entry->d_tag == DT_PLTREL) imports.has_rela = value == DT_RELA;
  }
  return imports;
}

void** slot_of(const Imports& imports, const char* symbol) {
  if (imports.symbols == nullptr || imports.names == nullptr || !imports.has_rela) return nullptr;
  for (const auto& table : imports.tables) {
    for (size_t i = 0; table.rows != nullptr && i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela) & row = table.rows[i];
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(row.r_info));
      if (type != kSlotTypes[0] && type != kSlotTypes[1]) continue;
      const char* name = imports.names + imports.symbols[ELF64_R_SYM(row.r_info)].st_name;
      if (std::strcmp(name, symbol) == 0) return reinterpret_cast<void**>(imports.base + row.r_offset);
    }
  }
  return nullptr;
}

// The table may be read-only once the loader has filled it.
struct Protection {
  uintptr_t page;
  size_t bytes;
  int flags = PROT_READ | PROT_WRITE;
};

Protection protection_of(const void* slot, ElfW(Addr) base) {
  struct Search {
    uintptr_t page, size;
    ElfW(Addr) base;
    bool is_read_only = false;
  };
  const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  Search search{reinterpret_cast<uintptr_t>(slot) / size * size, size, base};
  library_walks.walk(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (info->dlpi_addr != wanted.base) return 0;
        for (const ElfW(Phdr)* part = info->dlpi_phdr; part != info->dlpi_phdr + info->dlpi_phnum; ++part) {
          // The loader protects whole pages: the last one, if begun only, has data that is written.
          const uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
          if (part->p_type == PT_GNU_RELRO && wanted.page >= begin / wanted.size * wanted.size &&
              wanted.page < end / wanted.size * wanted.size)
            wanted.is_read_only = true;
        }
        return 1;
      },
      &search);
  return {search.page, size, search.is_read_only ? PROT_READ : PROT_READ | PROT_WRITE};
}

// Lazily bound: the entry leads back into the library, which would look the function up and write the entry anew.
bool leads_into(const void* address, ElfW(Addr) base) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && reinterpret_cast<ElfW(Addr)>(info.dli_fbase) == base;
}

}  // namespace

bool replace_imported_function(const std::string& library, const char* symbol, void* replacement,
                               std::atomic<void*>& original) {
  void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return false;
  void** const slot = slot_of(imports_of(*map), symbol);
  if (slot == nullptr) return false;
  void* const before = std::atomic_ref(*slot).load();
  void* const called = before == nullptr || leads_into(before, map->l_addr) ? dlsym(handle, symbol) : before;
  if (called == nullptr) return false;
  original.store(called);
  const Protection protection = protection_of(slot, map->l_addr);
  auto* const page = reinterpret_cast<void*>(protection.page);
  const bool is_read_only = (protection.flags & PROT_WRITE) == 0;
  if (is_read_only && mprotect(page, protection.bytes, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref(*slot).store(replacement);
  if (is_read_only) (void)mprotect(page, protection.bytes, PROT_READ);
  return true;
}

}  // namespace bragg
