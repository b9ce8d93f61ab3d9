// The fold of idle time, fed from Python with rows of a timeline: tests compare what it finds with that timeline.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "context/frame_table.h"
#include "data/device_activity.h"

namespace {

constexpr int64_t kSettleNs = 500'000'000;  // how often the recorder flushes

// As tests/support/idle_replay.py lays it out.
struct ReplayedRecord {
  int64_t start_ns, end_ns;
  int64_t arrives_ns;   // records are ordered by it
  int64_t launched_ns;  // of work: when its launch ended; 0: not known
  uint32_t node;        // of the host's code, also that which launched
  uint32_t thread;
  uint32_t kind;  // 0 a host span, 1 a kernel or set, 2 a copy, 3 a call that launched
  uint32_t device, context, stream;
};

struct ReplayedRow {
  uint32_t device, kind, node, unused;
  int64_t start_ns;
  uint64_t bin_ns, count, idle_ns, longest_ns;
};

struct Replay {
  std::vector<bragg::NodeId> nodes;
  std::unordered_map<bragg::NodeId, uint32_t> numbers;
  bragg::DeviceActivity activity;

  // Every node has a name of its own: what the profile tells apart stays apart.
  void add_nodes(size_t count, const uint32_t* parent, const uint32_t* kind) {
    nodes.push_back(bragg::kRootNode);
    for (size_t i = 1; i < count; ++i) {
      const auto frame = bragg::intern_frame(static_cast<bragg::FrameKind>(kind[i]), "replayed " + std::to_string(i));
      nodes.push_back(bragg::CallingContextTree::instance().child(nodes[parent[i]], frame));
    }
    for (size_t i = 0; i < count; ++i) numbers.try_emplace(nodes[i], static_cast<uint32_t>(i));
  }
  void take(const ReplayedRecord& record) {
    if (record.kind == 0 || record.kind == 3)
      return activity.note_host(record.thread, record.start_ns, record.end_ns, nodes[record.node], record.kind == 3);
    bragg::DeviceEvent event;
    event.kind = record.kind == 2 ? bragg::DeviceEventKind::Copy : bragg::DeviceEventKind::Kernel;
    event.device = record.device;
    event.context = record.context;
    event.stream = record.stream;
    event.start_ns = record.start_ns;
    event.end_ns = record.end_ns;
    activity.add(event, {nodes[record.node], record.thread, record.launched_ns});
  }
};

}  // namespace

// Rows of the idle table, at most `max_rows`, and the curves as JSON with a zero at its end, at most `max_text` bytes.
// The number of rows; -1: there was no room.
extern "C" [[gnu::visibility("default")]] int64_t idle_replay(size_t n_nodes, const uint32_t* parent,
                                                              const uint32_t* kind, size_t n_records,
                                                              const ReplayedRecord* records, size_t max_rows,
                                                              ReplayedRow* rows, size_t max_text, char* curves) {
  Replay replay;
  replay.add_nodes(n_nodes, parent, kind);
  int64_t settled_ns = 0;
  for (size_t i = 0; i < n_records; ++i) {
    replay.take(records[i]);
    if (records[i].arrives_ns - settled_ns < kSettleNs) continue;
    replay.activity.settle();
    settled_ns = records[i].arrives_ns;
  }
  replay.activity.settle_all();
  const std::string text = replay.activity.curves_json();
  const auto& found = replay.activity.idle().rows();
  if (found.size() > max_rows || text.size() >= max_text) return -1;
  std::memcpy(curves, text.c_str(), text.size() + 1);
  for (size_t i = 0; i < found.size(); ++i) {
    const bragg::IdleRow& row = found[i];
    rows[i] = {row.key.device,
               static_cast<uint32_t>(row.key.kind),
               replay.numbers.at(row.key.node),
               0,
               row.key.start_ns,
               static_cast<uint64_t>(replay.activity.idle().bin_ns()),
               row.count,
               row.idle_ns,
               row.longest_ns};
  }
  return static_cast<int64_t>(found.size());
}
