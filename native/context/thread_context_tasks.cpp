// The scopes of tasks that take turns on a thread.
//
//   entries_    thread's own │ those of the task that runs, and of what it runs within
//   tasks_[i].parked         │ those of another task, until it runs again
//
// A task is known by its contextvars context. The interpreter tells nobody when it exchanges the context of a thread,
// so whoever needs the stack compares. A context that has entries is kept alive, hence its address is its own; what a
// task without any inherits is looked up each time.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "context/thread_context.h"

namespace bragg {
namespace {

constexpr size_t kMaxNested = 32;  // contexts entered within each other

std::optional<ContextNodes> inherited_in(const void* context) noexcept {
  const std::optional<uint64_t> value = context != nullptr ? inherited_scope(context) : std::nullopt;
  return value ? std::optional(std::bit_cast<ContextNodes>(*value)) : std::nullopt;
}

}  // namespace

bool ThreadContext::enter_in_task(FrameId frame, EntryOwner owner) noexcept {
  recording_state.follows_tasks.store(true, std::memory_order_relaxed);
  follow_task_now();
  if (followed_.id != nullptr && task_ == kNoTask) task_ = begin_task(followed_.id);
  const uint32_t unopened = unopened_;
  push(Source::Api, frame, EntryKind::Range, owner);
  if (task_ == kNoTask || unopened_ != unopened) return false;
  ++tasks_[task_].n_scopes;
  return true;
}

bool ThreadContext::leave_in_task(EntryOwner owner) noexcept {
  follow_task_now();
  std::optional<Entry> ended = take(Source::Api, owner);
  if (!ended && owner != nullptr) ended = remove_parked(Source::Api, owner);  // another task closes its coroutine
  if (!ended) return false;
  finish(*ended);
  if (ended->task == kNoTask || --tasks_[ended->task].n_scopes > 0)
    return ended->task != kNoTask && ended->task == task_;
  const bool is_own = ended->task == task_;
  const std::optional<ContextNodes> inherited = tasks_[ended->task].inherited;
  const void* kept = end_task(ended->task);
  if (is_own) see_inherited(inherited);
  // Last: what is destroyed with it may enter scopes.
  if (const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire)) layout->let_go(kept);
  return is_own;
}

std::optional<ContextNodes> ThreadContext::inherited_by_tasks() const noexcept {
  for (uint32_t i = depth_; i-- > 0;)
    if (entries_[i].source == Source::Inherited || (entries_[i].source == Source::Api && entries_[i].task != kNoTask))
      return entries_[i].nodes;
  return {};
}

void ThreadContext::follow_task_now() noexcept {
  const PythonContext context = current_python_context();
  if (context == followed_ && (task_ != kNoTask || context.id == nullptr)) return;
  see(context);
}

void ThreadContext::see(PythonContext context) noexcept {
  std::array<TaskSlot, kMaxNested> visible;
  size_t n_visible = 0;
  for (PythonContext each = context; each.id != nullptr && n_visible < kMaxNested; each = left_for(each))
    if (const TaskSlot slot = slot_of(each.id); slot != kNoTask) visible[n_visible++] = slot;
  see_inherited({});
  park_others({visible.data(), n_visible});
  for (size_t i = n_visible; i-- > 0;) bring_back(visible[i]);
  followed_ = context;
  task_ = slot_of(context.id);
  if (task_ == kNoTask) see_inherited(inherited_in(context.id));
  publish(depth_ > 0 ? entries_[depth_ - 1].nodes : ContextNodes{});
}

// The scope that the task was made in, as the innermost entry, unless the stack is in it anyway.
void ThreadContext::see_inherited(std::optional<ContextNodes> nodes) noexcept {
  for (uint32_t i = depth_; i-- > 0;)
    if (entries_[i].source == Source::Inherited) remove(i);
  if (!nodes) return;
  const auto is_open = [&](const Entry& entry) { return entry.nodes == *nodes; };
  if (std::any_of(&entries_[0], &entries_[depth_], is_open)) return;
  Entry entry{};
  entry.nodes = *nodes;
  entry.source = Source::Inherited;
  append(entry, nullptr);
}

TaskSlot ThreadContext::slot_of(const void* context) const noexcept {
  const auto found = slots_.find(context);
  return found != slots_.end() ? found->second : kNoTask;
}

TaskSlot ThreadContext::begin_task(const void* context) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (tasks_.empty()) tasks_.emplace_back();
  const auto is_free = [](const Task& task) { return task.context == nullptr; };
  auto slot = std::find_if(tasks_.begin() + 1, tasks_.end(), is_free);
  if (slot == tasks_.end()) {
    if (tasks_.size() > std::numeric_limits<TaskSlot>::max()) return kNoTask;  // the scope is the thread's
    tasks_.emplace_back();
    slot = tasks_.end() - 1;
  }
  layout->keep(context);
  slot->context = context;
  slot->n_scopes = 0;
  slot->inherited = inherited_in(context);
  const auto number = static_cast<TaskSlot>(slot - tasks_.begin());
  slots_[context] = number;
  return number;
}

// What other tools have left open in the task is the thread's from now on.
const void* ThreadContext::end_task(TaskSlot slot) noexcept {
  Task& task = tasks_[slot];
  for (auto& [entry, opening] : task.parked) {
    entry.task = kNoTask;
    append(entry, &opening);
  }
  task.parked.clear();
  for (uint32_t i = 0; i < depth_; ++i)
    if (entries_[i].task == slot) entries_[i].task = kNoTask;
  slots_.erase(task.context);
  if (task_ == slot) task_ = kNoTask;
  return std::exchange(task.context, nullptr);
}

std::optional<ThreadContext::Entry> ThreadContext::remove_parked(Source source, EntryOwner owner) noexcept {
  for (Task& task : tasks_) {
    const auto found = std::find_if(task.parked.rbegin(), task.parked.rend(), [&](const auto& each) {
      return each.first.source == source && each.first.owner == owner;
    });
    if (found == task.parked.rend()) continue;
    const Entry entry = found->first;
    task.parked.erase(std::next(found).base());
    return entry;
  }
  return {};
}

void ThreadContext::park_others(std::span<const TaskSlot> visible) noexcept {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < depth_; ++i) {
    const TaskSlot task = entries_[i].task;
    if (task == kNoTask || std::ranges::find(visible, task) != visible.end()) {
      entries_[kept++] = entries_[i];
    } else {
      tasks_[task].parked.emplace_back(entries_[i], openings_[entries_[i].opening]);
    }
  }
  depth_ = kept;
}

void ThreadContext::bring_back(TaskSlot slot) noexcept {
  for (const auto& [entry, opening] : tasks_[slot].parked) append(entry, &opening);
  tasks_[slot].parked.clear();
}

void ThreadContext::append(const Entry& entry, const Opening* opening) noexcept {
  if (depth_ == capacity_ || (depth_ > 0 && entries_[depth_ - 1].opening + 1 == capacity_)) make_room();
  const uint32_t place = depth_ > 0 ? entries_[depth_ - 1].opening + 1 : 0;
  openings_[place] = opening != nullptr ? *opening : Opening{};
  entries_[depth_] = entry;
  entries_[depth_].opening = place;
  ++depth_;
}

}  // namespace bragg
