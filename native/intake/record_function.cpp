#include "intake/record_function.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "context/hash.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/collective_names.h"
#include "intake/collective_progress.h"
#include "intake/name_table.h"
#include "intake/operator_inputs.h"
#include "intake/tensor_origins.h"

namespace bragg::record_function {
namespace {

struct RecordFunction;  // at::RecordFunction: an operator that runs

// at::ObserverContext: what a start callback leaves to the end callback. PyTorch deletes it; ours stay for ever.
class Context {
 public:
  Context(ThreadContext* thread, uint32_t entries) noexcept : thread_(thread), entries_(entries) {}
  virtual ~Context() = default;
  static void operator delete(Context*, std::destroying_delete_t) noexcept {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const ThreadContext* thread() const noexcept { return thread_; }  // where the operator began
  [[nodiscard]] uint32_t entries() const noexcept { return entries_; }            // that it opened there

 private:
  ThreadContext* thread_;
  uint32_t entries_;
};

struct OwnedContext {  // a std::unique_ptr, as it is returned
  Context* context;
  ~OwnedContext() {}
};

// at::RecordFunctionCallback. Up to three more scopes would still fit: all flags are off.
struct Callbacks {
  OwnedContext (*start)(const RecordFunction*);
  void (*end)(const RecordFunction*, const Context*);
  double sampling_probability;
  std::array<bool, 10> scopes;
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
};
static_assert(sizeof(Callbacks) == 40);

// at::RecordScope: FUNCTION, TORCHSCRIPT_FUNCTION, CUSTOM_CLASS and USER_SCOPE. Without BACKWARD_FUNCTION: the engine's
// own range around each such function names it too, and PyTorch makes a string for either.
constexpr std::array<bool, 10> kScopes{true, false, true, false, true, false, false, true};

using Handle = uint64_t;

struct Functions {
  Handle (*add_thread_local)(Callbacks);
  Handle (*add_global)(Callbacks);
  void (*remove)(Handle);
  const char* (*name)(const RecordFunction*);
  bool (*is_async)(const RecordFunction*);
  size_t (*n_outputs)(const RecordFunction*);
};
struct EndedElsewhere;

// What each operator needs of the process, in one cache line: between two of them PyTorch and the driver run so much
// that most of ours has left the caches.
struct alignas(64) Wanted {
  Functions torch{};  // complete before the first callback is added
  std::atomic<EndedElsewhere*> ended_elsewhere{nullptr};
  std::atomic<bool> shapes{false};
  std::atomic<bool> origins{false};
  bool can_tell_collectives = false;
};
static_assert(sizeof(Wanted) == 64);
constinit Wanted wanted{};
constexpr Functions& torch = wanted.torch;

constinit bool can_tell_shapes = false;
constinit bool can_tell_origins = false;
constinit std::atomic<Handle> observer{0};  // 0: there is none

// What tensors an operator makes.
enum class Makes : uint8_t {
  Outputs,
  Nothing,   // it returns its input, or what an operator within it has made
  Unseen,    // compiled code in it makes tensors without operators
  Messages,  // nothing: it is a collective, whose name says what is sent
};

Makes makes_of(std::string_view name) noexcept {
  if (name == collective_names::kOperator) return Makes::Messages;
  constexpr std::array<std::string_view, 6> kPassOn{"aten::contiguous",   "aten::requires_grad_",
                                                    "aten::resolve_conj", "aten::resolve_neg",
                                                    "aten::to",           "aten::type_as"};
  if (std::ranges::find(kPassOn, name) != kPassOn.end()) return Makes::Nothing;
  const bool is_compiled =
      name.starts_with("Torch-Compiled Region") || name.find("CompiledFunction") != std::string_view::npos;
  return is_compiled ? Makes::Unseen : Makes::Outputs;
}

struct Operator {
  const char* name;
  autograd::TaskKind kind;
  FrameId frame;
  FrameId evaluated;  // what the engine evaluates in this range; None: it is no such range
  Makes makes;
  Operator* next;
};

constinit NameTable<Operator> operators{};

// An operator with the shapes of its inputs.
struct Shaped {
  const char* name;
  FrameId frame;
  Shaped* next;
};
constinit NameTable<Shaped> shaped{};

NamedNode<Operator> make_operator(const char* name) {
  const std::string_view evaluated = autograd::evaluated_by(name);
  return NamedNode<Operator>(
      new Operator{.name = strdup(name),
                   .kind = autograd::kind_of(name),
                   .frame = intern_frame(FrameKind::Operator, name),
                   .evaluated = evaluated.empty() ? FrameId::None : intern_frame(FrameKind::Operator, evaluated),
                   .makes = makes_of(name),
                   .next = nullptr});
}

// What a thread keeps of an operator that it has met: a cache line, unless the name is longer than most.
class alignas(64) MetOperator {
 public:
  MetOperator() = default;
  MetOperator(const MetOperator&) = delete;
  MetOperator& operator=(const MetOperator&) = delete;

  [[nodiscard]] bool is_called(const char* name) const noexcept {
    return name_ != nullptr && std::strcmp(name_, name) == 0;
  }
  void keep(const Operator& known, bool is_of_schema) noexcept {
    has_schema = is_of_schema;
    frame = known.frame;
    evaluated = known.evaluated;
    kind = known.kind;
    makes = known.makes;
    const size_t size = std::strlen(known.name) + 1;
    name_ = size <= text_.size() ? static_cast<char*>(std::memcpy(text_.data(), known.name, size)) : known.name;
  }
  [[nodiscard]] const char* name() const noexcept { return name_; }

  FrameId frame = FrameId::None;
  FrameId evaluated = FrameId::None;
  autograd::TaskKind kind{};
  Makes makes{};
  bool has_schema = false;

 private:
  std::array<char, 45> text_;
  const char* name_ = nullptr;
};
static_assert(sizeof(MetOperator) == 64);

// Only an operator with a schema knows at its begin how many outputs it will have. No range has its name at the same
// address, and it ends on the thread that it began on, as it is on the stack of that.
bool has_schema(const RecordFunction* running) noexcept {
  return torch.n_outputs != nullptr && torch.n_outputs(running) > 0;
}

// What one thread remembers, by the address of a name. An operator's name stays at one address, in its schema. The text
// is compared all the same, because names of ranges lie wherever there was room.
struct Observed {
  explicit Observed(ThreadContext* thread) noexcept : context_of_entries{{thread, 1}, {thread, 2}} {}

  [[nodiscard]] static Observed& of(ThreadContext& thread) noexcept {
    if (thread.observed == nullptr) [[unlikely]]
      begin(thread);
    return *static_cast<Observed*>(thread.observed);
  }
  [[gnu::noinline]] static void begin(ThreadContext& thread) noexcept { thread.observed = new Observed(&thread); }
  [[nodiscard]] const MetOperator& operator_called(const char* name, const RecordFunction* running) noexcept {
    MetOperator& met = met_operators[spread(uint64_t{reinterpret_cast<uintptr_t>(name)}) >> 54];
    if (!met.is_called(name)) [[unlikely]]
      meet(met, name, running);
    return met;
  }
  [[gnu::noinline]] static void meet(MetOperator& met, const char* name, const RecordFunction* running) noexcept {
    met.keep(*operators.find_or_add(name, make_operator), has_schema(running));
  }

  alignas(64) Context context_of_entries[2];  // by their number less one
  std::array<MetOperator, 1 << 10> met_operators;
};

// Beyond so many shapes, an operator is shown without.
[[gnu::noinline]] FrameId detailed_frame_of(const MetOperator& known, const RecordFunction* running,
                                            bool is_collective) noexcept {
  const FrameId plain = known.frame;
  const std::string plain_name = known.name();
  // This may run other operators, after which `known` may be one of these.
  const std::string name =
      is_collective ? collective_names::of_this_thread() : operator_inputs::with_inputs(plain_name, running);
  if (name.empty() || name == plain_name) return plain;
  const Shaped& found = *shaped.find_or_add(name.c_str(), [](const char* text) {
    return NamedNode<Shaped>(
        new Shaped{.name = strdup(text), .frame = intern_frame(FrameKind::Operator, text), .next = nullptr});
  });
  return name == found.name ? found.frame : plain;
}

FrameId frame_of(const MetOperator& known, const RecordFunction* running) noexcept {
  const bool is_collective = known.makes == Makes::Messages && wanted.can_tell_collectives;
  if (!is_collective && !wanted.shapes.load(std::memory_order_relaxed)) [[likely]]
    return known.frame;
  return detailed_frame_of(known, running, is_collective);
}

void close(ThreadContext& thread, const RecordFunction* running, uint32_t entries) noexcept {
  for (uint32_t entry = 0; entry < entries; ++entry) autograd::end(thread, Source::RecordFunction, running);
}

// Operators that ended on another thread than they began on, as a range does whose Python object dies late: their own
// thread closes them when it next comes by. No lock, so that a fork never finds one taken.
struct EndedElsewhere {
  const ThreadContext* thread;
  const RecordFunction* running;
  uint32_t entries;
  EndedElsewhere* next = nullptr;
};

void add(EndedElsewhere* ended) noexcept {
  ended->next = wanted.ended_elsewhere.load(std::memory_order_relaxed);
  while (!wanted.ended_elsewhere.compare_exchange_weak(ended->next, ended, std::memory_order_release)) {
  }
}

[[gnu::noinline]] void close_ended_elsewhere(ThreadContext& thread) noexcept {
  EndedElsewhere* ended = wanted.ended_elsewhere.exchange(nullptr, std::memory_order_acquire);
  while (ended != nullptr) {
    EndedElsewhere* const next = ended->next;
    if (ended->thread == &thread) {
      close(thread, ended->running, ended->entries);
      delete ended;
    } else {
      add(ended);
    }
    ended = next;
  }
}

void close_those_of(ThreadContext& thread) noexcept {
  if (wanted.ended_elsewhere.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    close_ended_elsewhere(thread);
}

[[gnu::noinline]] void note_outputs(ThreadContext& thread, const RecordFunction* running) noexcept {
  const Makes makes = Observed::of(thread).operator_called(torch.name(running), running).makes;
  if (makes == Makes::Unseen) tensor_origins::forget_all();
  if (makes == Makes::Nothing || makes == Makes::Messages) return;
  if (const auto producer = thread.nodes_of(Source::RecordFunction, running))
    tensor_origins::note_outputs(running, *producer);
}

// Returns what tells `end` how many entries were opened, and where. Nothing: one, and it ends on this thread. PyTorch
// needs not delete it then, which would touch three cache lines.
[[gnu::hot]] Context* open(ThreadContext& thread, const RecordFunction* running, const char* name) noexcept {
  close_those_of(thread);
  Observed& observed = Observed::of(thread);
  const MetOperator& known = observed.operator_called(name, running);
  const autograd::TaskKind kind = known.kind;
  const FrameId evaluated = known.evaluated;
  const bool ends_here = known.has_schema;
  autograd::begin(thread, Source::RecordFunction, frame_of(known, running), kind, running);
  if (wanted.origins.load(std::memory_order_relaxed))
    tensor_origins::note_inputs(thread, running, thread.innermost_entry());
  if (evaluated == FrameId::None) {
    const bool needs_no_telling = ends_here && thread.is_innermost_of(Source::RecordFunction, running);
    return needs_no_telling ? nullptr : &observed.context_of_entries[0];
  }
  thread.push_operator(Source::RecordFunction, evaluated, running);
  return &observed.context_of_entries[1];
}

// PyTorch's own operators, most of what runs, are not asynchronous.
bool may_be_async(const char* name) noexcept {
  for (const char own : std::string_view("aten::"))
    if (*name++ != own) return true;
  return false;
}

// Asynchronous ones, such as collectives, end when they like and on any thread: they are not part of a thread's path.
[[gnu::hot]] OwnedContext start(const RecordFunction* running) {
  if (recording_state.existing.load(std::memory_order_relaxed) == 0) return {nullptr};
  const char* const name = torch.name(running);
  if (may_be_async(name) && torch.is_async(running)) {
    // Those of NCCL are inside the operator that `collective_names` reads.
    if (std::string_view(name).starts_with("gloo:")) collective_progress::note("gloo", name);
    return {nullptr};
  }
  ThreadContext& thread = ThreadContext::current();
  Context* context = nullptr;
  thread.cost.measure(CostPart::Operators, [&] { context = open(thread, running, name); });
  return {context};
}

[[gnu::noinline]] void end_elsewhere(const RecordFunction* running, const Context& context) {
  add(new EndedElsewhere{context.thread(), running, context.entries()});
}

[[gnu::hot]] void end(const RecordFunction* running, const Context* context) {
  ThreadContext* const thread = ThreadContext::current_if_any();
  uint32_t entries = 1;
  if (context == nullptr) [[likely]] {
    if (thread == nullptr || !thread->has_open(Source::RecordFunction, running)) return;  // it was not recorded
  } else if (context->thread() == thread) {
    entries = context->entries();
  } else {
    return end_elsewhere(running, *context);
  }
  thread->cost.measure(CostPart::Operators, [&] {
    close_those_of(*thread);
    if (wanted.origins.load(std::memory_order_relaxed)) [[unlikely]]
      note_outputs(*thread, running);
    close(*thread, running, entries);
  });
}

// What a trial has seen: one operator begins, others perhaps within it, and it ends.
struct Trial {
  std::string first_name;
  const RecordFunction* first = nullptr;
  uint32_t begun = 0;
  uint32_t ended = 0;
  bool has_first_ended = false;
  bool is_context_kept = true;
};
Trial trial;
constinit Handle trial_observer = 0;

const Context& trial_context() noexcept {
  static const Context& context = *new Context(nullptr, 0);
  return context;
}

OwnedContext start_trial(const RecordFunction* running) {
  if (trial.begun++ == 0) {
    trial.first = running;
    trial.first_name = torch.is_async(running) ? "" : torch.name(running);
  }
  return {const_cast<Context*>(&trial_context())};
}

void end_trial_operator(const RecordFunction* running, const Context* context) {
  ++trial.ended;
  trial.is_context_kept = trial.is_context_kept && context == &trial_context();
  trial.has_first_ended = running == trial.first;
}

// The first operator alone: others may run within it.
OwnedContext start_input_trial(const RecordFunction* running) {
  if (trial.begun++ == 0) {
    trial.first = running;
    tensor_origins::learn_inputs(running);
  }
  return {nullptr};
}

void end_input_trial_operator(const RecordFunction* running, const Context*) {
  if (running == trial.first) tensor_origins::learn_outputs(running);
}

template <class Function>
bool find(void* library, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

}  // namespace

std::string begin_trial(const char* library) {
  void* const torch_library = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (torch_library == nullptr) return std::string(library) + " is not loaded";
  Functions found{};
  if (!find(torch_library, found.add_thread_local, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE") ||
      !find(torch_library, found.add_global, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE") ||
      !find(torch_library, found.remove, "_ZN2at14removeCallbackEm") ||
      !find(torch_library, found.name, "_ZNK2at14RecordFunction4nameEv") ||
      !find(torch_library, found.is_async, "_ZNK2at14RecordFunction7isAsyncEv"))
    return "it lacks a function that observers need";
  if (torch.name == nullptr) {  // a process has one PyTorch, and other threads may be in its callbacks
    found.n_outputs =
        reinterpret_cast<decltype(found.n_outputs)>(dlsym(torch_library, "_ZNK2at14RecordFunction11num_outputsEv"));
    torch = found;
    can_tell_shapes = operator_inputs::find(torch_library);
    wanted.can_tell_collectives = collective_names::find(torch_library);
  }
  trial = {};
  trial_observer = torch.add_thread_local({start_trial, end_trial_operator, 1.0, kScopes});
  return {};
}

std::string end_trial(const char* operator_name) {
  torch.remove(trial_observer);
  if (trial.begun == 0) return "it calls no observer";
  if (trial.first_name != operator_name) return "its operators have other names: " + trial.first_name;
  if (trial.ended != trial.begun || !trial.has_first_ended) return "its operators do not end as they begin";
  if (!trial.is_context_kept) return "it does not keep what observers return";
  return {};
}

void begin_input_trial(const tensor_origins::KnownTensor& first, const tensor_origins::KnownTensor& second) {
  trial = {};
  tensor_origins::begin_learning(first, second);
  trial_observer = torch.add_thread_local({start_input_trial, end_input_trial_operator, 1.0, kScopes, true, true});
}

bool end_input_trial(const tensor_origins::KnownTensor& output) {
  torch.remove(trial_observer);
  can_tell_origins = tensor_origins::end_learning(output);
  return can_tell_origins;
}

bool observe(bool with_shapes) noexcept {
  const bool is_new = observer.load() == 0;
  if (is_new) {
    wanted.shapes.store(with_shapes && can_tell_shapes);
    wanted.origins.store(wanted.shapes.load() && can_tell_origins);
    observer.store(torch.add_global({start, end, 1.0, kScopes, wanted.shapes.load(), wanted.origins.load()}));
  }
  return !with_shapes || wanted.shapes.load();
}

void stop_observing() noexcept {
  if (const Handle handle = observer.exchange(0); handle != 0) torch.remove(handle);
}

bool names_collectives() noexcept {
  return wanted.can_tell_collectives && observer.load(std::memory_order_relaxed) != 0;
}

bool is_told(FrameId frame, autograd::TaskKind kind) noexcept {
  if (observer.load(std::memory_order_relaxed) == 0 || kind == autograd::TaskKind::Other) return false;
  if (kind != autograd::TaskKind::Operator) return true;
  const ThreadContext* thread = ThreadContext::current_if_any();
  return thread != nullptr && thread->is_innermost(Source::RecordFunction, frame);
}

}  // namespace bragg::record_function
