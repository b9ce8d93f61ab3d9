// A stand-in for PyTorch's caching allocator, libc10_cuda.so: blocks of whole 512 B, out of segments of 2 MiB that are
// never given back. It tells each block as PyTorch does, with its lock held.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#define EXPORTED [[gnu::visibility("default")]]

namespace c10 {

struct Device {
  int8_t type;
  int8_t index;
};

void reportMemoryUsageToProfiler(void* block, int64_t bytes, size_t allocated, size_t reserved, Device device);

namespace {

constexpr size_t kBlockBytes = 512, kSegmentBytes = 2u << 20;
constexpr int8_t kCuda = 1;

struct Allocator {
  std::map<uint64_t, size_t> blocks;
  uint64_t next_address = 0x7f0000000000;
  size_t allocated = 0;
  size_t reserved = 0;
};

std::mutex mutex;
std::map<int8_t, Allocator> allocators;

}  // namespace
}  // namespace c10

extern "C" EXPORTED uint64_t fake_allocate(size_t bytes, int device) {
  const std::lock_guard lock(c10::mutex);
  const c10::Device where{c10::kCuda, static_cast<int8_t>(device)};
  c10::Allocator& allocator = c10::allocators[where.index];
  const size_t rounded = (bytes + c10::kBlockBytes - 1) / c10::kBlockBytes * c10::kBlockBytes;
  const uint64_t address = allocator.next_address;
  allocator.next_address += rounded;
  allocator.blocks[address] = rounded;
  allocator.allocated += rounded;
  const size_t segments = (allocator.allocated + c10::kSegmentBytes - 1) / c10::kSegmentBytes;
  allocator.reserved = std::max(allocator.reserved, segments * c10::kSegmentBytes);
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), static_cast<int64_t>(rounded), allocator.allocated,
                                   allocator.reserved, where);
  return address;
}

extern "C" EXPORTED void fake_free(uint64_t address, int device) {
  const std::lock_guard lock(c10::mutex);
  const c10::Device where{c10::kCuda, static_cast<int8_t>(device)};
  c10::Allocator& allocator = c10::allocators[where.index];
  const auto found = allocator.blocks.find(address);
  if (found == allocator.blocks.end()) return;
  const size_t bytes = found->second;
  allocator.blocks.erase(found);
  allocator.allocated -= bytes;
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), -static_cast<int64_t>(bytes), allocator.allocated,
                                   allocator.reserved, where);
}
