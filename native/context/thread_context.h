// Where a thread is: the stack of open scopes and operators, and the node of the calling context tree on top of it.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "context/call_path.h"
#include "context/calling_context_tree.h"
#include "context/clock.h"
#include "context/event_ring.h"
#include "context/measured_stretches.h"
#include "context/metric_names.h"
#include "context/own_cost.h"
#include "context/python_contexts.h"
#include "context/python_frames.h"
#include "context/recording_state.h"
#include "context/zeroed_table.h"

namespace bragg {

// Who opened an entry. Tools interleave: a pop removes the innermost entry of its own source. Numbers from Nvtx on are
// its domains, whose ranges interleave too. HostKernel: one that this thread executes itself, which is a leaf: Python
// frames below it are the interpreter's. Inherited: no entry of its own, but the scope that a task was made in.
enum class Source : uint32_t { Api, Itt, RecordFunction, State, HostKernel, Inherited, Nccl, Nvtx };

// Whose entry it is, where entries may end in any order: a pop removes the innermost one of its owner.
using EntryOwner = const void*;

// Numbers the tasks of a thread that are in a scope, such as asyncio's.
using TaskSlot = uint16_t;
inline constexpr TaskSlot kNoTask = 0;  // the thread's own entries, which all of its tasks see

// A value that counts each time a graph runs. Element `index` of `length`; 0 of 0 is a scalar.
struct CapturedValue {
  ContextNodes nodes;  // where it was recorded
  MetricId metric;
  uint64_t bits;
  uint32_t index = 0;
  uint32_t length = 0;
};

// What is known of a launch before the driver sees it: it comes from the framework that makes it, on the same thread.
struct ExpectedLaunch {
  struct Value {
    MetricId metric;
    uint64_t bits;
  };
  const void* function = nullptr;  // the driver's handle; nullptr: none is expected
  StringId name = StringId::None;
  std::vector<Value> values;  // for the kernel's node
};

// The driver call that a thread is in. Only the driver knows whether it runs or becomes the node of a graph.
struct alignas(64) OpenCall {
  CorrelationId correlation = CorrelationId::None;  // None: in none that queues work
  CorrelationId returning = CorrelationId::None;    // whose return is recorded; None: of none
  uint16_t mask = 0;
  uint8_t call = 0;                   // its number in CallNames, which is known if its return is recorded, ...
  StringId kernel = StringId::None;   // unless it goes by its symbol
  ContextNodes nodes;                 // ... as are where it was made
  int64_t start_ns = 0;               // ... and when
  std::vector<CapturedValue> values;  // of its kernel
};
static_assert(sizeof(OpenCall) == 64);

// What a thread did in the `elapsed_ns` until `taken_ns`.
struct HostSample {
  int64_t taken_ns;
  int64_t elapsed_ns;
  int64_t waited_ns;               // of these
  std::span<const RawFrame> seen;  // the frames it was in, innermost first; it is where it is now if none of them runs
};

// What another thread ran, of the processor's time, until `taken_ns`.
struct ThreadSample {
  uint32_t thread;  // as the system numbers it
  int64_t taken_ns;
  int64_t ran_ns;
  ContextNodes entry;  // that it was in; the root: in none
  PythonFrameIterator frames;
  bool has_ended;  // it has no frames
};

// The same at the beginning and the end of a call.
struct ApiCallId {
  uint32_t api = 0;     // as the source numbers those of its vendor
  uint32_t number = 0;  // of the call, as the source numbers them
  CorrelationId correlation = CorrelationId::None;
  friend bool operator==(const ApiCallId&, const ApiCallId&) = default;
};

// The call of a GPU's API that a thread is in, if such calls are nodes.
struct ApiCall {
  ApiCallId id;
  ContextNodes nodes;
  SessionMask mask = 0;
  CorrelationId launch = CorrelationId::None;  // of the work that it has queued
  uint32_t epoch = 0;
  int64_t start_ns = 0;

  [[nodiscard]] bool is_open() const noexcept {
    return epoch == recording_state.api_epoch.load(std::memory_order_relaxed);
  }
};

class PythonRoute;
struct PythonPath;

// Threads: a ThreadContext is used by its own thread only, except `ring`, `published`, `capture`, the counters,
// `exited` and `system_id`.
class ThreadContext {
  enum class EntryKind : uint8_t { Range, Operator, Elsewhere };
  // A cache line: between two operators PyTorch and the driver run so much that most of ours has left the caches.
  struct alignas(64) Entry {
    ContextNodes nodes;
    int64_t start_ns;
    EntryOwner owner;
    RawFrame opened_at;  // the innermost Python frame then
    uint32_t opening;    // of openings_: where it was opened. Those that no Python code lies between share one
    SessionMask mask;
    Source source;
    EntryKind kind;
    bool has_calls;  // of native code, in its opening
    TaskSlot task;   // that it is open in
  };
  static_assert(sizeof(Entry) == 64);
  struct Opening {
    OpeningFrames frames;
    OpeningCalls calls;
    uint32_t number;  // of those of its thread, from 1 on
  };
  struct Task {
    const void* context = nullptr;                  // kept alive by us; nullptr: the slot is free
    uint32_t n_scopes = 0;                          // that are open in it
    std::optional<ContextNodes> inherited;          // where it was made
    std::vector<std::pair<Entry, Opening>> parked;  // while the thread runs another one
  };

  // What each begin and end of an entry needs, in one cache line too.
  alignas(64) std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<Opening[]> openings_;
  uint32_t capacity_ = 0;
  uint32_t depth_ = 0;
  uint32_t unopened_ = 0;   // entries beyond the most that may be open; they end before those that are
  bool is_behind_ = false;  // the consumer: it has not read the ring since this thread waited for it in vain
  std::atomic<ContextNodes> published_{ContextNodes{}};
  static_assert(std::atomic<ContextNodes>::is_always_lock_free);

 public:
  void* observed = nullptr;       // of intake/record_function. PyTorch holds parts of it, so it stays
  uint64_t next_node_number = 0;  // of autograd's nodes, those below belong to operators that are known
  OwnCost cost;                   // its first words are in that line, too

  // Where the operator stands that made the node which autograd's engine evaluated last on this thread.
  std::optional<ContextNodes> latest_forward;

  ThreadContext();
  ~ThreadContext();
  ThreadContext(const ThreadContext&) = delete;
  ThreadContext& operator=(const ThreadContext&) = delete;

  // This thread's; created at first use and registered with the consumer.
  [[nodiscard]] static ThreadContext& current() noexcept { return this_thread_ != nullptr ? *this_thread_ : begin(); }
  [[nodiscard]] static ThreadContext* current_if_any() noexcept { return this_thread_; }

  void push(Source source, FrameId frame) noexcept { push(source, frame, EntryKind::Range, nullptr); }
  void push_operator(Source source, FrameId frame, EntryOwner owner = nullptr) noexcept {
    push(source, frame, EntryKind::Operator, owner);
  }
  void push_owned(Source source, FrameId frame, EntryOwner owner) noexcept {
    push(source, frame, EntryKind::Range, owner);
  }
  // Below the frames `above`, which are not entries of their own.
  void push_path(Source source, std::span<const FrameId> above, FrameId frame) noexcept;
  // Below `outer`, wherever the thread is.
  void push_elsewhere(ContextNodes outer, Source source, FrameId frame, EntryOwner owner = nullptr) noexcept {
    open({outer}, InnermostPython(), source, frame, EntryKind::Elsewhere, owner);
  }
  void pop(Source source, EntryOwner owner = nullptr) noexcept;

  [[nodiscard]] std::optional<ContextNodes> innermost_operator() const noexcept;  // that is open
  [[nodiscard]] bool is_innermost(Source source, FrameId frame) const noexcept;   // entry
  [[nodiscard]] bool is_innermost_of(Source source, EntryOwner owner) const noexcept {
    return depth_ > 0 && entries_[depth_ - 1].source == source && entries_[depth_ - 1].owner == owner;
  }
  [[nodiscard]] bool has_open(Source source, EntryOwner owner) const noexcept {
    return is_innermost_of(source, owner) || nodes_of(source, owner);
  }
  [[nodiscard]] std::optional<ContextNodes> nodes_of(Source source, EntryOwner owner) const noexcept;  // an open entry

  // The nodes of an event that happens now. A thread with no scope and no Python frame is in the lender's context.
  [[nodiscard]] ContextNodes here() noexcept;
  // The nodes of a launch: where it is wanted, with the native functions that it comes from.
  [[nodiscard]] ContextNodes here_in_native_code() noexcept;

  [[nodiscard]] bool is_in_api_call() const noexcept { return follows_api_calls() && api_call.is_open(); }
  void begin_api_call(const ApiCallId& id, FrameId frame, SessionMask mask, uint32_t epoch) noexcept;
  void end_api_call(Waiting waiting) noexcept;

  // The nodes that metrics recorded now belong to: the innermost open entry's, whatever function of it is running.
  [[nodiscard]] ContextNodes innermost_entry() noexcept {
    follow_task();
    return depth_ > 0 ? entries_[depth_ - 1].nodes : here();
  }

  // A scope of Python, which belongs to the task that enters it, if any; from the first of them on, threads look which
  // task they run. GIL held. true: what tasks made by this one inherit has changed, and is `inherited_by_tasks`.
  [[nodiscard]] bool enter_in_task(FrameId frame, EntryOwner owner) noexcept;
  [[nodiscard]] bool leave_in_task(EntryOwner owner) noexcept;
  [[nodiscard]] std::optional<ContextNodes> inherited_by_tasks() const noexcept;

  // Until `take_back`, threads without a context of their own are in this thread's.
  void lend() noexcept;
  void take_back() noexcept;

  void record(const Event& event) noexcept;
  // Builds the event that `make` returns in the ring itself: a copy would read fields that were just written, and wait
  // for those writes. `make` records nothing itself.
  template <class Make>
  void record_made(Make&& make) noexcept {
    Event* const next = ring.claim();
    if (next == nullptr) [[unlikely]]
      return record(make());
    ::new (next) Event(make());
    ring.publish();
    look_at_ring();
  }
  // A host sample that stands for what this thread did in the `elapsed_ns` until `taken_ns`, except what was measured
  // elsewhere. What of it the thread has waited is the time of a state `[waiting]` there.
  void record_sample(SessionMask mask, const HostSample& sample) noexcept;
  // The same of another thread, by one that takes samples. GIL. false: it is in no Python function. What one ran that
  // has ended is the time of the entry that it was in, or else of a state `[ended threads]`.
  bool record_sample_of(SessionMask mask, const ThreadSample& sample) noexcept;
  // The entry that this thread is in, for any other one; the root: it is in none.
  [[nodiscard]] ContextNodes open_entry() const noexcept {
    const ContextNodes nodes = published_.load(std::memory_order_acquire);
    return nodes.shadow != kRootNode ? nodes : ContextNodes{};
  }
  // Element `index` of `length` values; 0 of 0 is a scalar. While this thread captures a stream the value is the
  // graph's.
  void record_value(ContextNodes nodes, MetricId metric, uint64_t bits, uint32_t index = 0,
                    uint32_t length = 0) noexcept;
  void record_value_now(ContextNodes nodes, MetricId metric, uint64_t bits, uint32_t index = 0,
                        uint32_t length = 0) noexcept;
  // What this thread, or the one whose context it is in, captures a stream into; None when nothing.
  [[nodiscard]] CaptureId capturing() const noexcept;
  [[nodiscard]] uint32_t depth() const noexcept { return depth_; }

  void reset(uint32_t system_id) noexcept;  // a recycled context starts over for a new thread

  Ring ring;
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> too_deep{0};
  std::atomic<bool> exited{false};
  std::atomic<uint32_t> system_id{0};  // 0: no thread has this context
  TrackId track = TrackId::None;       // consumer only
  ApiCall api_call;
  ReadingId own_reading = ReadingId::None;  // of the kernel that is not the program's

  // What each launch needs, in two cache lines.
  OpenCall open_call;
  ExpectedLaunch expected_launch;
  uint32_t context_changes = 0;      // of the process, when it launched in `device_contexts`
  uint32_t gated_calls = 0;          // of LaunchGate, nested
  bool is_sampled_alone = false;     // the launch that this thread is in; no other thread launches meanwhile
  bool launches_own_kernel = false;  // that launch is not the program's
  bool makes_own_calls = false;      // nor are the calls that this thread makes
  struct DeviceContext {
    const void* handle = nullptr;
    uint32_t device = kNone;
  };
  std::array<DeviceContext, 4> device_contexts{};  // those it launched in, the last one first

  std::atomic<CaptureId> capture{CaptureId::None};  // its own; written by StreamCaptures
  std::atomic<bool> is_in_gated_call{false};
  std::atomic<uint64_t> interleaved_scopes{0};  // that ended before one within them
  std::atomic<uint64_t> autograd_nodes{0};      // that operators made; this thread alone writes
  std::atomic<uint64_t> evaluated_nodes{0};     // of autograd, that the engine ran here; this thread alone writes
  std::atomic<uint64_t> cut_paths{0};           // whose native frames could not all be read

 private:
  struct PathCache {
    uint64_t hash = 0;
    NodeId node = NodeId::None;
    NodeId python = NodeId::None;  // without the native frames inside the innermost Python frame
  };
  struct alignas(32) ChildCache {
    uint64_t place = 0;
    FrameId frame = FrameId::Root;  // the root's, which is nobody's child
    ContextNodes nodes;
  };
  // Where the thread is, before the nodes of Python's frames are looked up.
  struct Where {
    ContextNodes entry;      // the innermost one's, or the root's
    uint32_t n_frames = 0;   // of Python since it was opened
    bool is_whole = false;   // these are all frames, also those above the entry
    uint64_t path_hash = 0;  // of these; 0: there are none
  };
  // A program that begins ranges and never ends them has more of them the longer it runs.
  static constexpr uint32_t kMaxOpenEntries = 4096;
  static constexpr uint32_t kMaxPathFrames = 1000;  // Python's own recursion limit; deeper paths lose their outer end
  // A path that another one has displaced is found anew in 2 us. Programs come by some hundred places again and again:
  // of 300 in 1,024 entries every fourth has lost its own, of 8,192 every thirtieth.
  static constexpr uint32_t kCacheBits = 13;

  // Switches to the stack of the task that the thread runs. Only a look where the program has no tasks.
  void follow_task() noexcept {
    if (recording_state.follows_tasks.load(std::memory_order_relaxed)) [[unlikely]]
      follow_task_now();
  }
  void follow_task_now() noexcept;
  void see(PythonContext context) noexcept;
  void see_inherited(std::optional<ContextNodes> nodes) noexcept;
  [[nodiscard]] TaskSlot slot_of(const void* context) const noexcept;
  [[nodiscard]] TaskSlot begin_task(const void* context) noexcept;
  [[nodiscard]] const void* end_task(TaskSlot slot) noexcept;  // what it kept alive
  [[nodiscard]] std::optional<Entry> remove_parked(Source source, EntryOwner owner) noexcept;
  void park_others(std::span<const TaskSlot> visible) noexcept;
  void bring_back(TaskSlot slot) noexcept;
  void append(const Entry& entry, const Opening* opening) noexcept;
  [[nodiscard]] std::optional<Entry> take(Source source, EntryOwner owner) noexcept;  // out of the stack
  void remove(uint32_t index) noexcept;
  void finish(const Entry& ended) noexcept;

  [[nodiscard]] static ThreadContext& begin() noexcept;
  static void on_thread_exit(void* context);
  static const pthread_key_t exit_key_;

  // Those of this thread, if paths are wanted with them.
  [[nodiscard]] static PythonFrameIterator python_frames() noexcept {
    return recording_state.python.load(std::memory_order_relaxed) != 0 ? PythonFrameIterator()
                                                                       : PythonFrameIterator(nullptr);
  }
  // Python's position, read once for all that need it.
  struct InnermostPython {
    InnermostPython() noexcept : InnermostPython(python_frames()) {}
    explicit InnermostPython(PythonFrameIterator at) noexcept : frames(at) {
      PythonFrameIterator walk = frames;
      (void)walk.next(frame);
    }
    PythonFrameIterator frames;
    RawFrame frame{};  // without code: there is none
  };
  void push(Source source, FrameId frame, EntryKind kind, EntryOwner owner) noexcept;
  void open(const Where& where, const InnermostPython& python, Source source, FrameId frame, EntryKind kind,
            EntryOwner owner) noexcept;
  void note_opening(Entry& entry, const InnermostPython& python) noexcept;
  void read_opening(const Entry& entry, PythonFrameIterator frames) noexcept;
  void note_measured(const Entry& ended, int64_t end_ns) noexcept;
  [[nodiscard]] const Entry* innermost() const noexcept { return depth_ > 0 ? &entries_[depth_ - 1] : nullptr; }
  [[nodiscard]] const OpeningFrames& opening_frames() const noexcept;
  [[nodiscard]] bool has_own_context() const noexcept;
  [[nodiscard]] const ThreadContext* lender() const noexcept;  // whose context this thread is in; nullptr: nobody's
  [[nodiscard]] ContextNodes inherited() const noexcept;
  [[nodiscard]] Where where(const InnermostPython& python) noexcept;
  [[nodiscard]] Where python_below(ContextNodes entry, const PythonFrameIterator& frames) noexcept;
  [[nodiscard]] PythonPath python_path(const PythonFrameIterator& frames) noexcept;
  [[nodiscard]] ContextNodes nodes_at(const Where& where, const PythonFrameIterator& frames) noexcept;
  [[nodiscard]] ContextNodes here(const InnermostPython& python) noexcept;
  [[nodiscard]] ContextNodes children(const Where& where, const PythonFrameIterator& frames, FrameId frame) noexcept;
  [[nodiscard]] NodeId native_node(NodeId outer) noexcept;
  // Of another thread's entries those that are around its frames.
  [[nodiscard]] static ContextNodes entry_around(ContextNodes entry, const PythonFrameIterator& frames) noexcept;
  [[nodiscard]] NodeId append_frames(NodeId node, PythonFrameIterator frames, uint32_t count, bool is_whole) noexcept;
  [[nodiscard]] PathCache append_frames(NodeId node, std::span<const PathFrame> frames) noexcept;
  [[nodiscard]] NativeCallPath& native_path() noexcept;
  void publish(ContextNodes nodes) noexcept {
    // Release: a thread that borrows the node may pass it to the consumer, which then reads its fields.
    published_.store(nodes, std::memory_order_release);
  }
  void look_at_ring() noexcept {
    if (ring.reached_half()) [[unlikely]]
      wake_consumer();
  }
  void wake_consumer() noexcept;
  [[nodiscard]] bool push_in_time(const Event& event) noexcept;  // false: the ring stays full
  [[nodiscard]] bool wait_and_push(const Event& event) noexcept;
  void make_room() noexcept;

  // initial-exec: one load instead of a call to __tls_get_addr; 8 bytes of the static TLS reserve.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local ThreadContext* this_thread_;

  PythonContext followed_{};  // that the stack is of
  TaskSlot task_ = kNoTask;   // its slot
  std::vector<Task> tasks_;   // by slot; the first is nobody's
  std::unordered_map<const void*, TaskSlot> slots_;
  int64_t sampled_ns_ = 0;                       // when the last sample was taken
  std::unique_ptr<MeasuredStretches> measured_;  // since then; from the first sample on
  ZeroedTable<PathCache, kCacheBits> path_cache_;
  ZeroedTable<ChildCache, kCacheBits> child_cache_;
  std::unique_ptr<NativeCallPath> native_path_;
  uint32_t n_openings_ = 0;
  std::unique_ptr<PythonRoute[]> routes_;  // of walks outside entries, and of those within one
};

// Around calls of the driver that are not the program's.
class OwnCalls {
 public:
  OwnCalls() noexcept : thread_(ThreadContext::current()), before_(thread_.makes_own_calls) {
    thread_.makes_own_calls = true;
  }
  ~OwnCalls() { thread_.makes_own_calls = before_; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  ThreadContext& thread_;
  bool before_;
};

void push_context(Source source, FrameId frame) noexcept;
void pop_context(Source source) noexcept;

}  // namespace bragg
