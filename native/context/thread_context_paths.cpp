// The nodes of call paths, of Python alone or with native code.
#include <algorithm>

#include "context/context_lenders.h"
#include "context/hash.h"
#include "context/python_frame_ids.h"
#include "context/python_route.h"
#include "context/thread_context.h"

namespace bragg {
namespace {

constexpr OpeningFrames kNoFrames{};
constexpr OpeningCalls kNoCalls{};

// One number, so that the hash of a path takes one step a frame. To collide, two code objects would have to have the
// same lower 40 bits of their addresses, and offsets that differ by what the upper ones do.
uint64_t instruction_of(const RawFrame& raw) noexcept {
  return reinterpret_cast<uintptr_t>(raw.code) ^ uint64_t { raw.instruction_offset } << 40;
}

const RawFrame& python_of(const RawFrame& frame) noexcept { return frame; }
const RawFrame& python_of(const PathFrame& frame) noexcept { return frame.python; }

// The frames of a whole path that are not above the entry yet. For entries whose opening has returned: more helpers
// opened them than OpeningFrames keeps.
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

FrameKind kind_of(NodeId node) noexcept {
  return FrameTable::instance().frame(CallingContextTree::instance().frame(node)).kind;
}

bool is_among(FrameId frame, const PythonFrameIterator& frames) noexcept {
  bool is_found = false;
  frames.for_each([&](const RawFrame& raw, uint64_t) {
    is_found = PythonFrameIds::instance().intern(raw) == frame;
    return !is_found;
  });
  return is_found;
}

}  // namespace

// A thread goes on while it is looked at: an operator is over if the call of it is. The backward of an operator runs
// elsewhere than where it stands.
ContextNodes ThreadContext::entry_around(ContextNodes entry, const PythonFrameIterator& frames) noexcept {
  const auto& tree = CallingContextTree::instance();
  ContextNodes found = entry;
  // Where the tree is full, one of the two has fewer nodes.
  while (entry.shadow != kRootNode && entry.python != kRootNode && kind_of(entry.shadow) != FrameKind::State) {
    NodeId caller = tree.parent(entry.python);
    while (kind_of(caller) == FrameKind::Native) caller = tree.parent(caller);
    const bool is_over = kind_of(entry.shadow) == FrameKind::Operator && kind_of(caller) == FrameKind::Python &&
                         !is_among(tree.frame(caller), frames);
    while (kind_of(caller) == FrameKind::Native || kind_of(caller) == FrameKind::Python) caller = tree.parent(caller);
    entry = {tree.parent(entry.shadow), caller};
    if (is_over) found = entry;
  }
  return found;
}

NodeId ThreadContext::native_node(NodeId outer) noexcept {
  const Entry* entry = innermost();
  NativeCallPath& path = native_path();
  const std::span<const PathFrame> frames =
      path.read(opening_frames(), entry != nullptr && entry->has_calls ? openings_[entry->opening].calls : kNoCalls);
  if (path.was_cut()) cut_paths.fetch_add(1, std::memory_order_relaxed);
  const bool is_whole = entry != nullptr && !path.reached_opening();
  uint64_t hash = is_whole ? 4 : 2;
  bool has_python = false;
  for (const PathFrame& frame : frames) {
    has_python = has_python || frame.python.code != nullptr;
    hash = mix(hash, instruction_of(frame.python) ^ number_of(frame.native));
  }
  if (has_python) context_lenders.note_python(this);
  hash = mix(hash, pair_of(PythonFrameIds::epoch(), outer)) | 1;
  PathCache& cached = path_cache_.at(hash);
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

const OpeningFrames& ThreadContext::opening_frames() const noexcept {
  const Entry* entry = innermost();
  return entry != nullptr && entry->opened_at.code != nullptr ? openings_[entry->opening].frames : kNoFrames;
}

[[gnu::hot]] PythonPath ThreadContext::python_path(const PythonFrameIterator& frames) noexcept {
  const OpeningFrames& opening = opening_frames();
  const OpeningFrames* const opened_in = &opening != &kNoFrames ? &opening : nullptr;
  const uint32_t number = opened_in != nullptr ? openings_[innermost()->opening].number : 0;
  if (const auto path = routes_[depth_ > 0 ? 1 : 0].follow(frames, opened_in, number)) return *path;
  PythonPath path{.hash = 3, .n_frames = 0, .reached_opening = false};
  frames.for_each([&](const RawFrame& raw, uint64_t instruction) {
    const RawFrame* opener = opened_in != nullptr ? opened_in->find(raw) : nullptr;
    // The frame that opened the entry is above it in the tree: it is added again only if it has moved on since.
    path.reached_opening = opener != nullptr;
    if (path.reached_opening && opener->instruction_offset == raw.instruction_offset) return false;
    path.hash = mix(path.hash, instruction);
    return ++path.n_frames < kMaxPathFrames && !path.reached_opening;
  });
  return path;
}

[[gnu::hot]] ThreadContext::Where ThreadContext::python_below(ContextNodes entry,
                                                              const PythonFrameIterator& frames) noexcept {
  const PythonPath path = python_path(frames);
  if (path.n_frames == 0) return {entry};  // no Python since
  context_lenders.note_python(this);
  Where where{.entry = entry, .n_frames = path.n_frames};
  where.is_whole = depth_ > 0 && !path.reached_opening;
  where.path_hash = mix(path.hash + (where.is_whole ? 2 : 0), pair_of(PythonFrameIds::epoch(), entry.python)) | 1;
  return where;
}

[[gnu::hot]] ContextNodes ThreadContext::nodes_at(const Where& where, const PythonFrameIterator& frames) noexcept {
  if (where.n_frames == 0) return where.entry;
  PathCache& cached = path_cache_.at(where.path_hash);
  if (cached.hash != where.path_hash) {
    const NodeId node = append_frames(where.entry.python, frames, where.n_frames, where.is_whole);
    cached = {where.path_hash, node, node};
  }
  if (depth_ == 0) publish({kRootNode, cached.node});
  return {where.entry.shadow, cached.node};
}

// Not inlined: its frames are 24 KB of stack, which the call of each operator would touch.
[[gnu::noinline]] NodeId ThreadContext::append_frames(NodeId node, PythonFrameIterator frames, uint32_t count,
                                                      bool is_whole) noexcept {
  std::array<RawFrame, kMaxPathFrames> walked;
  for (uint32_t i = 0; i < count && frames.next(walked[i]); ++i) {
  }
  std::span<const RawFrame> path{walked.data(), count};
  if (is_whole) path = without_frames_above(node, path);
  auto& tree = CallingContextTree::instance();
  for (size_t i = path.size(); i-- > 0;) node = tree.child(node, PythonFrameIds::instance().intern(path[i]));
  return node;
}

// Of a path that Python code has gone since, the nodes of its frames are looked up only where the child is not known.
[[gnu::hot]] ContextNodes ThreadContext::children(const Where& where, const PythonFrameIterator& frames,
                                                  FrameId frame) noexcept {
  const bool has_python = recording_state.python.load(std::memory_order_relaxed) != 0;
  const NodeId above = has_python ? where.entry.python : NodeId::None;
  const uint64_t place = pair_of(where.entry.shadow, above) + where.path_hash;
  const uint64_t hash = spread(place ^ spread(uint64_t{number_of(frame)}));
  ChildCache& known = child_cache_.at(hash);
  if (known.frame == frame && known.place == place) return known.nodes;
  const ContextNodes outer = nodes_at(where, frames);
  auto& tree = CallingContextTree::instance();
  ContextNodes nodes;
  nodes.shadow = tree.child(outer.shadow, frame);
  nodes.python = has_python ? tree.child(outer.python, frame) : nodes.shadow;
  // What the tree refuses it counts.
  if (nodes.shadow != outer.shadow && nodes.python != outer.python) known = {place, frame, nodes};
  return nodes;
}

}  // namespace bragg
