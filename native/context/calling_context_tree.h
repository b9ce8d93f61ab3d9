// The calling context tree of the process: a node is a (parent, frame) pair; sessions keep their metrics per node.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "context/frame_table.h"

namespace bragg {

inline constexpr NodeId kRootNode = NodeId::Root;

// Threads: `child` from any thread, callbacks included: a hit is lock-free (one hash probe), a miss takes a mutex.
// Nodes are never removed, so a NodeId stays valid and parents precede children.
class CallingContextTree {
 public:
  static CallingContextTree& instance();

  CallingContextTree();
  ~CallingContextTree();
  CallingContextTree(const CallingContextTree&) = delete;
  CallingContextTree& operator=(const CallingContextTree&) = delete;

  // What a node takes, with its place in the index, in the metrics of a session and in its capture.
  static constexpr uint64_t kNodeBytes = 256;
  static constexpr uint64_t kDefaultLimitBytes = 1u << 30;  // 4 M nodes, far above what a person can read
  // As deep as a Python path with its scopes goes before the interpreter gives up recursing.
  static constexpr uint32_t kMaxDepth = 2048;

  // At the limit of nodes and at the depth limit the parent itself is returned and counted: time stays in the tree,
  // detail is lost.
  [[nodiscard]] NodeId child(NodeId parent, FrameId frame) noexcept;
  void set_limit(uint64_t bytes) noexcept;

  [[nodiscard]] uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t too_deep() const noexcept { return too_deep_.load(std::memory_order_relaxed); }
  [[nodiscard]] NodeId parent(NodeId node) const noexcept { return at(node).parent; }
  [[nodiscard]] FrameId frame(NodeId node) const noexcept { return at(node).frame; }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Node {
    NodeId parent;
    FrameId frame;
    uint32_t depth;
  };
  struct Slot {
    std::atomic<uint64_t> key{0};  // parent << 32 | frame; 0 is empty (frame 0 is the root's and nobody's child)
    std::atomic<NodeId> node{kRootNode};
  };
  struct Table {
    explicit Table(uint32_t capacity) : mask(capacity - 1), slots(new Slot[capacity]) {}
    uint32_t mask;
    std::unique_ptr<Slot[]> slots;
  };
  static constexpr uint32_t kChunkNodes = 4096;
  static constexpr uint32_t kMaxNodes = 1u << 26;
  static constexpr uint32_t kSpareNodes = kChunkNodes;  // threads that add at once pass the limit by one each

  [[nodiscard]] const Node& at(NodeId node) const noexcept {
    const uint32_t i = number_of(node);
    return chunks_[i / kChunkNodes].load(std::memory_order_acquire)[i % kChunkNodes];
  }
  static NodeId find(const Table& table, uint64_t key) noexcept;
  static void insert(Table& table, uint64_t key, NodeId node) noexcept;
  NodeId append(NodeId parent, FrameId frame, uint64_t key) noexcept;
  void grow() noexcept;

  std::atomic<Table*> table_;
  std::vector<std::unique_ptr<Table>> tables_;  // old ones stay: a reader may still be probing them
  std::array<std::atomic<Node*>, kMaxNodes / kChunkNodes> chunks_{};
  std::atomic<uint32_t> size_{0};
  std::atomic<uint32_t> limit_{kDefaultLimitBytes / kNodeBytes};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> too_deep_{0};
  std::mutex mutex_;
};

}  // namespace bragg
