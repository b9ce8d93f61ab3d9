#include "context/kernel_names.h"

#include <utility>

#include "context/hash.h"

namespace bragg {

KernelNames& KernelNames::instance() {
  static KernelNames& names = *new KernelNames;
  return names;
}

KernelNames::Slot& KernelNames::slot_of(const Table& table, const void* function) noexcept {
  size_t i = (spread(reinterpret_cast<uintptr_t>(function)) >> 32) & table.mask;
  for (;; i = (i + 1) & table.mask) {
    Slot& slot = table.slots[i];
    const void* there = slot.function.load(std::memory_order_acquire);
    if (there == function || there == nullptr) return slot;
  }
}

StringId KernelNames::find(const void* function) const noexcept {
  const Table* table = table_.load(std::memory_order_acquire);
  if (table == nullptr || function == nullptr) return StringId::None;
  const Slot& slot = slot_of(*table, function);
  return slot.function.load(std::memory_order_relaxed) == function ? slot.name.load(std::memory_order_relaxed)
                                                                   : StringId::None;
}

void KernelNames::set(const void* function, std::string_view name, std::string_view symbol,
                      std::vector<Attribute> attributes) {
  const StringId id = FrameTable::instance().intern_string(name);
  const std::lock_guard lock(mutex_);
  descriptions_[id] = {std::string(symbol), std::move(attributes)};
  store(function, id);
}

void KernelNames::forget(const void* function) {
  const std::lock_guard lock(mutex_);
  if (find(function) != StringId::None) store(function, StringId::None);
}

void KernelNames::store(const void* function, StringId name) {
  const Table* current = table_.load(std::memory_order_relaxed);
  if (current == nullptr || (used_ + 1) * 2 > current->mask + 1) {
    auto bigger = std::make_unique<Table>(current == nullptr ? 256 : (current->mask + 1) * 2);
    for (size_t i = 0; current != nullptr && i <= current->mask; ++i) {
      const void* there = current->slots[i].function.load(std::memory_order_relaxed);
      if (there == nullptr) continue;
      Slot& slot = slot_of(*bigger, there);
      slot.name.store(current->slots[i].name.load(std::memory_order_relaxed), std::memory_order_relaxed);
      slot.function.store(there, std::memory_order_relaxed);
    }
    current = tables_.emplace_back(std::move(bigger)).get();
    table_.store(current, std::memory_order_release);
  }
  Slot& slot = slot_of(*current, function);
  used_ += slot.function.load(std::memory_order_relaxed) == nullptr;
  slot.name.store(name, std::memory_order_relaxed);
  slot.function.store(function, std::memory_order_release);
}

bool KernelNames::fits(StringId name, std::string_view symbol) {
  const std::lock_guard lock(mutex_);
  const auto found = descriptions_.find(name);
  return found == descriptions_.end() || found->second.symbol.empty() || found->second.symbol == symbol;
}

void KernelNames::describe(FrameId frame, StringId name) {
  const std::lock_guard lock(mutex_);
  const auto found = descriptions_.find(name);
  if (found == descriptions_.end()) return;
  for (const Attribute& attribute : found->second.attributes)
    FrameTable::instance().describe(frame, attribute.key, attribute.value);
}

}  // namespace bragg
