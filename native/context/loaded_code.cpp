#include "context/loaded_code.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

namespace bragg {
namespace {

constexpr std::string_view kDriverLibraries[] = {"libcuda.so", "libcupti.so", "libbragg_core.so", "_core."};

constexpr std::string_view kSystemLibraries[] = {"libc.so", "libpthread.so", "libstdc++.so", "libc++.so"};

bool is_one_of(std::span<const std::string_view> libraries, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(libraries, [name](std::string_view each) { return name.starts_with(each); });
}

std::string executable_path() {
  char path[4096] = "";
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  return {path, size > 0 ? static_cast<size_t>(size) : 0};
}

std::string hexadecimal(Bytes bytes) {
  std::string text;
  char digits[3];
  for (const uint8_t byte : bytes) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

// u32 bytes of name, u32 bytes of content, u32 type; name and content, each filled up to 4 bytes
std::string build_id(Bytes notes) noexcept {
  constexpr uint32_t kBuildId = 3;
  const auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
  try {
    for (ByteCursor cursor(notes); cursor.left() >= 12;) {
      const auto name_size = cursor.read<uint32_t>();
      const auto size = cursor.read<uint32_t>();
      const auto type = cursor.read<uint32_t>();
      const Bytes name = cursor.take(padded(name_size));
      const Bytes content = cursor.take(padded(size));
      if (type == kBuildId && name_size == 4 && std::memcmp(name.data(), "GNU", 4) == 0)
        return hexadecimal(content.first(size));
    }
  } catch (const BadBytes&) {
  }
  return {};
}

Bytes memory(const dl_phdr_info& info, const ElfW(Phdr) & header) noexcept {
  return {reinterpret_cast<const uint8_t*>(info.dlpi_addr + header.p_vaddr), header.p_memsz};
}

const ElfW(Phdr) * segment_with(const dl_phdr_info& info, uint64_t address) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & header = info.dlpi_phdr[i];
    if (header.p_type == PT_LOAD && (header.p_flags & PF_R) != 0 && address >= header.p_vaddr &&
        address - header.p_vaddr < header.p_filesz)
      return &header;
  }
  return nullptr;
}

}  // namespace

constinit std::atomic<uint32_t> LoadedCode::epoch_{0};

LoadedCode& LoadedCode::instance() {
  static LoadedCode& code = *new LoadedCode;  // callbacks may come at any time
  return code;
}

LoadedCode::Changes LoadedCode::changes() noexcept {
  Changes changes;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        *static_cast<Changes*>(found) = {info->dlpi_adds, info->dlpi_subs};
        return 1;  // they are the same for all
      },
      &changes);
  return changes;
}

void LoadedCode::read_modules() {
  modules_.clear();
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        Module module;
        module.base = info->dlpi_addr;
        module.begin = ~uint64_t{0};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & header = info->dlpi_phdr[i];
          const uint64_t address = info->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
            module.begin = std::min(module.begin, address);
            module.end = std::max(module.end, address + header.p_memsz);
          } else if (header.p_type == PT_GNU_EH_FRAME) {
            if (const auto* segment = segment_with(*info, header.p_vaddr))
              module.table = {memory(*info, *segment), info->dlpi_addr + segment->p_vaddr, address};
          } else if (header.p_type == PT_NOTE && module.build_id.empty()) {
            module.build_id = build_id(memory(*info, header));
          }
        }
        module.path = info->dlpi_name;
        if (module.end != 0) static_cast<std::vector<Module>*>(argument)->push_back(std::move(module));
        return 0;
      },
      &modules_);
  std::ranges::sort(modules_, {}, &Module::begin);
  for (Module& module : modules_) {
    if (module.path.empty()) module.path = executable_path();
    if (is_one_of(kDriverLibraries, module.path)) module.owner = CodeOwner::Driver;
    if (is_one_of(kSystemLibraries, module.path)) module.owner = CodeOwner::System;
    if (interpreter_ >= module.begin && interpreter_ < module.end) module.owner = CodeOwner::Interpreter;
  }
}

void LoadedCode::refresh() {
  const Changes now = changes();
  if (now.loaded == seen_.loaded && now.unloaded == seen_.unloaded) return;
  read_modules();
  seen_ = now;
  places_.clear();  // addresses may be another library's, or of one that was none before
  epoch_.fetch_add(1, std::memory_order_acq_rel);
}

const LoadedCode::Module* LoadedCode::module_of(uint64_t pc) const {
  const auto after = std::ranges::upper_bound(modules_, pc, {}, &Module::begin);
  if (after == modules_.begin()) return nullptr;
  const Module& module = *std::prev(after);
  return pc < module.end ? &module : nullptr;
}

const std::string& LoadedCode::file_of(const Module& module) {
  const auto same_path = [&](const CodeFile& file) { return file.path == module.path; };
  const auto same = [&](const CodeFile& file) { return same_path(file) && file.build_id == module.build_id; };
  if (const auto found = std::ranges::find_if(files_, same); found != files_.end()) return found->name;
  const auto others = std::ranges::count_if(files_, same_path);
  const std::string number = others > 0 ? " (" + std::to_string(others + 1) + ")" : "";
  return files_.emplace_back(CodeFile{module.path + number, module.path, module.build_id}).name;
}

FrameId LoadedCode::frame_of(const Module& module, uint64_t address) {
  char offset[32];
  std::snprintf(offset, sizeof offset, "0x%llx", static_cast<unsigned long long>(address - module.base));
  return FrameTable::instance().intern_native(offset, file_of(module));
}

CodePlace LoadedCode::find(uint64_t pc) {
  const std::lock_guard lock(mutex_);
  if (const auto found = places_.find(pc); found != places_.end()) return found->second;
  refresh();
  CodePlace place;
  if (const Module* module = module_of(pc)) {
    place.owner = module->owner;
    if (module->table.header != 0) place.rule = find_unwind_rule(module->table, pc);
    const uint64_t address = place.rule.function != 0 ? place.rule.function : pc;
    if (module->owner == CodeOwner::Program || module->owner == CodeOwner::System)
      place.frame = frame_of(*module, address);
  }
  return places_[pc] = place;
}

void LoadedCode::set_interpreter(const void* function) {
  const std::lock_guard lock(mutex_);
  interpreter_ = reinterpret_cast<uintptr_t>(function);
  seen_ = {};
}

void LoadedCode::note_changes() {
  const std::lock_guard lock(mutex_);
  if (!modules_.empty()) refresh();
}

std::vector<CodeFile> LoadedCode::files() {
  const std::lock_guard lock(mutex_);
  return files_;
}

}  // namespace bragg
