// Activity records as one subscriber has them: of the whole process with version 1 of CUPTI's functions, its own with
// version 2.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/cuda/activity_walker.h"
#include "backends/cuda/driver/cupti_library.h"

namespace bragg {

struct BufferCallbacks {
  cupti::BufferRequested* requested;
  cupti::BufferCompleted* completed;
  cupti::BufferRequested_v2* requested_v2;
  cupti::BufferCompleted_v2* completed_v2;
};

// Threads: any; its making and its first use, one.
class CuptiActivity {
 public:
  CuptiActivity() = default;
  // `cupti` lives as long as this. `is_shared`: subscribed with version 2, so that others may be, too.
  CuptiActivity(const CuptiLibrary& cupti, cupti::Subscriber subscriber, bool is_shared)
      : cupti_(&cupti), subscriber_(subscriber), is_shared_(is_shared) {}

  [[nodiscard]] bool is_shared() const { return is_shared_; }
  [[nodiscard]] cupti::Result register_buffers(const BufferCallbacks& callbacks) const;
  [[nodiscard]] cupti::Result enable(cupti::Kind kind) const;
  cupti::Result disable(cupti::Kind kind) const;
  // Attributes of one byte. An older CUPTI refuses those that it does not know.
  cupti::Result set(cupti::Attribute attribute, uint8_t value) const;
  [[nodiscard]] std::optional<uint8_t> get(cupti::Attribute attribute) const;
  // Since the last call.
  [[nodiscard]] uint64_t take_dropped(cuda::Context context, uint32_t stream) const;
  [[nodiscard]] NextRecord next_record() const;

 private:
  const CuptiLibrary* cupti_ = nullptr;
  cupti::Subscriber subscriber_ = nullptr;
  bool is_shared_ = false;
};

}  // namespace bragg
