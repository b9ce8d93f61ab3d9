// The plug-in that NCCL's profiler interface finds in the core (`NCCL_PROFILER_PLUGIN`), in three of its versions.
//
// NCCL calls it on the program's threads, where it queues collectives, and on threads of its own, which see the GPU's
// channels begin and end, in any order and after the collective has been "stopped". No call throws or fails, and none
// waits but for a table that is locked for less than a microsecond.
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "api/bragg_core.h"
#include "backends/nccl/nccl_abi.h"
#include "backends/nccl/nccl_source.h"
#include "context/frame_table.h"
#include "context/nested_flags.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/collective_names.h"
#include "intake/collective_progress.h"
#include "intake/record_function.h"

namespace bragg::nccl {
namespace {

// What a handle is of; the rest of its bits are the number of the operation.
enum class Handle : uintptr_t { Call = 1, Launch = 2, Operation = 3, Channel = 4 };
constexpr uint32_t kKindBits = 3;

void* handle_of(Handle kind, uint64_t number = 0) noexcept {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(number << kKindBits | static_cast<uintptr_t>(kind)));
}
Handle kind_of(const void* handle) noexcept {
  return Handle{reinterpret_cast<uintptr_t>(handle) & ((1u << kKindBits) - 1)};
}
uint64_t number_of(const void* handle) noexcept { return reinterpret_cast<uintptr_t>(handle) >> kKindBits; }

std::string_view text_of(const char* text) noexcept { return text != nullptr ? text : ""; }

// Bytes of the name that the program gives a communicator; more is cut off.
constexpr size_t kMaxName = 64;

// The calls of one communicator in the open group of a thread; one call is a group, too.
struct OpenCalls {
  const char* function = nullptr;  // nullptr: they do not belong together
  const char* dtype = nullptr;
  uint64_t elements = 0;
  uint32_t count = 0;
};

// What NCCL passes with each event. The calls are those of the thread whose group it is.
struct Context {
  NcclCommunicator& communicator;
  std::atomic<uint64_t> group{0};
  OpenCalls calls;
};

constinit std::atomic<uint64_t> last_group{0};
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t open_group = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local NestedFlags was_pushed(false);

bool is_message(std::string_view function) noexcept { return function == "Send" || function == "Recv"; }

// As PyTorch counts: elements of the input of a rank.
uint64_t input_elements(std::string_view function, uint64_t count, int32_t n_ranks) noexcept {
  const bool has_part_of_each = function == "ReduceScatter" || function == "AlltoAll" || function == "Scatter";
  return has_part_of_each ? count * static_cast<uint64_t>(n_ranks) : count;
}

std::string members_of(const NcclCommunicator& communicator) {
  return "group " + communicator.group + " of " + std::to_string(communicator.n_ranks);
}

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& letter : lowered)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lowered;
}

// PyTorch's operator is around the launch, and has the name.
bool torch_names_it() {
  return record_function::names_collectives() && !collective_names::group_of_this_thread().empty();
}

// Send and Recv of one group share a kernel.
const char* together(const char* one, const char* other) noexcept {
  const std::string_view first = text_of(one), second = text_of(other);
  if (first == second) return one;
  return is_message(second) && (is_message(first) || first == "SendRecv") ? "SendRecv" : nullptr;
}

void note_call(Context& context, const char* function, uint64_t count, const char* dtype) {
  const NcclCommunicator& communicator = context.communicator;
  const bool is_first = context.group.exchange(open_group, std::memory_order_relaxed) != open_group;
  OpenCalls& calls = context.calls;
  if (is_first) calls = {.function = function, .dtype = dtype};
  calls.function = together(calls.function, function);
  calls.elements += input_elements(text_of(function), count, communicator.n_ranks);
  ++calls.count;
  if (!torch_names_it()) collective_progress::note(members_of(communicator), lower(text_of(function)));
}

// The name is that of PyTorch's collectives. Several calls share a kernel, or have several, so their size is no
// number of bytes: the type is left out.
bool begin_launch(const Context& context) {
  const OpenCalls& calls = context.calls;
  if (open_group == 0 || context.group.load(std::memory_order_relaxed) != open_group) return false;
  if (calls.function == nullptr || torch_names_it()) return false;
  const std::string_view dtype = calls.count == 1 ? nccl_type_name(text_of(calls.dtype)) : "elements";
  std::string name = "collective " + lower(calls.function) + '[';
  name.append(std::to_string(calls.elements)).append(" ").append(dtype).append(", ");
  name.append(members_of(context.communicator)).append("]");
  ThreadContext& thread = ThreadContext::current();
  thread.cost.measure(CostPart::Operators,
                      [&] { thread.push_operator(Source::Nccl, intern_frame(FrameKind::Operator, name)); });
  return true;
}

void end_launch() noexcept {
  ThreadContext* const thread = was_pushed.pop() ? ThreadContext::current_if_any() : nullptr;
  if (thread != nullptr) thread->cost.measure(CostPart::Operators, [&] { thread->pop(Source::Nccl); });
}

void* begin_operation(NcclCommunicator& communicator, const NcclOperation& operation) {
  const uint64_t number = nccl_source().begin(communicator, operation, collective_names::group_of_this_thread());
  return number != 0 ? handle_of(Handle::Operation, number) : nullptr;
}

void* begin_collective(NcclCommunicator& communicator, const Collective& begun, bool is_copied) {
  return begin_operation(communicator, {.function = text_of(begun.function),
                                        .dtype = nccl_type_name(text_of(begun.dtype)),
                                        .algorithm = is_copied ? "CE" : text_of(begun.algorithm),
                                        .protocol = is_copied ? "" : text_of(begun.protocol),
                                        .count = begun.count,
                                        .peer = begun.root,
                                        .channels = is_copied ? 0u : begun.n_channels,
                                        .sequence = static_cast<int64_t>(begun.sequence)});
}

void* begin_message(NcclCommunicator& communicator, const Message& begun) {
  return begin_operation(communicator, {.function = text_of(begun.function),
                                        .dtype = nccl_type_name(text_of(begun.dtype)),
                                        .algorithm = "",
                                        .protocol = "",
                                        .count = begun.count,
                                        .peer = begun.peer,
                                        .channels = begun.n_channels,
                                        .sequence = NcclOperation::kNoSequence});
}

void* begin_channel(const void* parent, const Channel& begun) {
  if (parent == nullptr || kind_of(parent) != Handle::Operation) return nullptr;
  nccl_source().begin_channel(number_of(parent), begun.begin_ns);
  return handle_of(Handle::Channel, number_of(parent));
}

void* begin(Context& context, EventType type, const Event& event) {
  switch (type) {
    case EventType::GroupCall:
      open_group = last_group.fetch_add(1, std::memory_order_relaxed) + 1;
      return handle_of(Handle::Call);
    case EventType::CollectiveCall: {
      const CollectiveCall& call = event.collective_call;
      note_call(context, call.function, call.count, call.dtype);
      return handle_of(Handle::Call);
    }
    case EventType::MessageCall: {
      const MessageCall& call = event.message_call;
      note_call(context, call.function, call.count, call.dtype);
      return handle_of(Handle::Call);
    }
    case EventType::Launch:
      was_pushed.push(begin_launch(context));
      return handle_of(Handle::Launch);
    case EventType::Collective:
      return begin_collective(context.communicator, event.collective, false);
    case EventType::CopiedCollective:
      return begin_collective(context.communicator, event.collective, true);
    case EventType::Message:
      return begin_message(context.communicator, event.message);
    case EventType::Channel:
      return begin_channel(event.parent, event.channel);
  }
  return nullptr;
}

template <int version>
Result start_event(void* context, void** handle, const Event* event) noexcept {
  *handle = nullptr;
  if (context == nullptr || !recording() || !nccl_source().is_wanted()) return Result::Success;
  const uint64_t type = version < 5 ? static_cast<uint8_t>(event->type) : event->type;
  *handle = begin(*static_cast<Context*>(context), EventType{type}, *event);
  return Result::Success;
}

Result stop_event(void* handle) noexcept {
  if (handle != nullptr && kind_of(handle) == Handle::Launch) end_launch();
  return Result::Success;
}

Result record_state(void* handle, State state, const StateValue* value) noexcept {
  if (handle != nullptr && kind_of(handle) == Handle::Channel && state == State::ChannelEnds && value != nullptr)
    nccl_source().end_channel(number_of(handle), value->end_ns);
  return Result::Success;
}

constexpr int mask_of(std::initializer_list<EventType> types) {
  uint64_t mask = 0;
  for (const EventType type : types) mask |= static_cast<uint64_t>(type);
  return static_cast<int>(mask);
}

// Kept for as long as the process lives: events may come late.
template <int version>
Result initialize(void** context, uint64_t id, int* mask, const char* name, int n_nodes, int n_ranks, int rank,
                  Logger) noexcept {
  constexpr int kOfGpu = mask_of({EventType::Collective, EventType::Message, EventType::Channel});
  constexpr int kOfHost =
      mask_of({EventType::GroupCall, EventType::CollectiveCall, EventType::MessageCall, EventType::Launch});
  *mask = kOfGpu | (version >= 5 ? kOfHost : 0) | (version >= 6 ? mask_of({EventType::CopiedCollective}) : 0);
  NcclCommunicator* const known =
      nccl_source().add_communicator(version, {.id = id,
                                               .name = std::string(text_of(name).substr(0, kMaxName)),
                                               .rank = rank,
                                               .n_ranks = n_ranks,
                                               .n_nodes = n_nodes});
  *context = known != nullptr ? new Context{.communicator = *known, .calls = {}} : nullptr;
  return Result::Success;
}

Result initialize_v4(void** context, int* mask, const char* name, uint64_t id, int n_nodes, int n_ranks, int rank,
                     Logger logger) noexcept {
  return initialize<4>(context, id, mask, name, n_nodes, n_ranks, rank, logger);
}

Result finalize(void*) noexcept { return Result::Success; }

template <int version>
constexpr Profiler<Init> kProfiler{"bragg",    initialize<version>, start_event<version>,
                                   stop_event, record_state,        finalize};

}  // namespace
}  // namespace bragg::nccl

extern "C" {
// Constants have internal linkage unless they are declared before.
BRAGG_EXPORT extern const bragg::nccl::Profiler<bragg::nccl::InitV4> ncclProfiler_v4;
BRAGG_EXPORT extern const bragg::nccl::Profiler<bragg::nccl::Init> ncclProfiler_v5;
BRAGG_EXPORT extern const bragg::nccl::Profiler<bragg::nccl::Init> ncclProfiler_v6;

constexpr bragg::nccl::Profiler<bragg::nccl::InitV4> ncclProfiler_v4{"bragg",
                                                                     bragg::nccl::initialize_v4,
                                                                     bragg::nccl::start_event<4>,
                                                                     bragg::nccl::stop_event,
                                                                     bragg::nccl::record_state,
                                                                     bragg::nccl::finalize};
constexpr bragg::nccl::Profiler<bragg::nccl::Init> ncclProfiler_v5 = bragg::nccl::kProfiler<5>;
constexpr bragg::nccl::Profiler<bragg::nccl::Init> ncclProfiler_v6 = bragg::nccl::kProfiler<6>;
}
