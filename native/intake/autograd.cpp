#include "intake/autograd.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "context/found_once.h"
#include "context/hash.h"
#include "context/thread_context.h"

namespace bragg::autograd {
namespace {

constexpr std::string_view kEvaluation = "autograd::engine::evaluate_function: ";
constexpr std::string_view kGradient = "torch::autograd::AccumulateGrad", kRoot = "torch::autograd::GraphRoot";

// The engine that is followed, and whether one is: a cache line.
struct alignas(64) Followed {
  std::atomic<const Engine*> engine{nullptr};
  Engine first;
};
constinit Followed followed{};

// A node of autograd, as a key: never 0, as threads count from 1.
class NodeKey {
 public:
  NodeKey(uint64_t thread, uint64_t number) noexcept : bits_(thread << kNumberBits | number) {
    is_valid_ = thread != 0 && thread >> (64 - kNumberBits) == 0 && number >> kNumberBits == 0;
  }
  [[nodiscard]] bool is_valid() const noexcept { return is_valid_; }
  [[nodiscard]] uint64_t bits() const noexcept { return bits_; }
  // Nodes of one thread are neighbours: none takes the place of another one until the table has gone round.
  [[nodiscard]] uint64_t place() const noexcept { return spread(bits_ >> kNumberBits) + bits_; }

 private:
  static constexpr int kNumberBits = 44;
  uint64_t bits_;
  bool is_valid_;
};

// Where the operators that created nodes stand, of the latest 524,288 nodes: 8 MB once all are in use. A program that
// runs that many forward operators before their backward has some of the backward without its place, never at a wrong
// one.
class Places {
 public:
  void put(NodeKey key, ContextNodes nodes) noexcept {
    Place& place = places_[key.place() % places_.size()];
    place.key.store(0, std::memory_order_release);  // a reader between these stores finds nothing
    place.nodes.store(std::bit_cast<uint64_t>(nodes), std::memory_order_release);
    place.key.store(key.bits(), std::memory_order_release);
  }
  [[nodiscard]] std::optional<ContextNodes> find(NodeKey key) const noexcept {
    const Place& place = places_[key.place() % places_.size()];
    if (place.key.load(std::memory_order_acquire) != key.bits()) return {};
    const uint64_t nodes = place.nodes.load(std::memory_order_acquire);
    if (place.key.load(std::memory_order_acquire) != key.bits()) return {};
    return std::bit_cast<ContextNodes>(nodes);
  }

 private:
  struct Place {
    std::atomic<uint64_t> key{0};
    std::atomic<uint64_t> nodes{0};
  };
  std::array<Place, 1 << 19> places_{};
};
static_assert(sizeof(ContextNodes) == sizeof(uint64_t));
constinit Places places;

uint64_t word(const std::byte* object, uint32_t offset) noexcept {
  uint64_t value;
  std::memcpy(&value, object + offset, sizeof value);
  return value;
}

// A c10::intrusive_ptr that is returned. The engine holds the node while it is evaluated, so the last reference is
// never ours and there is nothing to free.
struct IntrusiveReference {
  const std::byte* node;
  ~IntrusiveReference() {
    if (node == nullptr) return;
    auto& count = *reinterpret_cast<uint64_t*>(const_cast<std::byte*>(node) + sizeof(void*));
    std::atomic_ref(count).fetch_sub(1, std::memory_order_acq_rel);
  }
};

template <class Node>
std::optional<NodeKey> key_of(const Engine& from, const Node* node) noexcept {
  if (node == nullptr) return {};
  const auto* object = static_cast<const std::byte*>(static_cast<const void*>(node));
  return NodeKey(word(object, from.thread_offset), word(object, from.number_offset));
}

std::optional<NodeKey> current_node(const Engine& from) noexcept {
  if (from.counts_references_itself)
    return key_of(from, reinterpret_cast<IntrusiveReference (*)()>(from.current_node)().node);
  return key_of(from, reinterpret_cast<std::shared_ptr<const void> (*)()>(from.current_node)().get());
}

// Only its thread writes it, so no addition is lost.
void add(std::atomic<uint64_t>& count, uint64_t more) noexcept {
  count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

[[gnu::noinline]] void place_nodes(ThreadContext& thread, const Engine& from, uint64_t first, uint64_t next) noexcept {
  const std::optional<ContextNodes> creator = thread.innermost_operator();
  if (!creator) return;
  add(thread.autograd_nodes, next - first);
  const uint64_t thread_number = from.thread_number();
  for (uint64_t number = first; number < next; ++number)
    if (const NodeKey key(thread_number, number); key.is_valid()) places.put(key, *creator);
}

// Nodes that came since the last call belong to the innermost operator that is open: each begin and end calls this.
void place_new_nodes(ThreadContext& thread, const Engine& from) noexcept {
  const uint64_t next = from.next_number();
  const uint64_t first = std::exchange(thread.next_node_number, next);
  if (first < next) place_nodes(thread, from, first, next);
}

constinit FoundOnce<FrameId> backward_frame, unknown_frame;

FrameId unknown_operator() noexcept {
  return unknown_frame.get([] { return intern_frame(FrameKind::Operator, "[backward of an unknown operator]"); });
}

[[gnu::noinline]] void push_backward(ThreadContext& thread, ContextNodes forward, Source source,
                                     EntryOwner owner) noexcept {
  const FrameId backward = backward_frame.get([] { return intern_frame(FrameKind::State, "[backward]"); });
  thread.push_elsewhere(forward, source, backward, owner);
}

[[gnu::noinline]] void push_node(ThreadContext& thread, const Engine& from, Source source, EntryOwner owner) noexcept {
  const std::optional<NodeKey> key = current_node(from);
  thread.latest_forward = key && key->is_valid() ? places.find(*key) : std::nullopt;
  if (!thread.latest_forward) return thread.push_operator(source, unknown_operator(), owner);
  push_backward(thread, *thread.latest_forward, source, owner);
}

}  // namespace

std::string_view evaluated_by(std::string_view name) noexcept {
  return name.starts_with(kEvaluation) ? name.substr(kEvaluation.size()) : std::string_view();
}

TaskKind kind_of(std::string_view name) noexcept {
  const std::string_view node = evaluated_by(name);
  if (node.empty()) return TaskKind::Operator;
  if (node == kGradient) return TaskKind::Gradient;
  return node == kRoot ? TaskKind::NodeWithoutForward : TaskKind::Node;
}

[[gnu::hot]] void begin(ThreadContext& thread, Source source, FrameId frame, TaskKind kind, EntryOwner owner) noexcept {
  if (kind == TaskKind::Other) return thread.push(source, frame);
  const Engine* from = followed.engine.load(std::memory_order_acquire);
  if (from != nullptr) place_new_nodes(thread, *from);
  if (from != nullptr && kind == TaskKind::Node) {
    add(thread.evaluated_nodes, 1);
    return push_node(thread, *from, source, owner);
  }
  if (kind == TaskKind::Gradient && thread.latest_forward)
    return push_backward(thread, *thread.latest_forward, source, owner);
  if (kind == TaskKind::NodeWithoutForward) thread.latest_forward.reset();
  thread.push_operator(source, frame, owner);
}

[[gnu::hot]] void end(ThreadContext& thread, Source source, EntryOwner owner) noexcept {
  if (const Engine* from = followed.engine.load(std::memory_order_acquire)) place_new_nodes(thread, *from);
  thread.pop(source, owner);
}

void begin_range(Source source, FrameId frame, TaskKind kind) noexcept {
  ThreadContext& thread = ThreadContext::current();
  thread.cost.measure(CostPart::Operators, [&] { begin(thread, source, frame, kind, nullptr); });
}

void end_range(Source source) noexcept {
  ThreadContext* thread = ThreadContext::current_if_any();
  if (thread != nullptr) thread->cost.measure(CostPart::Operators, [&] { end(*thread, source, nullptr); });
}

void follow(const Engine& what) noexcept {
  if (followed.engine.load(std::memory_order_acquire) != nullptr) return;
  followed.first = what;
  followed.engine.store(&followed.first, std::memory_order_release);
}

bool follow(const char* library, Engine what, uint64_t expected_thread_number) noexcept {
  void* const torch = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (torch == nullptr) return false;
  const auto find = [torch](const char* symbol) { return dlsym(torch, symbol); };
  what.next_number = reinterpret_cast<uint64_t (*)()>(find("_ZN2at15sequence_number4peekEv"));
  what.thread_number = reinterpret_cast<uint64_t (*)()>(find("_ZN2at14RecordFunction15currentThreadIdEv"));
  what.current_node = find("_ZN5torch8autograd16get_current_nodeEv");
  if (what.next_number == nullptr || what.thread_number == nullptr || what.current_node == nullptr) return false;
  if (what.thread_number() != expected_thread_number) return false;
  follow(what);
  return true;
}

}  // namespace bragg::autograd
