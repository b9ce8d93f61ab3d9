// What a session writes: the chunks of its capture.
#include <algorithm>
#include <array>
#include <span>

#include "backends/code_images.h"
#include "context/calling_context_tree.h"
#include "data/phase.h"

namespace bragg {
namespace {

constexpr uint64_t kMinCompactBytes = 8u << 20;
constexpr int64_t kTellEndNs = 60'000'000'000;  // 80 bytes a minute: 0.1 MB a day

}  // namespace

void Phase::write_json(std::string_view json) {
  Chunk chunk(ChunkType::Meta, 1);
  chunk.text(json);
  writer_.write(chunk);
}

Chunk Phase::metrics_chunk(const std::vector<MetricRow>& rows) {
  Chunk chunk(ChunkType::Metrics, static_cast<uint32_t>(rows.size()));
  chunk.number(metric_sequence_++);
  chunk.column(rows, [this](const MetricRow& row) { return vocabulary_.node(row.node); });
  chunk.column(rows, [](const MetricRow& row) { return static_cast<uint32_t>(row.group); });
  chunk.column(rows, [](const MetricRow& row) { return row.count; });
  chunk.column(rows, [](const MetricRow& row) { return row.total_ns; });
  chunk.column(rows, [](const MetricRow& row) { return row.min_ns; });
  chunk.column(rows, [](const MetricRow& row) { return row.max_ns; });
  chunk.column(rows, [](const MetricRow& row) { return row.bytes; });
  return chunk;
}

Chunk Phase::values_chunk(const std::vector<ValueRow>& rows) {
  Chunk chunk(ChunkType::Values, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column(rows, [this](const ValueRow& row) { return vocabulary_.node(row.key.node); });
  chunk.column(rows, [](const ValueRow& row) { return number_of(row.key.metric); });
  chunk.column(rows, [](const ValueRow& row) { return row.key.index; });
  chunk.column(rows, [](const ValueRow& row) { return row.key.length; });
  chunk.column(rows, [](const ValueRow& row) { return row.count; });
  chunk.column(rows, [](const ValueRow& row) { return row.bits; });
  return chunk;
}

Chunk Phase::inputs_chunk(const std::vector<InputRow>& rows) {
  Chunk chunk(ChunkType::Inputs, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column(rows, [this](const InputRow& row) { return vocabulary_.node(row.key.node); });
  chunk.column(rows, [](const InputRow& row) { return row.key.input; });
  chunk.column(rows, [this](const InputRow& row) { return vocabulary_.node(row.key.producer); });
  chunk.column(rows, [](const InputRow& row) { return row.key.output; });
  chunk.column(rows, [](const InputRow& row) { return row.count; });
  return chunk;
}

Chunk Phase::durations_chunk(const std::vector<DurationRow>& rows) {
  Chunk chunk(ChunkType::Durations, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column(rows, [this](const DurationRow& row) { return vocabulary_.frame(row.frame); });
  chunk.column(rows, [](const DurationRow& row) { return row.bucket; });
  chunk.column(rows, [](const DurationRow& row) { return row.count; });
  chunk.column(rows, [](const DurationRow& row) { return row.first_ns; });
  return chunk;
}

// The cubins of new functions come first, then the functions.
void Phase::write_cubins() {
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
}

Chunk Phase::codes_chunk() {
  const std::span codes(samples_.codes().begin() + codes_written_, samples_.codes().end());
  Chunk chunk(ChunkType::Code, static_cast<uint32_t>(codes.size()));
  chunk.number(codes_written_);
  chunk.column(codes, [](const Code& row) { return row.cubin_crc; });
  chunk.column(codes, [this](const Code& row) { return vocabulary_.string(row.function); });
  codes_written_ += static_cast<uint32_t>(codes.size());
  return chunk;
}

Chunk Phase::samples_chunk(const std::vector<SampleRow>& rows) {
  Chunk chunk(ChunkType::Samples, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column(rows, [this](const SampleRow& row) { return vocabulary_.node(row.key.node); });
  chunk.column(rows, [](const SampleRow& row) { return number_of(row.key.code); });
  chunk.column(rows, [](const SampleRow& row) { return row.key.pc_offset; });
  chunk.column(rows, [this](const SampleRow& row) { return vocabulary_.string(row.key.reason); });
  chunk.column(rows, [](const SampleRow& row) { return row.count; });
  chunk.column(rows, [](const SampleRow& row) { return row.exact; });
  return chunk;
}

Chunk Phase::slices_chunk() {
  Chunk chunk(ChunkType::Slices, static_cast<uint32_t>(slices_.size()));
  chunk.number(0);
  chunk.column(slices_, [](const Slice& slice) { return slice.start_ns; });
  chunk.column(slices_, [](const Slice& slice) { return slice.duration_ns; });
  chunk.column(slices_, [this](const Slice& slice) { return vocabulary_.node(slice.node); });
  chunk.column(slices_, [this](const Slice& slice) { return vocabulary_.track(slice.track); });
  chunk.column(slices_, [](const Slice& slice) { return number_of(slice.correlation); });
  slices_.clear();
  return chunk;
}

Chunk Phase::counters_chunk() {
  Chunk chunk(ChunkType::Counters, static_cast<uint32_t>(counter_samples_.size()));
  chunk.number(0);
  chunk.column(counter_samples_, [](const CounterSample& sample) { return sample.time_ns; });
  chunk.column(counter_samples_, [](const CounterSample& sample) { return sample.value; });
  chunk.column(counter_samples_, [this](const CounterSample& sample) { return vocabulary_.track(sample.track); });
  counter_samples_.clear();
  return chunk;
}

Chunk Phase::clocks_chunk() {
  Chunk chunk(ChunkType::Clocks, static_cast<uint32_t>(clock_readings_.size()));
  chunk.number(0);
  chunk.column(clock_readings_, [](const ClockReading& reading) { return static_cast<uint32_t>(reading.clock); });
  chunk.column(clock_readings_, [](const ClockReading& reading) { return reading.ticks; });
  chunk.column(clock_readings_, [](const ClockReading& reading) { return reading.time_ns; });
  clock_readings_.clear();
  return chunk;
}

Chunk Phase::kernels_chunk(const std::vector<KernelRow>& rows) {
  Chunk chunk(ChunkType::Kernels, static_cast<uint32_t>(rows.size()));
  chunk.number(0);
  chunk.column(rows, [this](const KernelRow& row) { return vocabulary_.frame(FrameId{row.config.fields[0]}); });
  for (size_t field = 1; field < KernelConfig::kFields; ++field)
    chunk.column(rows, [field](const KernelRow& row) { return row.config.fields[field]; });
  chunk.column(rows, [](const KernelRow& row) { return row.count; });
  return chunk;
}

Chunk Phase::idle_chunk(const std::vector<IdleRow>& rows) {
  Chunk chunk(ChunkType::Idle, static_cast<uint32_t>(rows.size()));
  const auto bin_ns = static_cast<uint64_t>(activity.idle().bin_ns());
  chunk.number(0);
  chunk.column(rows, [](const IdleRow& row) { return row.key.device; });
  chunk.column(rows, [](const IdleRow& row) { return static_cast<uint32_t>(row.key.kind); });
  chunk.column(rows, [this](const IdleRow& row) { return vocabulary_.node(row.key.node); });
  chunk.column(rows, [](const IdleRow& row) { return row.key.start_ns; });
  chunk.column(rows, [bin_ns](const IdleRow&) { return bin_ns; });
  chunk.column(rows, [](const IdleRow& row) { return row.count; });
  chunk.column(rows, [](const IdleRow& row) { return row.idle_ns; });
  chunk.column(rows, [](const IdleRow& row) { return row.longest_ns; });
  return chunk;
}

void Phase::write_rows(std::span<const Chunk> chunks, const std::vector<Track>& tracks) {
  vocabulary_.write(writer_, tracks);
  for (const Chunk& chunk : chunks)
    if (chunk.rows() > 0) writer_.write(chunk);
}

// An idle program adds nothing but, now and then, how long it has run.
void Phase::write_facts(const JsonObject& facts) {
  const int64_t now = now_ns();
  JsonObject changes = meta_.take_changes(facts);
  if (changes.members().empty() && now - end_told_ns_ < kTellEndNs) return;
  write_json(changes.put("end_ns", ended_ns()).text());
  end_told_ns_ = now;
}

void Phase::flush(const std::vector<Track>& tracks, const JsonObject& facts) {
  activity.settle();
  write_cubins();
  vocabulary_.add_new_nodes();
  write_rows(
      std::array{slices_chunk(), counters_chunk(), clocks_chunk(), metrics_chunk(metrics_.take_changes()),
                 values_chunk(values_.take_changes()), inputs_chunk(inputs_.take_changes()),
                 durations_chunk(durations_.take_changes()), codes_chunk(), samples_chunk(samples_.take_changes()),
                 kernels_chunk(kernels_.take_changes()), idle_chunk(activity.idle().take_changes())},
      tracks);
  write_facts(facts);
  if (!options_.trace && writer_.size_bytes() > compact_at_bytes_) compact(tracks, facts);
}

// METRICS snapshots pile up; the live content is small. Trace captures are all live and never rewritten.
void Phase::compact(const std::vector<Track>& tracks, const JsonObject& facts) {
  writer_.begin_rewrite();
  vocabulary_.forget_written();
  meta_.forget_written();
  codes_written_ = 0;
  write_json(options_.meta_json);
  write_cubins();
  write_rows(std::array{metrics_chunk(metrics_.rows()), values_chunk(values_.rows()), inputs_chunk(inputs_.rows()),
                        durations_chunk(durations_.rows()), codes_chunk(), samples_chunk(samples_.rows()),
                        kernels_chunk(kernels_.all()), idle_chunk(activity.idle().rows())},
             tracks);
  write_facts(facts);
  writer_.commit_rewrite();
  compact_at_bytes_ = std::max(kMinCompactBytes, writer_.size_bytes() * 4);
}

void Phase::finish(const std::vector<Track>& tracks, const JsonObject& facts, const std::string& meta_json) {
  activity.settle_all();
  flush(tracks, facts);
  JsonObject last;
  last.put("end_ns", ended_ns());
  // Once, at the end: 10 to 40 kB.
  if (const std::string curves = activity.curves_json(); !curves.empty()) last.raw("gpu_activity", curves);
  write_json(last.text());
  write_json(meta_json);
  writer_.write(Chunk(ChunkType::End, 0));
  writer_.close();
}

}  // namespace bragg
