#include "context/peeked_memory.h"

#include <sys/uio.h>
#include <unistd.h>

namespace bragg {
namespace {

constexpr int kMaxBlocks = 3;  // those of generators lie alone
constexpr uintptr_t kPageBytes = 4096;

}  // namespace

bool peek_bytes(const void* from, void* into, size_t size) noexcept {
  const iovec source{const_cast<void*>(from), size}, target{into, size};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == static_cast<ssize_t>(size);
}

const void* PeekedMemory::copy_of(const void* frame, size_t size) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(frame);
  if (size > bytes_.size() || address < bytes_.size() || address > UINTPTR_MAX - size) return nullptr;
  if (address < start_ || address + size > start_ + n_bytes_) {
    const uintptr_t end = address + size, start = end - bytes_.size();
    const uintptr_t page = address & ~uintptr_t{kPageBytes - 1};
    // The page before may not be mapped.
    if (!load(start, end) && (page <= start || !load(page, end))) return nullptr;
  }
  return bytes_.data() + (address - start_);
}

bool PeekedMemory::load(uintptr_t start, uintptr_t end) noexcept {
  if (n_blocks_ == kMaxBlocks) return false;
  const bool is_mapped = peek_bytes(reinterpret_cast<const void*>(start), bytes_.data(), end - start);
  start_ = start;
  n_bytes_ = is_mapped ? end - start : 0;
  n_blocks_ += is_mapped ? 1 : 0;
  return is_mapped;
}

}  // namespace bragg
