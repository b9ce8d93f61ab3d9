// Sources with a thread of their own, which talks to a library that may hang.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/event_source.h"
#include "backends/library_calls.h"

namespace bragg {

// Calls `run` on a thread that nobody joins. It blocks all signals: they are for the program's threads.
void begin_detached_thread(std::function<void()> run);

enum class Awaited : uint8_t { Came, LibraryHangs, ThreadIsSilent };

// What the thread shares with the others. Left behind with a thread that hangs.
template <class Point>
struct SharedPoints {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_begun = false;
  bool must_end = false;
  bool has_ended = false;
  LibraryCalls calls;
  std::vector<Point> points;
  uint64_t lost_points = 0;

  // Lock held. The consumer takes points every few ms: beyond `most` they are counted and lost.
  void add(const std::vector<Point>& more, size_t most) {
    const size_t fitting = std::min(most - std::min(most, points.size()), more.size());
    points.insert(points.end(), more.begin(), more.begin() + static_cast<ptrdiff_t>(fitting));
    lost_points += more.size() - fitting;
  }
  void note_end() {
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_all();
  }
  // Until the thread has made it so. `patience` is with one call of the library.
  template <class Condition>
  [[nodiscard]] Awaited await(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience,
                              Condition&& is_so) {
    const auto until = std::chrono::steady_clock::now() + kLongestWait;
    CallPatience left(patience, calls.look());
    while (!changed.wait_for(lock, kBetweenLooks, is_so)) {
      if (left.is_over(calls.look(), kBetweenLooks)) return Awaited::LibraryHangs;
      if (std::chrono::steady_clock::now() >= until) return Awaited::ThreadIsSilent;
    }
    return Awaited::Came;
  }

 private:
  static constexpr std::chrono::milliseconds kBetweenLooks{20};
  static constexpr std::chrono::seconds kLongestWait{10};  // for a thread that gets no core
};

// `Shared` is a SharedPoints<Point>; a Point has a `time_ns` and a `value`.
template <class Shared, class Point>
class ThreadedSource : public EventSource {
 public:
  void poll(uint64_t) override {}
  void drain(int64_t, bool) override {}

  void gather() override {
    const std::shared_ptr<Shared> shared = current();
    if (shared == nullptr) return;
    const std::lock_guard lock(shared->mutex);
    gathered_.insert(gathered_.end(), shared->points.begin(), shared->points.end());
    shared->points.clear();
    gather_more(*shared);
  }
  bool take(EventSink& sink) override {
    for (const Point& point : std::exchange(gathered_, {}))
      sink.take(CounterSample{track_of(point, sink), point.time_ns, point.value});
    return false;
  }

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  // The thread is the parent's, and so is the lock that it may hold.
  void after_fork_in_child() override {
    new (&mutex_) std::mutex;
    new (&shared_) std::shared_ptr<Shared>;
    end_ = Awaited::Came;
    gathered_.clear();
    forget();
  }

 protected:
  ~ThreadedSource() = default;

  [[nodiscard]] virtual std::string_view library() const = 0;  // that the thread calls
  [[nodiscard]] std::string why_silent(Awaited how) const {
    const std::string name(library());
    return how == Awaited::LibraryHangs ? name + " does not return"
                                        : "the thread that asks " + name + " did not answer for 10 s";
  }

  // Consumer side.
  virtual void gather_more(const Shared&) {}  // its lock held
  [[nodiscard]] virtual TrackId track_of(const Point& point, EventSink& sink) = 0;
  virtual void forget() = 0;  // what is the parent's

  // One thread at a time, and none after one that hangs.
  void begin(std::shared_ptr<Shared> shared, void (*run)(const std::shared_ptr<Shared>&)) {
    prepare(std::move(shared));
    begin_prepared(run);
  }
  void prepare(std::shared_ptr<Shared> shared) {
    const std::lock_guard lock(mutex_);
    if ((shared_ == nullptr || has_ended(*shared_)) && !hangs()) shared_ = std::move(shared);
  }
  void begin_prepared(void (*run)(const std::shared_ptr<Shared>&)) {
    const std::lock_guard lock(mutex_);
    if (shared_ == nullptr || !note_begin(*shared_)) return;
    begin_detached_thread([shared = shared_, run] {
      shared->calls.note_thread();
      run(shared);
      shared->note_end();
    });
  }
  // Waits for its end, and says once that it did not come, and what is missing.
  void end(std::chrono::milliseconds patience, const char* missing) {
    const std::shared_ptr<Shared> shared = current();
    if (shared == nullptr || hangs()) return;
    std::unique_lock lock(shared->mutex);
    shared->must_end = true;
    shared->changed.notify_all();
    if (!shared->has_begun) return;
    end_ = shared->await(lock, patience, [&] { return shared->has_ended; });
    if (hangs()) std::fprintf(stderr, "bragg: %s: %s\n", why_silent(end_).c_str(), missing);
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    shared_.reset();
  }

  // nullptr: there is no thread.
  [[nodiscard]] std::shared_ptr<Shared> current() const {
    const std::lock_guard lock(mutex_);
    return shared_;
  }
  [[nodiscard]] bool hangs() const { return end_ != Awaited::Came; }
  [[nodiscard]] Awaited end_state() const { return end_; }

 private:
  // False: its thread was begun before, or is not wanted any more.
  [[nodiscard]] static bool note_begin(Shared& shared) {
    const std::lock_guard lock(shared.mutex);
    return !shared.must_end && !std::exchange(shared.has_begun, true);
  }
  [[nodiscard]] static bool has_ended(Shared& shared) {
    const std::lock_guard lock(shared.mutex);
    return shared.has_ended;
  }

  mutable std::mutex mutex_;  // of `shared_`
  std::shared_ptr<Shared> shared_;
  std::atomic<Awaited> end_{Awaited::Came};  // of the last thread that was to end
  std::vector<Point> gathered_;
};

}  // namespace bragg
