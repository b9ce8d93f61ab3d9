// Records of a program that launches all the time, through the curve of a device and the fold of its idle time.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "data/device_activity.h"

namespace {

constexpr int64_t kStart = 1'795'404'889'000'000'000;
constexpr int64_t kLaunchNs = 6'000;
constexpr int kPaths = 300;
constexpr int kSettleEvery = 160'000;  // a second of launches

}  // namespace

// ns a record. `part`: 0 the curve alone, whose launches are not known; 1 with the history of the thread, three
// operators and the call for each launch; 2 and every launch ends a pause for which the host is to blame.
extern "C" double idle_fold_ns(int part, int records) {
  auto& tree = bragg::CallingContextTree::instance();
  static bragg::NodeId nodes[kPaths];
  for (int i = 0; i < kPaths && nodes[i] == bragg::kRootNode; ++i)
    nodes[i] = tree.child(bragg::kRootNode, bragg::intern_frame(bragg::FrameKind::Operator, "op" + std::to_string(i)));
  bragg::DeviceActivity activity;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < records; ++i) {
    const int64_t at_ns = kStart + i * kLaunchNs;
    const bragg::NodeId node = nodes[i % kPaths];
    if (part > 0) {
      activity.note_host(0, at_ns + 2'000, at_ns + 4'000, node);  // the call
      for (int depth = 1; depth <= 3; ++depth)
        activity.note_host(0, at_ns + 2'000 - 300 * depth, at_ns + 4'000 + 300 * depth, node);
    }
    bragg::DeviceEvent event;
    event.start_ns = at_ns + 5'000;
    event.end_ns = part == 1 ? at_ns + 11'000 : at_ns + 7'000;
    activity.add(event, part > 0 ? bragg::LaunchMoment{node, 0, at_ns + 4'000} : bragg::LaunchMoment{});
    if (i % kSettleEvery == kSettleEvery - 1) activity.settle();
  }
  activity.settle_all();
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / records;
}
