#include "context/frame_table.h"

#include <algorithm>

#include "context/hash.h"

namespace bragg {
namespace {

bool is_named_by_program(FrameKind kind) {
  return kind == FrameKind::Scope || kind == FrameKind::State || kind == FrameKind::Operator ||
         kind == FrameKind::Marker;
}

}  // namespace

size_t FrameHash::operator()(const Frame& frame) const noexcept {
  return hash_of(pair_of(static_cast<uint32_t>(frame.kind), frame.name), pair_of(frame.file, frame.line), frame.device);
}

FrameTable& FrameTable::instance() {
  static FrameTable& table = *new FrameTable;  // never destroyed: driver threads outlive static destruction
  return table;
}

FrameTable::FrameTable() { intern_locked({FrameKind::Root, intern_string_locked("ROOT"), StringId::None, 0, kNone}); }

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
  return intern_locked({kind, intern_string_locked(within_quota(kind, name)), StringId::None, 0, device});
}

std::string_view FrameTable::within_quota(FrameKind kind, std::string_view name) {
  if (!is_named_by_program(kind) || string_ids_.contains(name) || quota_.admit(name)) return name;
  ++other_names_;
  return kOtherNames;
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
  const FrameAttribute told{frame, intern_string_locked(key), intern_string_locked(value)};
  std::vector<FrameAttribute>& known = attributes_of_[frame];
  if (std::ranges::find(known, told) != known.end()) return;
  known.push_back(told);
  attributes_.push_back(told);
}

std::vector<FrameAttribute> FrameTable::attributes_of(FrameId frame) {
  const std::lock_guard lock(mutex_);
  const auto found = attributes_of_.find(frame);
  return found != attributes_of_.end() ? found->second : std::vector<FrameAttribute>();
}

uint64_t FrameTable::other_names() {
  const std::lock_guard lock(mutex_);
  return other_names_;
}

uint32_t FrameTable::attribute_count() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(attributes_.size());
}

Frame FrameTable::frame(FrameId id) {
  const std::lock_guard lock(mutex_);
  return frames_[number_of(id)];
}

FrameAttribute FrameTable::attribute(uint32_t index) {
  const std::lock_guard lock(mutex_);
  return attributes_[index];
}

std::string_view FrameTable::string(StringId id) {
  const std::lock_guard lock(mutex_);
  return strings_[number_of(id)];
}

FrameId intern_frame(FrameKind kind, std::string_view name) { return FrameTable::instance().intern(kind, name); }

}  // namespace bragg
