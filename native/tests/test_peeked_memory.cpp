// Memory that may be freed while it is read.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "check.h"
#include "context/peeked_memory.h"

namespace {

using bragg::PeekedMemory;

const void* at(uintptr_t address) { return reinterpret_cast<const void*>(address); }

TEST(memory_is_read_as_it_is) {
  std::array<uint64_t, 512> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = i;
  PeekedMemory memory;
  for (const size_t i : {500u, 499u, 300u, 1u}) {
    const void* copy = memory.copy_of(&words[i], sizeof words[i]);
    REQUIRE(copy != nullptr);
    uint64_t word = 0;
    std::memcpy(&word, copy, sizeof word);
    CHECK_EQ(word, words[i]);
  }
}

TEST(an_address_whose_end_is_beyond_all_memory_is_not_read) {
  constexpr size_t kSize = 64;
  std::array<std::byte, 4096> bytes{};
  for (size_t n_beyond = 0; n_beyond < kSize; ++n_beyond) {
    PeekedMemory memory;
    const void* last = at(UINTPTR_MAX - kSize + 1 + n_beyond);
    CHECK(memory.copy_of(last, kSize) == nullptr);
    CHECK(memory.copy_of(&bytes[4000], kSize) != nullptr);
    CHECK(memory.copy_of(last, kSize) == nullptr);  // neither is it taken for part of what was read
  }
}

TEST(memory_that_is_not_mapped_is_not_read) {
  const auto page = static_cast<size_t>(getpagesize());
  void* pages = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  const auto first = reinterpret_cast<uintptr_t>(pages);
  munmap(pages, page);
  munmap(reinterpret_cast<void*>(first + 2 * page), page);
  PeekedMemory memory;
  CHECK(memory.copy_of(at(first), 64) == nullptr);
  CHECK(memory.copy_of(at(first + page), 64) != nullptr);
  CHECK(memory.copy_of(at(first + 2 * page - 32), 64) == nullptr);
  CHECK(memory.copy_of(at(first + 2 * page - 64), 64) != nullptr);
  munmap(reinterpret_cast<void*>(first + page), page);
}

TEST(at_most_three_blocks_are_read) {
  static std::array<std::byte, 65'536> bytes{};
  PeekedMemory memory;
  for (const size_t offset : {60'000u, 40'000u, 20'000u}) CHECK(memory.copy_of(&bytes[offset], 64) != nullptr);
  CHECK(memory.copy_of(&bytes[10'000], 64) == nullptr);
}

}  // namespace
