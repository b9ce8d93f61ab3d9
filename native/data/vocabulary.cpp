#include "data/vocabulary.h"

#include <algorithm>
#include <ranges>
#include <string_view>

#include "context/metric_names.h"

namespace bragg {

uint32_t Vocabulary::string(StringId id) { return id == StringId::None ? kNone : strings_.add(id); }

uint32_t Vocabulary::frame(FrameId id) { return frames_.add(id); }

uint32_t Vocabulary::track(TrackId id) { return tracks_.add(id); }

// Parents precede children.
uint32_t Vocabulary::node(NodeId id) {
  if (const uint32_t known = nodes_.find(id); known != kNone) return known;
  const auto& tree = CallingContextTree::instance();
  std::vector<NodeId> unknown;
  for (NodeId each = id; each != NodeId::None && nodes_.find(each) == kNone; each = tree.parent(each))
    unknown.push_back(each);
  for (const NodeId each : std::views::reverse(unknown)) {
    (void)frames_.add(tree.frame(each));
    (void)nodes_.add(each);
  }
  return nodes_.find(id);
}

void Vocabulary::add_new_nodes() {
  const auto& tree = CallingContextTree::instance();
  for (const uint32_t count = tree.size(); nodes_seen_ < count; ++nodes_seen_) {
    const NodeId each{nodes_seen_};
    const FrameKind kind = FrameTable::instance().frame(tree.frame(each)).kind;
    if (kind == FrameKind::Scope || kind == FrameKind::State) (void)node(each);
  }
}

// What refers first: it makes what it refers to known.
void Vocabulary::write(CaptureWriter& writer, const std::vector<Track>& tracks) {
  const Chunk nodes = nodes_chunk();
  const Chunk attributes = attributes_chunk();
  const Chunk frames = frames_chunk();
  const Chunk metric_names = metric_names_chunk();
  const Chunk track_rows = tracks_chunk(tracks);
  const Chunk strings = strings_chunk();
  for (const Chunk* chunk : {&strings, &frames, &nodes, &track_rows, &attributes, &metric_names})
    if (chunk->rows() > 0) writer.write(*chunk);
  strings_.note_written();
  frames_.note_written();
  nodes_.note_written();
  tracks_.note_written();
}

void Vocabulary::forget_written() {
  strings_.forget_written();
  frames_.forget_written();
  nodes_.forget_written();
  tracks_.forget_written();
  metric_names_written_ = 0;
}

Chunk Vocabulary::strings_chunk() const {
  std::vector<std::string_view> texts;
  for (const StringId id : strings_.unwritten()) texts.push_back(FrameTable::instance().string(id));
  Chunk chunk(ChunkType::Strings, static_cast<uint32_t>(texts.size()));
  chunk.number(strings_.written());
  chunk.column_of<uint32_t>(texts, [](std::string_view text) { return text.size(); });
  for (const std::string_view text : texts) chunk.text(text);
  return chunk;
}

Chunk Vocabulary::frames_chunk() {
  std::vector<Frame> rows;
  for (const FrameId id : frames_.unwritten()) rows.push_back(FrameTable::instance().frame(id));
  Chunk chunk(ChunkType::Frames, static_cast<uint32_t>(rows.size()));
  chunk.number(frames_.written());
  chunk.column(rows, [](const Frame& frame) { return static_cast<uint32_t>(frame.kind); });
  chunk.column(rows, [this](const Frame& frame) { return string(frame.name); });
  chunk.column(rows, [this](const Frame& frame) { return string(frame.file); });
  chunk.column(rows, [](const Frame& frame) { return frame.line; });
  chunk.column(rows, [](const Frame& frame) { return frame.device; });
  return chunk;
}

Chunk Vocabulary::nodes_chunk() {
  const auto& tree = CallingContextTree::instance();
  const std::vector<NodeId> rows = nodes_.unwritten();
  Chunk chunk(ChunkType::Nodes, static_cast<uint32_t>(rows.size()));
  chunk.number(nodes_.written());
  chunk.column(rows, [&](NodeId id) { return id == kRootNode ? kNone : nodes_.find(tree.parent(id)); });
  chunk.column(rows, [&](NodeId id) { return frames_.find(tree.frame(id)); });
  return chunk;
}

Chunk Vocabulary::tracks_chunk(const std::vector<Track>& tracks) {
  std::vector<Track> rows;
  for (const TrackId id : tracks_.unwritten()) rows.push_back(tracks[number_of(id)]);
  Chunk chunk(ChunkType::Tracks, static_cast<uint32_t>(rows.size()));
  chunk.number(tracks_.written());
  chunk.column(rows, [](const Track& track) { return static_cast<uint32_t>(track.kind); });
  chunk.column(rows, [](const Track& track) { return track.device; });
  chunk.column(rows, [this](const Track& track) {
    return track.kind == TrackKind::Counter ? string(StringId{track.context}) : track.context;
  });
  chunk.column(rows, [](const Track& track) { return track.stream; });
  chunk.column(rows, [this](const Track& track) { return string(track.name); });
  return chunk;
}

// Those of new frames, and new ones of frames that are in the file.
Chunk Vocabulary::attributes_chunk() {
  auto& table = FrameTable::instance();
  std::vector<FrameAttribute> rows;
  const uint32_t count = table.attribute_count();
  for (; attributes_seen_ < count; ++attributes_seen_) {
    const FrameAttribute attribute = table.attribute(attributes_seen_);
    if (frames_.find(attribute.frame) < frames_.written()) rows.push_back(attribute);
  }
  for (const FrameId frame : frames_.unwritten())
    std::ranges::copy(table.attributes_of(frame), std::back_inserter(rows));
  Chunk chunk(ChunkType::Attributes, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column(rows, [&](const FrameAttribute& row) { return frames_.find(row.frame); });
  chunk.column(rows, [&](const FrameAttribute& row) { return string(row.key); });
  chunk.column(rows, [&](const FrameAttribute& row) { return string(row.value); });
  return chunk;
}

Chunk Vocabulary::metric_names_chunk() {
  auto& metrics = MetricNames::instance();
  std::vector<MetricName> rows;
  const uint32_t count = metrics.size();
  for (uint32_t i = metric_names_written_; i < count; ++i) rows.push_back(metrics.at(MetricId{i}));
  Chunk chunk(ChunkType::MetricNames, static_cast<uint32_t>(rows.size()));
  chunk.number(metric_names_written_);
  chunk.column(rows, [this](const MetricName& row) { return string(row.name); });
  chunk.column(rows, [this](const MetricName& row) { return string(row.unit); });
  chunk.column(rows, [](const MetricName& row) { return static_cast<uint32_t>(row.kind); });
  chunk.column(rows, [](const MetricName& row) { return row.is_float ? 1u : 0u; });
  metric_names_written_ = count;
  return chunk;
}

}  // namespace bragg
