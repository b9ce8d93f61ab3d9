// Steps of programs that JAX compiled: from the end of one call of a function to the end of its next. Which function is
// the one that trains is not known here; times of each are kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bragg {

// Threads: one at a time; the GIL's holder.
class [[gnu::visibility("default")]] CallSteps {
 public:
  static constexpr size_t kMaxFirst = 64;  // as first_calls.py: programs warm up within a few steps

  struct Function {
    int64_t ended_ns = 0;  // of the latest call; 0: the next step begins with its call
    int64_t called_ns = 0;
    int64_t longest_ns = 0;  // of the call that compiled
    int64_t total_ns = 0;    // of the steps
    uint64_t count = 0;
    std::map<uint32_t, uint64_t> buckets;  // steps by duration_bucket
    int64_t began_at_ns = 0;               // the first call, CLOCK_REALTIME
    int64_t last_at_ns = 0;                // the end of the last one
    std::vector<int64_t> ends_after_ns;    // ends of the first calls, since the first one began

    // A call has ended, at `at_ns` of CLOCK_REALTIME; the other times are of CLOCK_MONOTONIC.
    void add(int64_t began_ns, int64_t now_ns, int64_t at_ns);
  };

  // What lies between later calls and earlier ones is not a step.
  void begin();
  // Stays where it is.
  [[nodiscard]] Function& function(std::string_view name);
  [[nodiscard]] const std::map<std::string, Function, std::less<>>& functions() const { return functions_; }

 private:
  std::map<std::string, Function, std::less<>> functions_;
};

}  // namespace bragg
