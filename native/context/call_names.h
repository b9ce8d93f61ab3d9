// The calls that put work on a device, by a number that fits into an event.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "context/frame_table.h"

namespace bragg {

// Threads: any; one mutex. Sources number their calls once, before the first event.
class CallNames {
 public:
  static constexpr uint8_t kOther = 0;  // when all numbers are taken

  static CallNames& instance() {
    static CallNames& names = *new CallNames;  // driver threads may outlive static destruction
    return names;
  }

  [[nodiscard]] uint8_t number_of(std::string_view name) {
    const FrameId frame = FrameTable::instance().intern(FrameKind::GpuApi, name);
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < frames_.size(); ++i)
      if (frames_[i] == frame) return static_cast<uint8_t>(i);
    if (frames_.size() > UINT8_MAX) return kOther;
    frames_.push_back(frame);
    return static_cast<uint8_t>(frames_.size() - 1);
  }
  [[nodiscard]] FrameId frame(uint8_t number) {
    const std::lock_guard lock(mutex_);
    return frames_[number];
  }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  CallNames() { frames_.push_back(FrameTable::instance().intern(FrameKind::GpuApi, "driver call")); }

  std::mutex mutex_;
  std::vector<FrameId> frames_;  // by number
};

}  // namespace bragg
