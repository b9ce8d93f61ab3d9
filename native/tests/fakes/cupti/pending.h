// Records of unfinished work, where they are put into buffers in order of completion.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cupti/records.h"

namespace bragg::fake {

// One queue for each stream, since the work of a stream completes in its order. Threads: one at a time.
class Pending {
 public:
  void add(const RecordBytes& record) { lane_of(record).records.push_back(record); }

  // Gives `take` the records that are complete, the earliest first.
  template <class Take>
  void take_complete(uint64_t now_ns, Take&& take) {
    while (Lane* lane = earliest(now_ns)) {
      take(lane->records.front());
      lane->records.pop_front();
    }
  }

 private:
  struct Lane {
    uint64_t id;
    std::deque<RecordBytes> records;
  };

  Lane& lane_of(const RecordBytes& record) {
    for (Lane& lane : lanes_)
      if (lane.id == record.lane) return lane;
    return lanes_.emplace_back(Lane{record.lane, {}});
  }

  Lane* earliest(uint64_t now_ns) {
    Lane* found = nullptr;
    for (Lane& lane : lanes_) {
      if (lane.records.empty() || lane.records.front().complete_ns > now_ns) continue;
      if (found == nullptr || lane.records.front().complete_ns < found->records.front().complete_ns) found = &lane;
    }
    return found;
  }

  std::vector<Lane> lanes_;
};

}  // namespace bragg::fake
