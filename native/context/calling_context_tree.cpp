#include "context/calling_context_tree.h"

#include <algorithm>

#include "context/hash.h"

namespace bragg {
namespace {

uint32_t place_of(uint64_t key) { return static_cast<uint32_t>(spread(key) >> 32); }

}  // namespace

CallingContextTree& CallingContextTree::instance() {
  static CallingContextTree& tree = *new CallingContextTree;  // never destroyed: callbacks may come at any time
  return tree;
}

CallingContextTree::CallingContextTree() {
  tables_.push_back(std::make_unique<Table>(1u << 12));
  table_.store(tables_.back().get(), std::memory_order_release);
  auto* chunk = new Node[kChunkNodes];
  chunk[0] = {NodeId::None, FrameId::Root, 0};
  chunks_[0].store(chunk, std::memory_order_release);
  size_.store(1, std::memory_order_release);
}

CallingContextTree::~CallingContextTree() {
  for (const auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

NodeId CallingContextTree::find(const Table& table, uint64_t key) noexcept {
  for (uint32_t i = place_of(key);; ++i) {
    const Slot& slot = table.slots[i & table.mask];
    const uint64_t present = slot.key.load(std::memory_order_acquire);
    if (present == key) return slot.node.load(std::memory_order_relaxed);
    if (present == 0) return NodeId::None;
  }
}

void CallingContextTree::insert(Table& table, uint64_t key, NodeId node) noexcept {
  uint32_t i = place_of(key);
  while (table.slots[i & table.mask].key.load(std::memory_order_relaxed) != 0) ++i;
  Slot& slot = table.slots[i & table.mask];
  slot.node.store(node, std::memory_order_relaxed);
  slot.key.store(key, std::memory_order_release);
}

void CallingContextTree::set_limit(uint64_t bytes) noexcept {
  const uint64_t nodes = std::min<uint64_t>(bytes / kNodeBytes, kMaxNodes - kSpareNodes);
  limit_.store(static_cast<uint32_t>(nodes), std::memory_order_relaxed);
}

NodeId CallingContextTree::child(NodeId parent, FrameId frame) noexcept {
  const uint64_t key = pair_of(parent, frame);
  if (const NodeId node = find(*table_.load(std::memory_order_acquire), key); node != NodeId::None) return node;
  if (size() >= limit_.load(std::memory_order_relaxed)) {  // without the lock: a full tree costs no thread more
    refused_.fetch_add(1, std::memory_order_relaxed);
    return parent;
  }
  if (at(parent).depth == kMaxDepth) {
    too_deep_.fetch_add(1, std::memory_order_relaxed);
    return parent;
  }
  const std::lock_guard lock(mutex_);
  if (const NodeId node = find(*tables_.back(), key); node != NodeId::None) return node;
  return append(parent, frame, key);
}

NodeId CallingContextTree::append(NodeId parent, FrameId frame, uint64_t key) noexcept {
  const uint32_t i = size_.load(std::memory_order_relaxed);
  if (i % kChunkNodes == 0) chunks_[i / kChunkNodes].store(new Node[kChunkNodes], std::memory_order_release);
  chunks_[i / kChunkNodes].load(std::memory_order_relaxed)[i % kChunkNodes] = {parent, frame, at(parent).depth + 1};
  size_.store(i + 1, std::memory_order_release);
  if (i * 2 > tables_.back()->mask) grow();
  insert(*tables_.back(), key, NodeId{i});
  return NodeId{i};
}

void CallingContextTree::grow() noexcept {
  auto bigger = std::make_unique<Table>((tables_.back()->mask + 1) * 2);
  const uint32_t count = size_.load(std::memory_order_relaxed) - 1;  // the node being added is inserted by the caller
  for (uint32_t i = 1; i < count; ++i) {
    const Node& node = at(NodeId{i});
    insert(*bigger, pair_of(node.parent, node.frame), NodeId{i});
  }
  table_.store(bigger.get(), std::memory_order_release);
  tables_.push_back(std::move(bigger));
}

}  // namespace bragg
