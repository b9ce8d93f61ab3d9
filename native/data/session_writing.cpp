// What a session writes: the chunks of its capture.
#include <algorithm>
#include <span>

#include "backends/code_images.h"
#include "context/calling_context_tree.h"
#include "data/session.h"

namespace bragg {
namespace {

constexpr uint64_t kMinCompactBytes = 8u << 20;

}  // namespace

void Session::write_json(std::string_view json) {
  Chunk chunk(ChunkType::Meta, 1);
  chunk.text(json);
  writer_.write(chunk);
}

// What refers first, then what it refers to: whatever is added meanwhile has higher ids and waits for the next flush.
void Session::write_vocabulary(const std::vector<Track>& tracks) {
  const auto& tree = CallingContextTree::instance();
  auto& table = FrameTable::instance();
  auto& metrics = MetricNames::instance();
  const uint32_t metric_names = metrics.size();
  const uint32_t attributes = table.attribute_count();
  const uint32_t nodes = tree.size();
  const uint32_t frames = table.frame_count();
  const uint32_t strings = table.string_count();
  if (strings > strings_written_) {
    std::vector<std::string_view> texts;
    for (StringId id = strings_written_; id < strings; ++id) texts.push_back(table.string(id));
    Chunk chunk(ChunkType::Strings, strings - strings_written_);
    chunk.number(strings_written_);
    chunk.column_of<uint32_t>(texts, [](std::string_view text) { return text.size(); });
    for (const std::string_view text : texts) chunk.text(text);
    writer_.write(chunk);
  }
  if (frames > frames_written_) {
    std::vector<Frame> rows;
    for (FrameId id = frames_written_; id < frames; ++id) rows.push_back(table.frame(id));
    Chunk chunk(ChunkType::Frames, frames - frames_written_);
    chunk.number(frames_written_);
    chunk.column_of<uint32_t>(rows, [](const Frame& frame) { return static_cast<uint32_t>(frame.kind); });
    chunk.column_of<uint32_t>(rows, [](const Frame& frame) { return frame.name; });
    chunk.column_of<uint32_t>(rows, [](const Frame& frame) { return frame.file; });
    chunk.column_of<uint32_t>(rows, [](const Frame& frame) { return frame.line; });
    chunk.column_of<uint32_t>(rows, [](const Frame& frame) { return frame.device; });
    writer_.write(chunk);
  }
  if (nodes > nodes_written_) {
    std::vector<NodeId> ids(nodes - nodes_written_);
    for (uint32_t i = 0; i < ids.size(); ++i) ids[i] = nodes_written_ + i;
    Chunk chunk(ChunkType::Nodes, nodes - nodes_written_);
    chunk.number(nodes_written_);
    chunk.column_of<uint32_t>(ids, [&](NodeId id) { return tree.parent(id); });
    chunk.column_of<uint32_t>(ids, [&](NodeId id) { return tree.frame(id); });
    writer_.write(chunk);
  }
  if (tracks.size() > tracks_written_) {
    const std::span rows(tracks.begin() + tracks_written_, tracks.end());
    Chunk chunk(ChunkType::Tracks, static_cast<uint32_t>(rows.size()));
    chunk.number(tracks_written_);
    chunk.column_of<uint32_t>(rows, [](const Track& track) { return static_cast<uint32_t>(track.kind); });
    chunk.column_of<uint32_t>(rows, [](const Track& track) { return track.device; });
    chunk.column_of<uint32_t>(rows, [](const Track& track) { return track.context; });
    chunk.column_of<uint32_t>(rows, [](const Track& track) { return track.stream; });
    chunk.column_of<uint32_t>(rows, [](const Track& track) { return track.name; });
    writer_.write(chunk);
  }
  if (attributes > attributes_written_) {
    std::vector<FrameAttribute> rows;
    for (uint32_t i = attributes_written_; i < attributes; ++i) rows.push_back(table.attribute(i));
    Chunk chunk(ChunkType::Attributes, attributes - attributes_written_);
    chunk.number(0);
    chunk.column_of<uint32_t>(rows, [](const FrameAttribute& row) { return row.frame; });
    chunk.column_of<uint32_t>(rows, [](const FrameAttribute& row) { return row.key; });
    chunk.column_of<uint32_t>(rows, [](const FrameAttribute& row) { return row.value; });
    writer_.write(chunk);
  }
  if (metric_names > metric_names_written_) {
    std::vector<MetricName> rows;
    for (MetricId id = metric_names_written_; id < metric_names; ++id) rows.push_back(metrics.at(id));
    Chunk chunk(ChunkType::MetricNames, metric_names - metric_names_written_);
    chunk.number(metric_names_written_);
    chunk.column_of<uint32_t>(rows, [](const MetricName& row) { return row.name; });
    chunk.column_of<uint32_t>(rows, [](const MetricName& row) { return row.unit; });
    chunk.column_of<uint32_t>(rows, [](const MetricName& row) { return static_cast<uint32_t>(row.kind); });
    chunk.column_of<uint32_t>(rows, [](const MetricName& row) { return row.is_float ? 1u : 0u; });
    writer_.write(chunk);
  }
  strings_written_ = strings;
  frames_written_ = frames;
  nodes_written_ = nodes;
  tracks_written_ = static_cast<uint32_t>(tracks.size());
  attributes_written_ = attributes;
  metric_names_written_ = metric_names;
}

void Session::write_metrics(const std::vector<MetricRow>& rows) {
  if (rows.empty()) return;
  Chunk chunk(ChunkType::Metrics, static_cast<uint32_t>(rows.size()));
  chunk.number(metric_sequence_++);
  chunk.column_of<uint32_t>(rows, [](const MetricRow& row) { return row.node; });
  chunk.column_of<uint32_t>(rows, [](const MetricRow& row) { return static_cast<uint32_t>(row.group); });
  chunk.column_of<uint64_t>(rows, [](const MetricRow& row) { return row.count; });
  chunk.column_of<uint64_t>(rows, [](const MetricRow& row) { return row.total_ns; });
  chunk.column_of<uint64_t>(rows, [](const MetricRow& row) { return row.min_ns; });
  chunk.column_of<uint64_t>(rows, [](const MetricRow& row) { return row.max_ns; });
  chunk.column_of<uint64_t>(rows, [](const MetricRow& row) { return row.bytes; });
  writer_.write(chunk);
}

void Session::write_values(const std::vector<ValueRow>& rows) {
  if (rows.empty()) return;
  Chunk chunk(ChunkType::Values, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column_of<uint32_t>(rows, [](const ValueRow& row) { return row.key.node; });
  chunk.column_of<uint32_t>(rows, [](const ValueRow& row) { return row.key.metric; });
  chunk.column_of<uint32_t>(rows, [](const ValueRow& row) { return row.key.index; });
  chunk.column_of<uint32_t>(rows, [](const ValueRow& row) { return row.key.length; });
  chunk.column_of<uint64_t>(rows, [](const ValueRow& row) { return row.count; });
  chunk.column_of<uint64_t>(rows, [](const ValueRow& row) { return row.bits; });
  writer_.write(chunk);
}

void Session::write_inputs(const std::vector<InputRow>& rows) {
  if (rows.empty()) return;
  Chunk chunk(ChunkType::Inputs, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column_of<uint32_t>(rows, [](const InputRow& row) { return row.key.node; });
  chunk.column_of<uint32_t>(rows, [](const InputRow& row) { return row.key.input; });
  chunk.column_of<uint32_t>(rows, [](const InputRow& row) { return row.key.producer; });
  chunk.column_of<uint32_t>(rows, [](const InputRow& row) { return row.key.output; });
  chunk.column_of<uint64_t>(rows, [](const InputRow& row) { return row.count; });
  writer_.write(chunk);
}

void Session::write_durations(const std::vector<DurationRow>& rows) {
  if (rows.empty()) return;
  Chunk chunk(ChunkType::Durations, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column_of<uint32_t>(rows, [](const DurationRow& row) { return row.frame; });
  chunk.column_of<uint32_t>(rows, [](const DurationRow& row) { return row.bucket; });
  chunk.column_of<uint64_t>(rows, [](const DurationRow& row) { return row.count; });
  chunk.column_of<int64_t>(rows, [](const DurationRow& row) { return row.first_ns; });
  writer_.write(chunk);
}

// The cubins of new functions come first, then the functions.
void Session::write_samples(const std::vector<SampleRow>& rows) {
  const std::span codes(samples_.codes().begin() + codes_written_, samples_.codes().end());
  for (const Code& code : codes) {
    const bool is_written = std::any_of(samples_.codes().data(), &code,
                                        [&](const Code& earlier) { return earlier.cubin_crc == code.cubin_crc; });
    const CodeImages::Image image = is_written ? nullptr : CodeImages::instance().find(code.cubin_crc);
    if (image == nullptr) continue;
    Chunk chunk(ChunkType::Cubin, 1);
    chunk.number(code.cubin_crc);
    chunk.text({reinterpret_cast<const char*>(image->data()), image->size()});
    writer_.write(chunk);
  }
  if (!codes.empty()) {
    Chunk chunk(ChunkType::Code, static_cast<uint32_t>(codes.size()));
    chunk.number(codes_written_);
    chunk.column_of<uint64_t>(codes, [](const Code& row) { return row.cubin_crc; });
    chunk.column_of<uint32_t>(codes, [](const Code& row) { return row.function; });
    writer_.write(chunk);
    codes_written_ += static_cast<uint32_t>(codes.size());
  }
  if (rows.empty()) return;
  Chunk chunk(ChunkType::Samples, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column_of<uint32_t>(rows, [](const SampleRow& row) { return row.key.node; });
  chunk.column_of<uint32_t>(rows, [](const SampleRow& row) { return row.key.code; });
  chunk.column_of<uint32_t>(rows, [](const SampleRow& row) { return row.key.pc_offset; });
  chunk.column_of<uint32_t>(rows, [](const SampleRow& row) { return row.key.reason; });
  chunk.column_of<uint64_t>(rows, [](const SampleRow& row) { return row.count; });
  chunk.column_of<uint64_t>(rows, [](const SampleRow& row) { return row.exact; });
  writer_.write(chunk);
}

void Session::write_slices() {
  if (slices_.empty()) return;
  Chunk chunk(ChunkType::Slices, static_cast<uint32_t>(slices_.size()));
  chunk.number(0);
  chunk.column_of<int64_t>(slices_, [](const Slice& slice) { return slice.start_ns; });
  chunk.column_of<uint64_t>(slices_, [](const Slice& slice) { return slice.duration_ns; });
  chunk.column_of<uint32_t>(slices_, [](const Slice& slice) { return slice.node; });
  chunk.column_of<uint32_t>(slices_, [](const Slice& slice) { return slice.track; });
  chunk.column_of<uint32_t>(slices_, [](const Slice& slice) { return slice.correlation; });
  writer_.write(chunk);
  slices_.clear();
}

void Session::write_kernels(const std::vector<KernelRow>& rows) {
  if (rows.empty()) return;
  Chunk chunk(ChunkType::Kernels, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  for (size_t field = 0; field < KernelConfig::kFields; ++field)
    chunk.column_of<uint32_t>(rows, [field](const KernelRow& row) { return row.config.fields[field]; });
  chunk.column_of<uint64_t>(rows, [](const KernelRow& row) { return row.count; });
  writer_.write(chunk);
}

void Session::flush(const std::vector<Track>& tracks, const std::string& statistics) {
  write_vocabulary(tracks);
  write_slices();
  write_metrics(metrics_.take_changes());
  write_values(values_.take_changes());
  write_inputs(inputs_.take_changes());
  write_durations(durations_.take_changes());
  write_samples(samples_.take_changes());
  write_kernels(kernels_.take_changes());
  write_json(statistics);
  if (!options_.trace && writer_.size_bytes() > compact_at_bytes_) compact(tracks, statistics);
}

// METRICS snapshots pile up; the live content is small. Trace captures are all live and never rewritten.
void Session::compact(const std::vector<Track>& tracks, const std::string& statistics) {
  if (!writer_.begin_rewrite()) return;
  strings_written_ = frames_written_ = nodes_written_ = tracks_written_ = attributes_written_ = metric_names_written_ =
      0;
  write_json(options_.meta_json);
  write_vocabulary(tracks);
  write_metrics(metrics_.rows());
  write_values(values_.rows());
  write_inputs(inputs_.rows());
  write_durations(durations_.rows());
  codes_written_ = 0;
  write_samples(samples_.rows());
  write_kernels(kernels_.all());
  write_json(statistics);
  writer_.commit_rewrite();
  compact_at_bytes_ = std::max(kMinCompactBytes, writer_.size_bytes() * 4);
}

void Session::finish(const std::vector<Track>& tracks, const std::string& statistics, const std::string& meta_json) {
  flush(tracks, statistics);
  write_json(meta_json);
  writer_.write(Chunk(ChunkType::End, 0));
  writer_.close();
}

}  // namespace bragg
