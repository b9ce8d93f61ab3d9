#include "intake/collective_progress.h"

#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "context/clock.h"
#include "intake/growing_list.h"

namespace bragg::collective_progress {
namespace {

struct Name {
  const char* name;
  Name* next;
};
struct Group {
  const char* name;
  std::atomic<const char*> last{""};
  std::atomic<uint64_t> count{0};
  std::atomic<int64_t> at_ns{0};
  Group* next;
};

constinit std::atomic<Group*> groups{nullptr};
constinit std::atomic<Name*> names{nullptr};
// A program makes some groups; one that numbers its collectives must not fill the memory.
constexpr uint32_t kMaxNames = 4096;
constinit std::atomic<uint32_t> n_names{0};

template <class Node>
auto named(std::string_view name) {
  return [name](const Node& node) { return node.name == name; };
}

template <class Node>
Node* find_or_make(std::atomic<Node*>& list, std::string_view name) {
  if (Node* known =
          find_before(list.load(std::memory_order_acquire), static_cast<const Node*>(nullptr), named<Node>(name)))
    return known;
  if (n_names.fetch_add(1, std::memory_order_relaxed) >= kMaxNames) return nullptr;
  return find_or_add(list, named<Node>(name), [name] {
    auto node = NamedNode<Node>(new Node{});
    node->name = strdup(std::string(name).c_str());
    return node;
  });
}

}  // namespace

void note(std::string_view group, std::string_view collective) noexcept {
  Group* const entered = find_or_make(groups, group);
  if (entered == nullptr) return;
  if (const Name* name = find_or_make(names, collective)) entered->last.store(name->name, std::memory_order_relaxed);
  entered->at_ns.store(monotonic_ns(), std::memory_order_relaxed);
  entered->count.fetch_add(1, std::memory_order_release);
}

void tell_all(void (*tell)(void* context, const Entered&), void* context) {
  for (const Group* group = groups.load(std::memory_order_acquire); group != nullptr; group = group->next)
    tell(context, {group->name, group->last.load(), group->count.load(std::memory_order_acquire), group->at_ns.load()});
}

}  // namespace bragg::collective_progress
