#include "backends/cuda/samples/cubin_store.h"

#include "symbols/byte_cursor.h"
#include "symbols/elf_image.h"

namespace bragg {
namespace {

constexpr size_t kMaxCubinBytes = 16u << 20;
constexpr size_t kMaxBytes = 64u << 20;

}  // namespace

CubinStore& CubinStore::instance() {
  static CubinStore& store = *new CubinStore;  // modules are loaded until the process is gone
  return store;
}

bool CubinStore::has_lines(const void* cubin, size_t size_bytes) noexcept {
  try {
    return ElfImage({static_cast<const uint8_t*>(cubin), size_bytes}).find(".debug_line") != nullptr;
  } catch (const BadBytes&) {
    return false;  // the driver knows formats that we do not
  }
}

void CubinStore::keep(uint64_t crc, const void* cubin, size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (images_.contains(crc)) return;
  if (size_bytes > kMaxCubinBytes || size_bytes_ + size_bytes > kMaxBytes) {
    ++refused_;
    return;
  }
  size_bytes_ += size_bytes;
  const auto* bytes = static_cast<const uint8_t*>(cubin);
  images_.emplace(crc, std::make_shared<const std::vector<uint8_t>>(bytes, bytes + size_bytes));
}

CubinStore::Image CubinStore::find(uint64_t crc) {
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(crc);
  return found != images_.end() ? found->second : nullptr;
}

uint64_t CubinStore::refused() {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace bragg
