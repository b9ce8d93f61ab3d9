#include "context/frame_table.h"

#include "context/hash.h"

namespace bragg {

size_t FrameHash::operator()(const Frame& frame) const noexcept {
  return hash_of(pair_of(static_cast<uint32_t>(frame.kind), frame.name), pair_of(frame.file, frame.line), frame.device);
}

FrameTable& FrameTable::instance() {
  static FrameTable& table = *new FrameTable;  // never destroyed: driver threads outlive static destruction
  return table;
}

FrameTable::FrameTable() { intern_locked({FrameKind::Root, intern_string_locked("ROOT"), kNone, 0, kNone}); }

StringId FrameTable::intern_string_locked(std::string_view text) {
  if (const auto found = string_ids_.find(text); found != string_ids_.end()) return found->second;
  const auto id = static_cast<StringId>(strings_.size());
  string_ids_.emplace(strings_.emplace_back(text), id);
  return id;
}

FrameId FrameTable::intern_locked(const Frame& frame) {
  const auto [found, is_new] = frame_ids_.try_emplace(frame, static_cast<FrameId>(frames_.size()));
  if (is_new) frames_.push_back(frame);
  return found->second;
}

StringId FrameTable::intern_string(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return intern_string_locked(text);
}

FrameId FrameTable::intern(FrameKind kind, std::string_view name, uint32_t device) {
  const std::lock_guard lock(mutex_);
  return intern_locked({kind, intern_string_locked(name), kNone, 0, device});
}

FrameId FrameTable::intern_python(std::string_view name, std::string_view file, uint32_t line) {
  const std::lock_guard lock(mutex_);
  return intern_locked({FrameKind::Python, intern_string_locked(name), intern_string_locked(file), line, kNone});
}

FrameId FrameTable::intern_native(std::string_view name, std::string_view file) {
  const std::lock_guard lock(mutex_);
  return intern_locked({FrameKind::Native, intern_string_locked(name), intern_string_locked(file), 0, kNone});
}

void FrameTable::describe(FrameId frame, std::string_view key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  attributes_.push_back({frame, intern_string_locked(key), intern_string_locked(value)});
}

uint32_t FrameTable::string_count() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(strings_.size());
}

uint32_t FrameTable::frame_count() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(frames_.size());
}

uint32_t FrameTable::attribute_count() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(attributes_.size());
}

Frame FrameTable::frame(FrameId id) {
  const std::lock_guard lock(mutex_);
  return frames_[id];
}

FrameAttribute FrameTable::attribute(uint32_t index) {
  const std::lock_guard lock(mutex_);
  return attributes_[index];
}

std::string_view FrameTable::string(StringId id) {
  const std::lock_guard lock(mutex_);
  return strings_[id];
}

FrameId intern_frame(FrameKind kind, std::string_view name) { return FrameTable::instance().intern(kind, name); }

}  // namespace bragg
