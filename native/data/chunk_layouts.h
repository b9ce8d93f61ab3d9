// The chunks of a capture: the one table of what they hold. The writer's, the reader's
// (src/bragg/formats/captured/chunks.py) and CAPTURE.md's are compared with it by a test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bragg {

enum class ChunkType : uint16_t {
  Meta = 1,
  Strings = 2,
  Frames = 3,
  Nodes = 4,
  Metrics = 5,
  Tracks = 6,
  Slices = 7,
  Kernels = 8,
  End = 9,
  Attributes = 10,
  MetricNames = 11,
  Values = 12,
  Durations = 13,
  Code = 14,
  Samples = 15,
  Cubin = 16,
  Inputs = 17,
  Counters = 18,
  Clocks = 19,
  Idle = 20,
};

enum class ColumnType : uint8_t { U32, U64, I64, F64 };

// Of chunks that consist of columns, one after another: "type name", separated by commas. Before them stands a u64.
struct ChunkLayout {
  ChunkType type;
  std::string_view name;
  std::string_view columns;
};

// clang-format off
inline constexpr ChunkLayout kChunkLayouts[] = {
    {ChunkType::Frames, "FRAMES", "u32 kind, u32 name, u32 file, u32 line, u32 device"},
    {ChunkType::Nodes, "NODES", "u32 parent, u32 frame"},
    {ChunkType::Metrics, "METRICS", "u32 node, u32 group, u64 count, u64 total_ns, u64 min_ns, u64 max_ns, u64 bytes"},
    {ChunkType::Tracks, "TRACKS", "u32 kind, u32 device, u32 context, u32 stream, u32 name"},
    {ChunkType::Slices, "SLICES", "i64 start_ns, u64 duration_ns, u32 node, u32 track, u32 correlation"},
    {ChunkType::Kernels, "KERNELS",
     "u32 frame, u32 registers, u32 static_shared_bytes, u32 dynamic_shared_bytes, u32 local_bytes_per_thread, "
     "u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x, u32 block_y, u32 block_z, u32 cluster_x, u32 cluster_y, "
     "u32 cluster_z, u64 count"},
    {ChunkType::Attributes, "ATTRIBUTES", "u32 frame, u32 key, u32 value"},
    {ChunkType::MetricNames, "METRIC_NAMES", "u32 name, u32 unit, u32 kind, u32 is_float"},
    {ChunkType::Values, "VALUES", "u32 node, u32 metric, u32 index, u32 length, u64 count, i64 bits"},
    {ChunkType::Durations, "DURATIONS", "u32 frame, u32 bucket, u64 count, i64 first_ns"},
    {ChunkType::Code, "CODE", "u64 cubin, u32 function"},
    {ChunkType::Samples, "SAMPLES", "u32 node, u32 code, u32 pc_offset, u32 reason, u64 count, u64 exact"},
    {ChunkType::Inputs, "INPUTS", "u32 node, u32 input, u32 producer, u32 output, u64 count"},
    {ChunkType::Counters, "COUNTERS", "i64 time_ns, f64 value, u32 track"},
    {ChunkType::Clocks, "CLOCKS", "u32 clock, i64 ticks, i64 time_ns"},
    {ChunkType::Idle, "IDLE",
     "u32 device, u32 kind, u32 node, i64 start_ns, u64 bin_ns, u64 count, u64 idle_ns, u64 longest_ns"},
};
// clang-format on

inline constexpr size_t kMaxColumns = 16;

// The types of the columns of a chunk.
struct ColumnTypes {
  std::array<ColumnType, kMaxColumns> types{};
  size_t count = 0;
  [[nodiscard]] constexpr std::span<const ColumnType> all() const { return {types.data(), count}; }
};

[[nodiscard]] constexpr ColumnTypes columns_of(ChunkType type) {
  ColumnTypes found;
  for (const ChunkLayout& layout : kChunkLayouts) {
    if (layout.type != type) continue;
    std::string_view rest = layout.columns;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, 3);
      found.types[found.count++] = word == "u32"   ? ColumnType::U32
                                   : word == "u64" ? ColumnType::U64
                                   : word == "i64" ? ColumnType::I64
                                                   : ColumnType::F64;
      const size_t comma = rest.find(", ");
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 2);
    }
  }
  return found;
}

}  // namespace bragg
