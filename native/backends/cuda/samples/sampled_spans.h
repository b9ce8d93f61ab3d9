// When each GPU was sampled: only what ran meanwhile can have samples.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace bragg {

// Threads: any; one mutex, which is held for no call.
class SampledSpans {
 public:
  static SampledSpans& instance();

  void begin(uint32_t device, int64_t now_ns);
  void end(uint32_t device, int64_t now_ns);
  // How much of the time from `start_ns` to `end_ns` was sampled, as far as it is remembered.
  [[nodiscard]] int64_t overlap_ns(uint32_t device, int64_t start_ns, int64_t end_ns);

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Span {
    int64_t begin_ns;
    int64_t end_ns;
  };
  std::mutex mutex_;
  std::unordered_map<uint32_t, std::vector<Span>> of_device_;  // in order of time; the last may be open
};

}  // namespace bragg
