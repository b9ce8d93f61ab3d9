// Lists of nodes that are never removed; no lock, so that a fork never finds one taken.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace bragg {

// Threads: any.
template <class Node, class Matches>
[[nodiscard]] Node* find_before(Node* first, const Node* end, const Matches& matches) noexcept {
  for (Node* node = first; node != end; node = node->next)
    if (matches(*node)) return node;
  return nullptr;
}

// The node that matches; if there is none, the one that `make` returns a unique_ptr to. Threads: any.
template <class Node, class Matches, class Make>
[[nodiscard]] Node* find_or_add(std::atomic<Node*>& list, const Matches& matches, const Make& make) noexcept {
  decltype(make()) added;
  const Node* searched = nullptr;  // this node and those behind it do not match
  Node* first = list.load(std::memory_order_acquire);
  do {
    if (Node* found = find_before(first, searched, matches)) return found;
    searched = first;
    if (added == nullptr) added = make();
    added->next = first;
  } while (!list.compare_exchange_weak(first, added.get(), std::memory_order_acq_rel, std::memory_order_acquire));
  return added.release();
}

// Nodes own a NUL-terminated `name`. They are freed only when another thread was faster to add theirs.
template <class Node>
struct NamedNodeDeleter {
  void operator()(Node* node) const noexcept {
    std::free(const_cast<char*>(std::string_view(node->name).data()));
    delete node;
  }
};
template <class Node>
using NamedNode = std::unique_ptr<Node, NamedNodeDeleter<Node>>;

}  // namespace bragg
