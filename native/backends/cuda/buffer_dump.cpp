#include "backends/cuda/buffer_dump.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "backends/cuda/driver/cupti_records.h"

namespace bragg {
namespace {

struct Header {
  char magic[8] = {'B', 'R', 'G', 'B', 'U', 'F', '1', '\0'};
  uint32_t cupti_version = 0;
  uint32_t buffer_bytes = 0;
  uint32_t names_bytes = 0;
  uint8_t zeros[44] = {};
};
static_assert(sizeof(Header) == 64);

// Visits the name field of every kernel record.
template <class Visit>
void for_each_name(std::span<uint8_t> buffer, uint32_t version, Visit&& visit) {
  for (size_t at = 0; at + sizeof(cupti::Kind) <= buffer.size();) {
    cupti::Kind kind;
    std::memcpy(&kind, &buffer[at], sizeof kind);
    const size_t size = cupti::record_size(kind, version);
    if (size == 0 || at + size > buffer.size()) return;
    if (kind == cupti::Kind::Kernel || kind == cupti::Kind::ConcurrentKernel)
      visit(&buffer[at + offsetof(cupti::KernelRecord, name)]);
    at += size;
  }
}

}  // namespace

void dump_buffer(const std::string& directory, std::span<uint8_t> buffer, uint32_t cupti_version) {
  static std::atomic<uint32_t> number{0};
  std::vector<uint8_t> copy(buffer.begin(), buffer.end());
  std::string names;
  std::unordered_map<std::string, uint64_t> offsets;
  for_each_name(copy, cupti_version, [&](uint8_t* field) {
    const char* name;
    std::memcpy(&name, field, sizeof name);
    uint64_t stored = 0;
    if (name != nullptr) {
      const auto [found, is_new] = offsets.try_emplace(name, names.size() + 1);
      if (is_new) names.append(name).push_back('\0');
      stored = found->second;
    }
    std::memcpy(field, &stored, sizeof stored);
  });
  Header header;
  header.cupti_version = cupti_version;
  header.buffer_bytes = static_cast<uint32_t>(copy.size());
  header.names_bytes = static_cast<uint32_t>(names.size());
  std::ofstream file(directory + "/" + std::to_string(getpid()) + "-" + std::to_string(number++) + ".buffer",
                     std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.write(reinterpret_cast<const char*>(copy.data()), static_cast<std::streamsize>(copy.size()));
  file.write(names.data(), static_cast<std::streamsize>(names.size()));
}

DumpedBuffer read_dumped_buffer(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  DumpedBuffer dumped;
  Header header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), header.magic, sizeof header.magic) != 0) return dumped;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (bytes.size() != sizeof header + header.buffer_bytes + header.names_bytes) return dumped;
  const auto buffer = bytes.begin() + sizeof header;
  dumped.cupti_version = header.cupti_version;
  dumped.bytes.assign(buffer, buffer + header.buffer_bytes);
  dumped.names.assign(buffer + header.buffer_bytes, bytes.end());
  for_each_name(dumped.bytes, dumped.cupti_version, [&](uint8_t* field) {
    uint64_t stored;
    std::memcpy(&stored, field, sizeof stored);
    const char* name = stored > 0 && stored <= dumped.names.size() ? &dumped.names[stored - 1] : nullptr;
    std::memcpy(field, &name, sizeof name);
  });
  return dumped;
}

}  // namespace bragg
