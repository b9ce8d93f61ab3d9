// Where the work of CUDA graphs belongs in the tree: launch -> <captured_at> -> capture path -> kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/device_event.h"
#include "backends/graph_registry.h"
#include "context/hash.h"
#include "data/correlation_map.h"
#include "data/graph_readings.h"

namespace bragg {

// What is known of the records of one node of a graph, launched from one place.
struct CapturedPlace {
  GraphNodeId node = GraphNodeId::None;  // None: empty
  const char* name = nullptr;            // the record's
  FrameId frame = FrameId::None;
  const CapturedNode* captured = nullptr;          // nullptr: not known
  ContextNodes nodes{NodeId::None, NodeId::None};  // None: no session needed it yet
};

// Values of a graph that was launched `count` times.
struct ReplayedValues {
  Launch launch;
  std::shared_ptr<const GraphVersion> graph;
  uint64_t count;
};

// The path of a captured node below the launch that runs it.
[[nodiscard]] NodeId captured_below(NodeId launch, NodeId captured);

// Threads: consumer only.
class CapturedPaths {
 public:
  // A launch of a graph that is known: its values count once more.
  void note_launch(const Launch& launch);
  // That launch failed.
  void take_back(const Launch& launch);
  // A launch that no session records: the values that it reads come nevertheless.
  void note_unrecorded_launch(const Launch& launch);
  // For records of conditional graphs, which have no correlation id: the launch of the executable graph; if there were
  // several, at what their places have in common. nullptr: it was not launched.
  [[nodiscard]] const Launch* launch_of(GraphId exec) const;

  // For a value that a kernel of ours read in a graph: see GraphReadings.
  template <class Give>
  void take_reading(const ArrivedValue& value, Give&& give) {
    readings_.take(value, give);
  }

  // `frame_of(name)`: the frame of the record if its kernel is called `name`. Valid until the next call.
  template <class FrameOf>
  [[nodiscard]] CapturedPlace& place_of(const Launch& launch, const DeviceEvent& event, FrameOf&& frame_of) {
    Replay& replay = replay_of(launch);
    CapturedPlace& place = replay.places.find(event.graph_node);
    if (place.node == event.graph_node && place.name == event.name) return place;
    const CapturedNode* captured = replay.graph != nullptr ? replay.graph->nodes.find(event.graph_node) : nullptr;
    if (captured != nullptr && !captured->is_known()) captured = nullptr;
    const FrameId frame = frame_of(captured != nullptr ? captured->name : StringId::None);
    return replay.places.set({event.graph_node, event.name, frame, captured});
  }
  // The tree node of that place, for sessions with or without Python call paths.
  [[nodiscard]] NodeId node_of(CapturedPlace& place, const Launch& launch, bool python_context) {
    NodeId& node = python_context ? place.nodes.python : place.nodes.shadow;
    if (node == NodeId::None) node = find_node(place, launch, python_context);
    return node;
  }

  // The launches since the last call that count values.
  [[nodiscard]] std::vector<ReplayedValues> take_values();
  // Forgets graphs whose last records have come, and keeps the rest within bounds; before it, take the values.
  void trim(int64_t now_ns);
  void clear();

 private:
  static constexpr size_t kMaxPlaces = 1u << 20;  // 80 MB: tables are half full or less

  // By node; the ids of one graph's nodes follow one another.
  class PlaceTable {
   public:
    [[nodiscard]] CapturedPlace& find(GraphNodeId node);  // an empty one if it is not there
    CapturedPlace& set(const CapturedPlace& place);
    [[nodiscard]] size_t size() const { return used_; }

   private:
    std::vector<CapturedPlace> slots_ = std::vector<CapturedPlace>(64);
    size_t used_ = 0;
  };
  // The launches of one version of a graph from one place.
  struct Replay {
    Launch launch;
    std::shared_ptr<const GraphVersion> graph;  // nullptr: not known
    PlaceTable places;
    std::unordered_map<SessionMask, uint64_t> launches;  // by mask, since the values were taken
  };
  struct Key {
    GraphVersionId graph;
    NodeId shadow;
    NodeId python;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const noexcept { return hash_of(pair_of(key.shadow, key.python), key.graph); }
  };
  [[nodiscard]] static Key key_of(const Launch& launch) { return {launch.graph, launch.shadow, launch.python}; }
  [[nodiscard]] Replay& replay_of(const Launch& launch);
  void note_exec(GraphId exec, const Launch& launch);
  void note_readings(const GraphVersion& graph, const Launch& launch);
  [[nodiscard]] NodeId find_node(const CapturedPlace& place, const Launch& launch, bool python_context);

  std::unordered_map<Key, std::unique_ptr<Replay>, KeyHash> replays_;
  Replay* last_ = nullptr;                        // records of one launch come together
  std::unordered_map<GraphId, Launch> launched_;  // by executable graph: its last launch, at what is common to all
  GraphReadings readings_;
};

}  // namespace bragg
