// The strings, frames, nodes and tracks that one capture refers to.
#pragma once

#include <cstdint>
#include <vector>

#include "context/calling_context_tree.h"
#include "data/capture_writer.h"
#include "data/per_id.h"

namespace bragg {

enum class TrackKind : uint32_t { HostThread = 1, GpuStream = 2, Counter = 3, Ranges = 4, DeviceUnit = 5, Samples = 6 };

struct Track {
  TrackKind kind;
  uint32_t device;
  uint32_t context;  // of a counter its unit, a string; of a unit of a device its ClockId
  uint32_t stream;   // system thread id of a host thread; number of a unit
  StringId name;
};

// Ids of the process become ids of the capture, in the order in which it needs them.
template <class T>
class CaptureIds {
 public:
  [[nodiscard]] uint32_t find(T id) const { return ids_.find(id); }
  uint32_t add(T id) {
    uint32_t& known = ids_[id];
    if (known == kNone) {
      known = size();
      known_.push_back(id);
    }
    return known;
  }
  [[nodiscard]] const std::vector<T>& all() const { return known_; }  // ids of the process
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(known_.size()); }

  // Those that are not in the file yet.
  [[nodiscard]] std::vector<T> unwritten() const { return {known_.begin() + written_, known_.end()}; }
  [[nodiscard]] uint32_t written() const { return written_; }
  void note_written() { written_ = size(); }
  void forget_written() { written_ = 0; }

 private:
  PerId<T, uint32_t> ids_{kNone};
  std::vector<T> known_;
  uint32_t written_ = 0;
};

// One phase of many refers to few of the ids that the process has met. Threads: the session's.
class Vocabulary {
 public:
  Vocabulary() { (void)node(kRootNode); }

  // The capture's ids. What they mean is written by the next `write`, which comes before the rows that refer to them.
  [[nodiscard]] uint32_t string(StringId id);  // None stays: kNone
  [[nodiscard]] uint32_t frame(FrameId id);
  [[nodiscard]] uint32_t node(NodeId id);
  [[nodiscard]] uint32_t track(TrackId id);

  // Scopes and states that were met since this began, in that order: one without a value is in the tree, too.
  void add_new_nodes();

  // What is new since the last time. `tracks`: of the process.
  void write(CaptureWriter& writer, const std::vector<Track>& tracks);
  void forget_written();  // all is new to another file

 private:
  [[nodiscard]] Chunk nodes_chunk();
  [[nodiscard]] Chunk frames_chunk();
  [[nodiscard]] Chunk strings_chunk() const;
  [[nodiscard]] Chunk tracks_chunk(const std::vector<Track>& tracks);
  [[nodiscard]] Chunk attributes_chunk();
  [[nodiscard]] Chunk metric_names_chunk();

  CaptureIds<StringId> strings_;
  CaptureIds<FrameId> frames_;
  CaptureIds<NodeId> nodes_;
  CaptureIds<TrackId> tracks_;
  uint32_t nodes_seen_ = CallingContextTree::instance().size();
  uint32_t attributes_seen_ = 0;
  uint32_t metric_names_written_ = 0;  // their ids are the process's
};

}  // namespace bragg
