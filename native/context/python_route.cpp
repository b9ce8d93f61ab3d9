#include "context/python_route.h"

#include "context/hash.h"

namespace bragg {

inline PythonRoute::Kind PythonRoute::kind_of(const Walk& walk, const void* frame) noexcept {
  if (walk.frames.is_internal(frame)) return Kind::Internal;
  if (walk.opened_in == nullptr) return Kind::Frame;
  const RawFrame raw = walk.frames.read(frame);
  const RawFrame* const opener = walk.opened_in->find(raw);
  if (opener == nullptr) return Kind::Frame;
  return opener->instruction_offset == raw.instruction_offset ? Kind::UnmovedOpener : Kind::Opener;
}

inline uint32_t PythonRoute::find(const void* frame, uint32_t end) const noexcept {
  const uint32_t last = end > kSearched ? end - kSearched : 0;
  for (uint32_t i = end; i-- > last;)
    if (stops_[i].frame == frame) return i;
  return end;
}

// Whether the callers of `inner` are those kept. `changed`: the outermost that has moved on since. No load waits for
// another one: where the next frame lies is known, and what this one says of it is only compared.
inline bool PythonRoute::holds(const Walk& walk, uint32_t inner, uint32_t& changed) noexcept {
  for (uint32_t i = inner;; --i) {
    Stop& stop = stops_[i];
    const void* const caller = walk.frames.caller_of(stop.frame);
    const uint64_t instruction = walk.frames.instruction_at(stop.frame);
    if (instruction != stop.instruction) {
      stop.instruction = instruction;
      changed = i;
    }
    if (i == 0) return reached_opening_ || caller == nullptr;
    if (caller != stops_[i - 1].frame) return false;
  }
}

// False: the walk has another end by now.
inline bool PythonRoute::add_up(const Walk& walk, uint32_t changed, uint32_t end) noexcept {
  Sum sum = changed == 0 ? Sum{.hash = 1, .n_frames = 0} : sums_[changed - 1];
  for (uint32_t i = changed; i < end; ++i) {
    const Kind kind = kind_of(walk, stops_[i].frame);
    const bool is_opener = kind == Kind::Opener || kind == Kind::UnmovedOpener;
    if (is_opener != (i == 0 && reached_opening_)) return false;
    // The frame that opened the entry is above it in the tree: it is added again only if it has moved on since.
    if (kind == Kind::Frame || kind == Kind::Opener) sum = {mix(sum.hash, stops_[i].instruction), sum.n_frames + 1};
    sums_[i] = sum;
  }
  return true;
}

// False: no room, or the end of the walk that is kept is not that of this one.
[[gnu::hot]] bool PythonRoute::extend(const Walk& walk) noexcept {
  std::array<Stop, kMaxStops> inner;  // those not kept, innermost first
  uint32_t n_inner = 0, kept = 0, candidates = size_, changed = 0;
  bool is_opener = false;
  for (const void* frame = walk.frames.frame_; frame != nullptr && !is_opener; frame = walk.frames.caller_of(frame)) {
    if (const uint32_t i = find(frame, candidates); i < candidates) {
      candidates = i;
      kept = changed = i + 1;
      if (holds(walk, i, changed)) break;
      kept = changed = 0;
    }
    if (n_inner == kMaxStops) return false;
    inner[n_inner++] = {frame, walk.frames.instruction_at(frame)};
    if (walk.opened_in != nullptr) {
      const Kind kind = kind_of(walk, frame);
      is_opener = kind == Kind::Opener || kind == Kind::UnmovedOpener;
    }
  }
  if (kept + n_inner > kMaxStops) return false;
  if (kept == 0) reached_opening_ = is_opener;
  size_ = kept;
  while (n_inner > 0) stops_[size_++] = inner[--n_inner];
  return add_up(walk, changed, size_);
}

[[gnu::hot]] std::optional<PythonPath> PythonRoute::follow(const PythonFrameIterator& frames,
                                                           const OpeningFrames* opened_in, uint32_t opening) noexcept {
  if (!frames.is_of_now()) return {};
  if (opening != opening_) size_ = 0;
  opening_ = opening;
  if (!extend({frames, opened_in})) {
    size_ = 0;
    return {};
  }
  if (size_ == 0) return PythonPath{.hash = 1, .n_frames = 0, .reached_opening = false};
  const Sum& all = sums_[size_ - 1];
  return PythonPath{all.hash, all.n_frames, reached_opening_};
}

}  // namespace bragg
