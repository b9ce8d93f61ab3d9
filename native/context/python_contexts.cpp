#include "context/python_contexts.h"

#include <atomic>
#include <bit>
#include <deque>

namespace bragg {
namespace {

using detail::read;

constinit std::atomic<const ScopeVariable*> scope_variable{nullptr};

PythonContext entered(const PythonLayout& layout, const void* context) noexcept {
  if (context == nullptr || read<int32_t>(context, layout.context_entered) == 0) return {};
  return {context, read<const void*>(context, layout.context_previous)};
}

// CPython's hash array mapped tries (hamt.c): five bits of the hash lead from a node to its child, or to a key and its
// value.
//
//   bitmap node  object, u64 size, u32 bitmap, (key or null, value or child)[number of bits]
//   array node   object, child[32]
//   else         keys whose hashes are all alike: not searched
class Search {
 public:
  Search(const PythonLayout& layout, const ScopeVariable& wanted) noexcept : layout_(layout), wanted_(wanted) {}

  [[nodiscard]] const void* value_below(const void* node) const noexcept {
    for (uint32_t shift = 0; node != nullptr && shift < 32; shift += 5) {
      const uint32_t position = wanted_.hash >> shift & 31;
      const auto* type = read<const void*>(node, layout_.object_type);
      if (type == wanted_.array_type) {
        node = read<const void*>(node, layout_.object_size + position * kPointer);
      } else if (type == wanted_.bitmap_type) {
        const auto bitmap = read<uint32_t>(node, layout_.variable_object_size);
        const uint32_t bit = uint32_t{1} << position;
        if ((bitmap & bit) == 0) return nullptr;
        const auto index = static_cast<uint32_t>(std::popcount(bitmap & (bit - 1)));
        const uint32_t pair = layout_.variable_object_size + kPointer + 2 * index * kPointer;
        const auto* key = read<const void*>(node, pair);
        const auto* value = read<const void*>(node, pair + kPointer);
        if (key != nullptr) return key == wanted_.variable ? value : nullptr;
        node = value;
      } else {
        return nullptr;
      }
    }
    return nullptr;
  }

 private:
  static constexpr uint32_t kPointer = sizeof(void*);
  const PythonLayout& layout_;
  const ScopeVariable& wanted_;
};

}  // namespace

PythonContext current_python_context() noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  const void* state = layout != nullptr ? layout->thread_state() : nullptr;
  return state != nullptr ? entered(*layout, read<const void*>(state, layout->thread_state_context)) : PythonContext{};
}

PythonContext left_for(const PythonContext& inner) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  return layout != nullptr ? entered(*layout, inner.previous) : PythonContext{};
}

void set_scope_variable(const ScopeVariable& variable) noexcept {
  static auto& kept = *new std::deque<ScopeVariable>;
  scope_variable.store(&kept.emplace_back(variable), std::memory_order_release);
}

std::optional<uint64_t> inherited_scope(const void* context) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  const ScopeVariable* variable = scope_variable.load(std::memory_order_acquire);
  if (layout == nullptr || variable == nullptr || variable->variable == nullptr) return {};
  const auto* variables = read<const void*>(context, layout->context_variables);
  if (variables == nullptr) return {};
  const void* value = Search(*layout, *variable).value_below(read<const void*>(variables, layout->variables_root));
  if (value == nullptr || read<size_t>(value, layout->bytes_size) != sizeof(uint64_t)) return {};
  return read<uint64_t>(value, layout->bytes_data);
}

}  // namespace bragg
