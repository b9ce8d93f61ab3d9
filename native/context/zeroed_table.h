// A table whose entries are zero at first, and take memory only once they are written to.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace bragg {

template <class Entry, uint32_t kBits>
class ZeroedTable {
  static_assert(std::is_trivially_copyable_v<Entry> && std::is_trivially_destructible_v<Entry>);

 public:
  ZeroedTable()
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~ZeroedTable() { munmap(memory_, kBytes); }
  ZeroedTable(const ZeroedTable&) = delete;
  ZeroedTable& operator=(const ZeroedTable&) = delete;

  // The one place of a hash, by its upper bits.
  [[nodiscard]] Entry& at(uint64_t hash) noexcept { return static_cast<Entry*>(memory_)[hash >> (64 - kBits)]; }

 private:
  static constexpr size_t kBytes = sizeof(Entry) << kBits;

  void* memory_;
};

}  // namespace bragg
