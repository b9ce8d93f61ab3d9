#include "intake/itt.h"

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <string_view>

#include "context/nested_flags.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/growing_list.h"
#include "intake/name_table.h"
#include "intake/record_function.h"

namespace bragg::itt {
namespace {

// Threads: any.
template <class Node>
NamedNode<Node> make_named(const char* name) {
  return NamedNode<Node>(new Node{.name = strdup(name)});
}

std::atomic<Domain*> domains{nullptr};
constinit NameTable<StringHandle> handles{};  // PyTorch asks for one at every operator

Domain* domain_create(const char* name) noexcept {
  return find_or_add(
      domains, [name](const Domain& domain) { return std::strcmp(domain.name, name) == 0; },
      [name] { return make_named<Domain>(name); });
}

StringHandle* string_handle_create(const char* name) noexcept {
  return handles.find_or_add(name, make_named<StringHandle>);
}

constexpr std::string_view kTorch = "PyTorch";

FrameId intern_task(const Domain& domain, const StringHandle& handle) {
  const std::string_view domain_name = domain.name;
  if (domain_name == kTorch) return intern_frame(FrameKind::Operator, handle.name);
  if (domain_name.starts_with("dnnl::"))  // dnnl::primitive::create and dnnl::primitive::execute use the same names
    return intern_frame(FrameKind::Operator, std::string(domain_name) + "::" + handle.name);
  return intern_frame(FrameKind::Scope, handle.name);
}

const TaskFrame& frame_of(const Domain& domain, StringHandle& handle) {
  std::atomic_ref frames(handle.frames);
  TaskFrame* first = frames.load(std::memory_order_acquire);
  for (const TaskFrame* known = first; known != nullptr; known = known->next)
    if (known->domain == &domain) return *known;
  const auto kind = domain.name == kTorch ? autograd::kind_of(handle.name) : autograd::TaskKind::Other;
  auto* added = new TaskFrame{&domain, intern_task(domain, handle), kind, first};
  while (!frames.compare_exchange_weak(added->next, added, std::memory_order_acq_rel)) {
  }
  return *added;
}

// Of the open tasks of this thread.
[[gnu::tls_model("initial-exec")]] constinit thread_local NestedFlags was_pushed(true);

void task_begin(const Domain* domain, Id, Id, StringHandle* name) noexcept {
  const bool records = recording_state.existing.load(std::memory_order_relaxed) != 0;
  const TaskFrame* task = records ? &frame_of(*domain, *name) : nullptr;
  const bool pushes = records && !record_function::is_told(task->frame, task->kind);
  was_pushed.push(pushes);
  if (pushes) autograd::begin_range(Source::Itt, task->frame, task->kind);
}

void task_end(const Domain*) noexcept {
  if (was_pushed.pop()) autograd::end_range(Source::Itt);
}

struct Implementation {
  std::string_view name;
  void* function;
};

const std::array implementations{
    Implementation{"__itt_domain_create", reinterpret_cast<void*>(domain_create)},
    Implementation{"__itt_string_handle_create", reinterpret_cast<void*>(string_handle_create)},
    Implementation{"__itt_task_begin", reinterpret_cast<void*>(task_begin)},
    Implementation{"__itt_task_end", reinterpret_cast<void*>(task_end)},
};

void* implementation_of(const ApiEntry& entry) noexcept {
  for (const auto& [name, function] : implementations)
    if (name == entry.name) return function;
  return entry.null_function;
}

}  // namespace
}  // namespace bragg::itt

void __itt_api_init(bragg::itt::Global* global, int) noexcept {
  for (const auto* entry = global->api_list; entry->name != nullptr; ++entry)
    *entry->function = bragg::itt::implementation_of(*entry);
}
