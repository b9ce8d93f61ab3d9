// Activity buffers: handed to CUPTI, queued for the consumer, and back.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace bragg {

struct ActivityBuffer {
  uint8_t* data = nullptr;
  size_t valid_bytes = 0;
};

// Threads: any.
class BufferPool {
 public:
  // 1 MiB: 4,800 kernel records. CUPTI 13 gives every launching thread a buffer of its own, so small beats few.
  static constexpr size_t kBufferBytes = 1u << 20;
  // Beyond this many, a request waits for the consumer before it allocates: 32 MB are 150,000 kernels behind.
  static constexpr size_t kMaxBuffers = 32;

  // Never null: CUPTI before 12.9 crashes on a null buffer. Zeroed, so that CUPTI need not clear it on the caller's
  // time.
  [[nodiscard]] uint8_t* request();
  // False: not one of ours. Tools that use CUPTI in turn are handed each other's last buffers.
  [[nodiscard]] bool complete(uint8_t* data, size_t valid_bytes);
  [[nodiscard]] std::vector<ActivityBuffer> take_completed();
  void recycle(const ActivityBuffer& buffer);
  void forget_all();  // in a forked child

  [[nodiscard]] size_t allocated() const;

 private:
  [[nodiscard]] uint8_t* pop_free();

  mutable std::mutex mutex_;
  std::vector<uint8_t*> free_;
  std::vector<ActivityBuffer> completed_;
  std::unordered_set<uint8_t*> allocated_;
};

}  // namespace bragg
