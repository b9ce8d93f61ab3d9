// The metrics that a program records itself: names, units and how values add up.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>

#include "context/frame_table.h"

namespace bragg {

// The numbers are part of the capture format (native/data/CAPTURE.md).
enum class MetricKind : uint32_t { Inclusive = 0, Exclusive = 1, Property = 2 };

struct MetricName {
  StringId name = StringId::None;
  StringId unit = StringId::None;
  MetricKind kind = MetricKind::Inclusive;
  bool is_float = true;
  friend bool operator==(const MetricName&, const MetricName&) = default;
};

// Threads: any; one mutex. Ids are dense and never reused.
class MetricNames {
 public:
  static MetricNames& instance();

  // None: the name has another unit, kind or type already.
  [[nodiscard]] MetricId intern(std::string_view name, std::string_view unit, MetricKind kind, bool is_float);
  [[nodiscard]] uint32_t size();
  [[nodiscard]] MetricName at(MetricId id);

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::deque<MetricName> metrics_;
};

}  // namespace bragg
