// A device that is none: what a source of events has to do, and no more.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "backends/event_source.h"

namespace bragg::test {

// Its work is queued by `submit` and done by `work`. Threads: any; one mutex.
class ToySource final : public EventSource {
 public:
  static constexpr const char* kName = "toy";
  static constexpr ClockId kClock{7};
  static constexpr int64_t kTicksPerNs = 2;  // since its clock began, at kEpochNs
  static constexpr int64_t kEpochNs = 1'000'000'000;

  [[nodiscard]] static ToySource& instance();
  [[nodiscard]] static EventSource& row() { return instance(); }

  // What the program does with it.
  void submit(const std::string& name, int64_t start_ns, uint64_t duration_ns);
  void work();  // all that was submitted
  void set_power(int64_t time_ns, double watts);
  [[nodiscard]] bool is_collecting();
  [[nodiscard]] uint64_t drains() const;
  [[nodiscard]] uint64_t stops() const;
  void set_poll_ms(uint32_t poll_ms) { poll_ms_.store(poll_ms); }     // how long each takes from now on
  [[nodiscard]] bool is_polled() const { return is_polled_.load(); }  // for so long

  void start(const SourceOptions& options) override;
  void collect(const Collecting& wanted) override;
  void stop() override;
  void poll(uint64_t launches) override;
  void drain(int64_t deadline_ns, bool is_last) override;
  void gather() override;
  bool take(EventSink& sink) override;
  void describe(JsonObject& meta, const SourceOptions& options) const override;
  [[nodiscard]] uint64_t pending() const override;
  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  void after_fork_in_child() override;

 private:
  struct Work {
    std::string name;
    int64_t start_ns;
    uint64_t duration_ns;
  };
  struct Power {
    int64_t time_ns;
    double watts;
  };

  mutable std::mutex mutex_;
  bool is_started_ = false;
  bool is_on_ = false;
  uint64_t polls_ = 0;
  uint64_t drains_ = 0;
  uint64_t stops_ = 0;
  std::atomic<uint32_t> poll_ms_{0};
  std::atomic<bool> is_polled_{false};
  std::vector<Work> submitted_, done_, ready_, gathered_;
  std::vector<Power> power_;

  // Consumer side.
  bool has_tracks_ = false;
  TrackId lane_{}, unit_{}, counter_{};
};

}  // namespace bragg::test
