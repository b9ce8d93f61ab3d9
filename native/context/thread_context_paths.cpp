// The nodes of call paths, of Python alone or with native code.
#include <algorithm>

#include "context/context_lenders.h"
#include "context/hash.h"
#include "context/python_frame_ids.h"
#include "context/thread_context.h"

namespace bragg {
namespace {

uint64_t address(const void* pointer) noexcept { return reinterpret_cast<uintptr_t>(pointer); }

const RawFrame& python_of(const RawFrame& frame) noexcept { return frame; }
const RawFrame& python_of(const PathFrame& frame) noexcept { return frame.python; }

// What of a whole path is not above an entry yet: more helpers opened it than OpeningFrames keeps, and returned since.
template <class Frame>
std::span<const Frame> without_frames_above(NodeId entry, std::span<const Frame> frames) noexcept {
  const auto& tree = CallingContextTree::instance();
  std::array<FrameId, 2048> above;
  size_t n_above = 0;
  for (; entry != kRootNode && n_above < above.size(); entry = tree.parent(entry)) above[n_above++] = tree.frame(entry);
  if (entry != kRootNode) return frames;
  size_t n_new = frames.size();
  for (size_t i = frames.size(); i-- > 0;) {
    const RawFrame& raw = python_of(frames[i]);
    if (raw.code == nullptr) continue;
    const FrameId id = PythonFrameIds::instance().intern(raw);
    while (n_above > 0 && above[n_above - 1] != id) --n_above;
    if (n_above == 0) break;
    --n_above;
    n_new = i;
  }
  return frames.first(n_new);
}

}  // namespace

ThreadContext::PathCache& ThreadContext::cached_path(uint64_t hash) noexcept {
  const uint32_t epoch = PythonFrameIds::epoch();
  if (epoch != cache_epoch_) {
    path_cache_.fill({});
    cache_epoch_ = epoch;
  }
  return path_cache_[(hash >> 20) % kPathCacheSize];
}

NodeId ThreadContext::native_node(NodeId outer) noexcept {
  static constexpr OpeningFrames kNoFrames{};
  static constexpr OpeningCalls kNoCalls{};
  const Entry* innermost = depth_ > 0 ? &entries_[depth_ - 1] : nullptr;
  NativeCallPath& path = native_path();
  const std::span<const PathFrame> frames = path.read(innermost != nullptr ? innermost->opened_in : kNoFrames,
                                                      innermost != nullptr ? innermost->opened_by : kNoCalls);
  if (path.was_cut()) cut_paths.fetch_add(1, std::memory_order_relaxed);
  const bool is_whole = innermost != nullptr && !path.reached_opening();
  uint64_t hash = is_whole ? 4 : 2;
  bool has_python = false;
  for (const PathFrame& frame : frames) {
    has_python = has_python || frame.python.code != nullptr;
    hash = mix(hash, address(frame.python.code) ^ uint64_t{frame.python.instruction_offset} << 40 ^ frame.native);
  }
  if (has_python) context_lenders.note_python(this);
  hash = mix(hash, outer) | 1;
  PathCache& cached = cached_path(hash);
  if (cached.hash != hash) {
    cached = append_frames(outer, is_whole ? without_frames_above(outer, frames) : frames);
    cached.hash = hash;
  }
  if (depth_ == 0 && has_python) publish({kRootNode, cached.python});
  return cached.node;
}

ThreadContext::PathCache ThreadContext::append_frames(NodeId node, std::span<const PathFrame> frames) noexcept {
  auto& tree = CallingContextTree::instance();
  PathCache path{.node = node, .python = node};
  for (size_t i = frames.size(); i-- > 0;) {
    const bool is_python = frames[i].python.code != nullptr;
    path.node =
        tree.child(path.node, is_python ? PythonFrameIds::instance().intern(frames[i].python) : frames[i].native);
    if (is_python) path.python = path.node;
  }
  return path;
}

NodeId ThreadContext::python_node(NodeId outer) noexcept {
  static constexpr OpeningFrames kNoFrames{};
  const OpeningFrames& opened_in = depth_ > 0 ? entries_[depth_ - 1].opened_in : kNoFrames;
  std::array<RawFrame, kMaxPathFrames> frames;
  uint32_t count = 0;
  uint64_t hash = 1;
  bool reached_opening = false;
  PythonFrameIterator iterator;
  for (RawFrame raw{}; count < kMaxPathFrames && iterator.next(raw); ++count) {
    const RawFrame* opener = opened_in.find(raw);
    // Where the entry was opened is above it in the tree: it is told again only if it has moved on since.
    reached_opening = opener != nullptr;
    if (reached_opening && opener->instruction_offset == raw.instruction_offset) break;
    frames[count] = raw;
    hash = mix(mix(hash, address(raw.code)), raw.instruction_offset);
    if (reached_opening) {
      ++count;
      break;
    }
  }
  if (count == 0) return outer;  // no Python since
  context_lenders.note_python(this);
  const bool is_whole = depth_ > 0 && !reached_opening;
  hash = mix(hash + (is_whole ? 2 : 0), outer) | 1;
  PathCache& cached = cached_path(hash);
  if (cached.hash != hash) {
    const std::span<const RawFrame> walked{frames.data(), count};
    const NodeId node = append_frames(outer, is_whole ? without_frames_above(outer, walked) : walked);
    cached = {hash, node, node};
  }
  if (depth_ == 0) publish({kRootNode, cached.node});
  return cached.node;
}

NodeId ThreadContext::append_frames(NodeId node, std::span<const RawFrame> frames) noexcept {
  auto& tree = CallingContextTree::instance();
  for (size_t i = frames.size(); i-- > 0;) node = tree.child(node, PythonFrameIds::instance().intern(frames[i]));
  return node;
}

}  // namespace bragg
