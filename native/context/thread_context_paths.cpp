// The nodes of call paths, of Python alone or with native code.
#include <algorithm>

#include "context/context_lenders.h"
#include "context/hash.h"
#include "context/python_frame_ids.h"
#include "context/thread_context.h"

namespace bragg {
namespace {

uint64_t address(const void* pointer) noexcept { return reinterpret_cast<uintptr_t>(pointer); }

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
  uint64_t hash = 2;
  bool has_python = false;
  for (const PathFrame& frame : frames) {
    has_python = has_python || frame.python.code != nullptr;
    hash = mix(hash, address(frame.python.code) ^ uint64_t{frame.python.instruction_offset} << 40 ^ frame.native);
  }
  if (has_python) context_lenders.note_python(this);
  hash = mix(hash, outer) | 1;
  PathCache& cached = cached_path(hash);
  if (cached.hash != hash) {
    cached = append_frames(outer, frames);
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
  PythonFrameIterator iterator;
  for (RawFrame raw{}; count < kMaxPathFrames && iterator.next(raw); ++count) {
    const RawFrame* opener = opened_in.find(raw);
    // Where the entry was opened is above it in the tree: it is told again only if it has moved on since.
    if (opener != nullptr && opener->instruction_offset == raw.instruction_offset) break;
    frames[count] = raw;
    hash = mix(mix(hash, address(raw.code)), raw.instruction_offset);
    if (opener != nullptr) {
      ++count;
      break;
    }
  }
  if (count == 0) return outer;  // no Python since
  context_lenders.note_python(this);
  hash = mix(hash, outer) | 1;
  PathCache& cached = cached_path(hash);
  if (cached.hash != hash) {
    const NodeId node = append_frames(outer, frames.data(), count);
    cached = {hash, node, node};
  }
  if (depth_ == 0) publish({kRootNode, cached.node});
  return cached.node;
}

NodeId ThreadContext::append_frames(NodeId node, const RawFrame* frames, uint32_t count) noexcept {
  auto& tree = CallingContextTree::instance();
  for (uint32_t i = count; i-- > 0;) node = tree.child(node, PythonFrameIds::instance().intern(frames[i]));
  return node;
}

}  // namespace bragg
