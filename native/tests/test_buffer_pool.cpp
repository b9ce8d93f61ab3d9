// Activity buffers: what CUPTI holds, what nobody reads, and what is kept for the next request.
#include "backends/cuda/buffer_pool.h"

#include <sys/mman.h>

#include <vector>

#include "check.h"

namespace {

using bragg::ActivityBuffer;
using bragg::BufferPool;
using Completion = bragg::BufferPool::Completion;

void unmap(uint8_t* buffer) { munmap(buffer, BufferPool::kBufferBytes); }

TEST(a_buffer_has_no_more_valid_bytes_than_bytes) {
  BufferPool pool;
  uint8_t* const buffer = pool.request();
  CHECK(pool.complete({buffer, BufferPool::kBufferBytes + 8}) == Completion::Queued);
  const std::vector<ActivityBuffer> completed = pool.take_completed();
  REQUIRE(completed.size() == 1);
  CHECK_EQ(completed[0].valid_bytes, BufferPool::kBufferBytes);
  uint8_t other = 0;
  CHECK(pool.complete({&other, 1}) == Completion::Foreign);
  pool.recycle(completed[0]);
  CHECK_EQ(pool.request(), buffer);
  unmap(buffer);  // a pool unmaps nothing that CUPTI may still write to
}

TEST(each_of_many_launching_threads_gets_a_buffer_and_none_is_refused_to_it) {
  BufferPool pool;
  std::vector<uint8_t*> held;
  for (size_t i = 0; i < 512; ++i) held.push_back(pool.request());
  CHECK_EQ(pool.allocated(), 512);
  for (uint8_t* buffer : held) buffer[100'000] = 1;
  for (uint8_t* buffer : held) pool.recycle({buffer, 200'000});
  for (size_t i = 0; i < held.size(); ++i) {
    uint8_t* const again = pool.request();
    CHECK_EQ(again[100'000], 0);
    unmap(again);
  }
  CHECK_EQ(pool.allocated(), held.size());
}

void check_limit(size_t valid_bytes, size_t most) {
  BufferPool pool;
  for (size_t i = 0; i < most; ++i) CHECK(pool.complete({pool.request(), valid_bytes}) == Completion::Queued);
  uint8_t* const last = pool.request();
  CHECK(pool.complete({last, valid_bytes}) == Completion::Refused);
  pool.recycle({last, valid_bytes});
  CHECK_EQ(pool.request(), last);
  for (const ActivityBuffer& buffer : pool.take_completed()) pool.recycle(buffer);
  CHECK(pool.complete({last, valid_bytes}) == Completion::Queued);
  for (size_t i = 0; i < most; ++i) unmap(pool.request());
  unmap(last);
}

TEST(buffers_that_nobody_reads_are_refused_beyond_256_mb) { check_limit(BufferPool::kBufferBytes, 256); }

TEST(buffers_of_thousands_of_threads_that_launch_little_are_flushed_at_once) { check_limit(8, 4096); }

}  // namespace
