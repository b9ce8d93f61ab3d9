#include "backends/code_images.h"

namespace bragg {
namespace {

constexpr size_t kMaxImageBytes = 16u << 20;
constexpr size_t kMaxBytes = 64u << 20;

}  // namespace

CodeImages& CodeImages::instance() {
  static CodeImages& store = *new CodeImages;  // modules are loaded until the process is gone
  return store;
}

void CodeImages::keep(uint64_t crc, const void* code, size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (images_.contains(crc)) return;
  if (size_bytes > kMaxImageBytes || size_bytes_ + size_bytes > kMaxBytes) {
    ++refused_;
    return;
  }
  size_bytes_ += size_bytes;
  const auto* bytes = static_cast<const uint8_t*>(code);
  images_.emplace(crc, std::make_shared<const std::vector<uint8_t>>(bytes, bytes + size_bytes));
}

CodeImages::Image CodeImages::find(uint64_t crc) {
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(crc);
  return found != images_.end() ? found->second : nullptr;
}

uint64_t CodeImages::refused() {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace bragg
