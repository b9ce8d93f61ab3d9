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
  // Of what is unread: 1.2 million kernels behind. Buffers that CUPTI holds do not count: one a thread that launches.
  static constexpr size_t kMaxUnreadBytes = 256u << 20;
  // Of an unread buffer, however little is in it: a thousand threads whose buffers are flushed at once lose nothing,
  // and 4,096 mappings are far from the system's limit.
  static constexpr size_t kLeastUnreadBytes = 64u << 10;
  // Free buffers that keep their memory for the next request. Further ones give it back and stay mapped, since CUPTI
  // might still look into a buffer that it has handed back.
  static constexpr size_t kMaxFree = 128;

  enum class Completion : uint8_t {
    Queued,
    Foreign,  // not one of ours: tools that use CUPTI in turn are handed each other's last buffers
    Refused,  // too many are unread: the caller counts what is in it, then recycles it
  };

  // Null only where no memory is left: CUPTI before 12.9 crashes on it. Never waits, for it is asked for inside a
  // launch. Zeroed, so that CUPTI need not clear it on the caller's time.
  [[nodiscard]] uint8_t* request();
  [[nodiscard]] Completion complete(const ActivityBuffer& buffer);
  // The oldest ones, at most so many.
  [[nodiscard]] std::vector<ActivityBuffer> take_completed(size_t at_most = SIZE_MAX);
  void recycle(const ActivityBuffer& buffer);

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void forget_all();  // in a forked child, which holds the lock

  [[nodiscard]] size_t allocated() const;

 private:
  [[nodiscard]] uint8_t* pop_free();

  mutable std::mutex mutex_;
  std::vector<uint8_t*> free_;
  std::vector<ActivityBuffer> completed_;
  size_t completed_bytes_ = 0;
  std::unordered_set<uint8_t*> allocated_;
};

}  // namespace bragg
