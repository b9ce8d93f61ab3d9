// Ids of the process. Each kind is a type of its own, so that none is taken for another. Their numbers appear only
// where tables, packed keys and captures need them.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace bragg {

inline constexpr uint32_t kNone = 0xFFFFFFFFu;  // of numbers that are no ids: devices, slots, rows

enum class StringId : uint32_t { None = kNone };
enum class FrameId : uint32_t { Root = 0, None = kNone };
enum class NodeId : uint32_t { Root = 0, None = kNone };  // of the calling context tree
enum class MetricId : uint32_t { None = kNone };          // that the program records itself
enum class CodeId : uint32_t { None = kNone };            // of a session's sampled functions
enum class CaptureId : uint32_t { None = 0 };             // of StreamCaptures, never used again
enum class ReadingId : uint32_t { None = 0 };             // a kernel of ours in a graph, which reads values
enum class CorrelationId : uint32_t { None = 0 };         // of a call that gives a device work; they wrap around
enum class GraphId : uint32_t { None = 0 };               // of a CUDA graph, never used again
enum class GraphNodeId : uint64_t { None = 0 };           // id of the graph << 32 | number of the node
enum class GraphVersionId : uint32_t { None = 0 };        // of an executable graph, never used again
enum class CodeNumber : uint16_t { None = 0 };            // of the binary that a kernel comes from
enum class TrackId : uint32_t { None = kNone };           // of a timeline; a forked child has none of its parent's

template <class T>
concept Id = std::is_enum_v<T> && requires { T::None; };

template <Id T>
[[nodiscard]] constexpr std::underlying_type_t<T> number_of(T id) noexcept {
  return static_cast<std::underlying_type_t<T>>(id);
}

}  // namespace bragg
