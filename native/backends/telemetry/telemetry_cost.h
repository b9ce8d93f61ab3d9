// What telemetry takes of the program's machine, and when it may take more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <utility>

#include "context/clock.h"

namespace bragg {

// Of thrifty telemetry.
inline constexpr double kThriftyShare = 0.001;

// Threads: that of telemetry.
//
// While the thread is within NVML it may hold a lock of the driver that the program waits for, whether it works, sleeps
// or is not scheduled: the whole time counts. Elsewhere only its CPU time can be missed by the program.
class TelemetryCost {
 public:
  // What `call` returns. It asks NVML.
  template <class Call>
  decltype(auto) within_nvml(Call&& call) {
    const Stopwatch watch(*this);
    return std::forward<Call>(call)();
  }

  [[nodiscard]] int64_t nvml_ns() const { return nvml_ns_; }
  [[nodiscard]] int64_t cpu_ns() const { return system_ns(CLOCK_THREAD_CPUTIME_ID); }
  // Of both, the bound of what the program waits for.
  [[nodiscard]] int64_t taken_ns() const { return nvml_ns_ + std::max<int64_t>(0, cpu_ns() - nvml_cpu_ns_); }

  // From now on it is thrifty: of what it took before nothing counts, except from `since_ns` of the monotonic clock on.
  void limit_since(int64_t since_ns, int64_t taken_ns) {
    limited_since_ns_ = since_ns;
    taken_before_ns_ = taken_ns;
  }
  // The moment of the monotonic clock from which on all that was taken is less than `kThriftyShare` of the time.
  [[nodiscard]] int64_t affordable_ns() const {
    return limited_since_ns_ + static_cast<int64_t>(static_cast<double>(taken_ns() - taken_before_ns_) / kThriftyShare);
  }

 private:
  class Stopwatch {
   public:
    explicit Stopwatch(TelemetryCost& cost) : cost_(cost), began_ns_(monotonic_ns()), cpu_began_ns_(cost.cpu_ns()) {}
    ~Stopwatch() {
      cost_.nvml_ns_ += monotonic_ns() - began_ns_;
      cost_.nvml_cpu_ns_ += cost_.cpu_ns() - cpu_began_ns_;
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    TelemetryCost& cost_;
    int64_t began_ns_, cpu_began_ns_;
  };

  int64_t nvml_ns_ = 0, nvml_cpu_ns_ = 0;
  int64_t limited_since_ns_ = 0, taken_before_ns_ = 0;
};

}  // namespace bragg
