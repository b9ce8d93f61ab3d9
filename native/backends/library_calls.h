// Whether a thread hangs within the library that it calls, or only lacks a core.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

namespace bragg {

// What a thread is found at.
struct CallLook {
  uint64_t call = 0;         // odd: within the library
  bool is_runnable = false;  // it runs, or waits for a core
  int64_t cpu_ns = 0;        // that it has had
};

// Threads: `note_thread` and `within` the one that calls; `look` any.
class LibraryCalls {
 public:
  void note_thread();  // before its first call
  // What `call` returns. It asks the library.
  template <class Call>
  decltype(auto) within(Call&& call) {
    const Mark mark(number_);
    return std::forward<Call>(call)();
  }
  [[nodiscard]] CallLook look() const;

 private:
  class Mark {
   public:
    explicit Mark(std::atomic<uint64_t>& number) : number_(number) { ++number_; }
    ~Mark() { ++number_; }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    std::atomic<uint64_t>& number_;
  };

  std::atomic<uint64_t> number_{0};
  std::atomic<int> thread_{0};  // 0: not known
  std::atomic<clockid_t> cpu_clock_{0};
};

// Patience with one call, by the time in which it sleeps or has a core: neither the wait for a core counts, nor what
// the thread does outside of the library.
class CallPatience {
 public:
  CallPatience(std::chrono::nanoseconds patience, const CallLook& first)
      : patience_ns_(patience.count()), before_(first) {}

  // `since`: the look before.
  [[nodiscard]] bool is_over(const CallLook& now, std::chrono::nanoseconds since) {
    const bool is_same_call = now.call % 2 == 1 && now.call == before_.call;
    const int64_t could_return_ns = now.is_runnable ? now.cpu_ns - before_.cpu_ns : since.count();
    lasted_ns_ = is_same_call ? lasted_ns_ + could_return_ns : 0;
    before_ = now;
    return lasted_ns_ >= patience_ns_;
  }

 private:
  int64_t patience_ns_;
  int64_t lasted_ns_ = 0;
  CallLook before_;
};

}  // namespace bragg
