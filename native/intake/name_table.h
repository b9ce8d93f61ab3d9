// Names of operators, with what is known of each. A program that numbers its ranges must not fill the memory: beyond
// so many names all others are one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

#include "context/frame_table.h"
#include "intake/growing_list.h"

namespace bragg {

// 16,384 lists: one probe at the few thousand names of a large program. 262,144 names of 20 bytes take 64 MB with their
// frames. Threads: any, without a lock.
template <class Node>
class NameTable {
 public:
  static constexpr uint32_t kMaxNames = 1u << 18;
  static constexpr uint32_t kForOperators = 1u << 14;  // of these, for names with a namespace
  static constexpr const char* kOtherNames = bragg::kOtherNames.data();

  // `make` returns a NamedNode<Node> of the name it is given.
  template <class Make>
  [[nodiscard]] Node* find_or_add(const char* name, const Make& make) noexcept {
    auto& list = lists_[std::hash<std::string_view>{}(name) % lists_.size()];
    const auto matches = [name](const Node& node) { return std::strcmp(node.name, name) == 0; };
    const Node* end = nullptr;
    if (Node* known = find_before(list.load(std::memory_order_acquire), end, matches)) return known;
    if (count_.fetch_add(1, std::memory_order_relaxed) < limit_for(name) || std::strcmp(name, kOtherNames) == 0)
      return bragg::find_or_add(list, matches, [&] { return make(name); });
    count_.fetch_sub(1, std::memory_order_relaxed);
    return find_or_add(kOtherNames, make);
  }

 private:
  static uint32_t limit_for(const char* name) noexcept {
    return std::strstr(name, "::") != nullptr ? kMaxNames : kMaxNames - kForOperators;
  }

  std::array<std::atomic<Node*>, 1 << 14> lists_{};
  std::atomic<uint32_t> count_{0};
};

}  // namespace bragg
