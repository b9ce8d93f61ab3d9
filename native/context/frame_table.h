// Interned strings and frames of the process: the vocabulary of the calling context tree.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "context/ids.h"
#include "context/name_quota.h"

namespace bragg {

inline constexpr std::string_view kOtherNames = "<other names>";  // the name of all that are beyond the quota

// The numbers are part of the capture format (native/data/CAPTURE.md).
enum class FrameKind : uint32_t {
  Root = 0,
  Scope = 1,
  State = 2,
  Python = 3,
  Native = 4,
  Operator = 5,
  GpuApi = 6,
  Kernel = 7,
  Line = 8,
  Marker = 9,
  Memory = 10,
};

struct Frame {
  FrameKind kind = FrameKind::Root;
  StringId name = StringId::None;
  StringId file = StringId::None;
  uint32_t line = 0;
  uint32_t device = kNone;
  friend bool operator==(const Frame&, const Frame&) = default;
};

// A fact about a frame that is not part of its identity.
struct FrameAttribute {
  FrameId frame;
  StringId key;
  StringId value;
  friend bool operator==(const FrameAttribute&, const FrameAttribute&) = default;
};

struct FrameHash {
  size_t operator()(const Frame& frame) const noexcept;
};

// Threads: any; one mutex. Callers on hot paths keep the id they got. Ids are dense, never reused; frame 0 is the root.
class FrameTable {
 public:
  static FrameTable& instance();

  [[nodiscard]] StringId intern_string(std::string_view text);
  [[nodiscard]] FrameId intern(FrameKind kind, std::string_view name, uint32_t device = kNone);
  [[nodiscard]] FrameId intern_python(std::string_view name, std::string_view file, uint32_t line);
  [[nodiscard]] FrameId intern_native(std::string_view name, std::string_view file);

  void describe(FrameId frame, std::string_view key, std::string_view value);

  [[nodiscard]] uint32_t attribute_count();
  [[nodiscard]] Frame frame(FrameId id);
  [[nodiscard]] FrameAttribute attribute(uint32_t index);
  [[nodiscard]] std::vector<FrameAttribute> attributes_of(FrameId frame);
  [[nodiscard]] uint64_t other_names();                // how often a name of the program was beyond the quota
  [[nodiscard]] std::string_view string(StringId id);  // stays valid: strings are never removed

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  FrameTable();
  StringId intern_string_locked(std::string_view text);
  FrameId intern_locked(const Frame& frame);
  [[nodiscard]] std::string_view within_quota(FrameKind kind, std::string_view name);

  std::mutex mutex_;
  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, StringId> string_ids_;
  std::deque<Frame> frames_;
  std::deque<FrameAttribute> attributes_;
  std::unordered_map<FrameId, std::vector<FrameAttribute>> attributes_of_;
  NameQuota quota_;
  uint64_t other_names_ = 0;
  std::unordered_map<Frame, FrameId, FrameHash> frame_ids_;
};

[[nodiscard]] FrameId intern_frame(FrameKind kind, std::string_view name);

}  // namespace bragg
