#include "context/thread_context.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "context/clock.h"
#include "context/consumer_signal.h"
#include "context/context_lenders.h"
#include "context/found_once.h"
#include "context/python_route.h"
#include "context/stream_captures.h"
#include "context/thread_registry.h"

namespace bragg {
namespace {

// A full ring: the consumer is behind. Wait for it 3 s, longer than a busy machine puts a thread aside; then this event
// and the next ones are dropped and counted, without waiting, until the ring has been read.
constexpr uint32_t kFullRingYields = 64;
constexpr uint32_t kFullRingNaps = 20'000;
constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 100'000};

constinit FoundOnce<FrameId> waiting_frame, ended_frame;

}  // namespace

constinit thread_local ThreadContext* ThreadContext::this_thread_ = nullptr;

const pthread_key_t ThreadContext::exit_key_ = [] {
  pthread_key_t created{};
  pthread_key_create(&created, on_thread_exit);
  return created;
}();

ThreadContext::ThreadContext()
    : entries_(new Entry[64]), openings_(new Opening[64]), capacity_(64), routes_(new PythonRoute[2]) {}
ThreadContext::~ThreadContext() = default;

ThreadContext& ThreadContext::begin() noexcept {
  this_thread_ = ThreadRegistry::instance().acquire();
  pthread_setspecific(exit_key_, this_thread_);
  return *this_thread_;
}

// What other libraries do at the end of the thread gets another context: this one may soon be another thread's.
void ThreadContext::on_thread_exit(void* context) {
  this_thread_ = nullptr;
  static_cast<ThreadContext*>(context)->exited.store(true, std::memory_order_release);
  consumer_signal.wake();
}

void ThreadContext::reset(uint32_t new_system_id) noexcept {
  system_id = new_system_id;
  depth_ = 0;
  unopened_ = 0;
  followed_ = {};
  task_ = kNoTask;
  tasks_.clear();  // contexts of tasks that never left their scopes stay: to let them go needs the GIL
  slots_.clear();
  track = TrackId::None;
  device_contexts = {};
  is_behind_ = false;
  expected_launch.function = nullptr;
  api_call = {};
  makes_own_calls = false;
  next_node_number = 0;
  latest_forward.reset();
  sampled_ns_ = 0;
  measured_.reset();
  if (native_path_ != nullptr) native_path_->reset();
  gated_calls = 0;
  is_sampled_alone = false;
  is_in_gated_call.store(false, std::memory_order_relaxed);
  capture.store(CaptureId::None, std::memory_order_relaxed);
  publish({});
  exited.store(false, std::memory_order_release);
}

void ThreadContext::record(const Event& event) noexcept {
  if (!ring.push(event) && !push_in_time(event)) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  look_at_ring();
}

void ThreadContext::wake_consumer() noexcept {
  is_behind_ = false;
  consumer_signal.wake();
}

bool ThreadContext::push_in_time(const Event& event) noexcept {
  if (is_behind_) return false;
  const int64_t start_ns = now_ns();
  const bool is_pushed = wait_and_push(event);
  cost.add_wait(now_ns() - start_ns);
  return is_pushed;
}

bool ThreadContext::wait_and_push(const Event& event) noexcept {
  for (uint32_t tries = 0; tries < kFullRingYields + kFullRingNaps; ++tries) {
    consumer_signal.wake();
    if (tries < kFullRingYields) {
      sched_yield();
    } else {
      nanosleep(&kNap, nullptr);
    }
    if (ring.push(event)) return true;
  }
  is_behind_ = true;
  return false;
}

void ThreadContext::record_value(ContextNodes nodes, MetricId metric, uint64_t bits, uint32_t index,
                                 uint32_t length) noexcept {
  auto& captures = StreamCaptures::instance();
  if (!captures.any() || capturing() == CaptureId::None) return record_value_now(nodes, metric, bits, index, length);
  if (recording()) captures.add(capturing(), {nodes, metric, bits, index, length});
}

void ThreadContext::record_value_now(ContextNodes nodes, MetricId metric, uint64_t bits, uint32_t index,
                                     uint32_t length) noexcept {
  const SessionMask mask = recording_state.active.load(std::memory_order_relaxed);
  if (mask == 0) return;
  Event event = Event::of(EventKind::Value, mask, nodes);
  event.metric = metric;
  event.value = {bits, index, length};
  record(event);
}

// Openings of entries that were removed from among others leave gaps.
void ThreadContext::make_room() noexcept {
  const uint32_t capacity = depth_ == capacity_ ? capacity_ * 2 : capacity_;
  auto entries = std::make_unique<Entry[]>(capacity);
  auto openings = std::make_unique<Opening[]>(capacity);
  uint32_t count = 0;
  for (uint32_t i = 0; i < depth_; ++i) {
    const bool is_shared = i > 0 && entries_[i].opening == entries_[i - 1].opening;
    if (!is_shared) openings[count++] = openings_[entries_[i].opening];
    entries[i] = entries_[i];
    entries[i].opening = count - 1;
  }
  entries_ = std::move(entries);
  openings_ = std::move(openings);
  capacity_ = capacity;
}

inline void ThreadContext::note_opening(Entry& entry, const InnermostPython& python) noexcept {
  const Entry* outer = innermost();
  entry.opened_at = python.frame;
  entry.has_calls = entry.source != Source::Api && recording_state.native.load(std::memory_order_relaxed) != 0;
  const bool is_shared = outer != nullptr && entry.opened_at == outer->opened_at && !entry.has_calls;
  entry.opening = outer == nullptr ? 0 : outer->opening + (is_shared ? 0 : 1);
  if (!is_shared && (entry.opened_at.code != nullptr || entry.has_calls)) read_opening(entry, python.frames);
}

[[gnu::hot, gnu::noinline]] void ThreadContext::read_opening(const Entry& entry, PythonFrameIterator frames) noexcept {
  Opening& opening = openings_[entry.opening];
  opening.frames = {};
  opening.number = ++n_openings_;
  for (RawFrame& raw : opening.frames.frames)
    if (!frames.next(raw)) break;
  if (entry.has_calls) native_path().read_opening(opening.calls);
}

[[gnu::hot]] void ThreadContext::open(const Where& where, const InnermostPython& python, Source source, FrameId frame,
                                      EntryKind kind, EntryOwner owner) noexcept {
  if (depth_ >= kMaxOpenEntries) {
    ++unopened_;
    too_deep.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (depth_ == capacity_ || (depth_ > 0 && entries_[depth_ - 1].opening + 1 == capacity_)) make_room();
  Entry& entry = entries_[depth_];
  entry.nodes = children(where, python.frames, frame);
  entry.source = source;
  entry.owner = owner;
  entry.kind = kind;
  entry.task = task_;
  note_opening(entry, python);
  entry.mask = recording_state.active.load(std::memory_order_relaxed);
  entry.start_ns = entry.mask != 0 ? now_ns() : 0;
  ++depth_;
  publish(entry.nodes);
  if (source == Source::Api) context_lenders.note_python(this);
}

void ThreadContext::push_path(Source source, std::span<const FrameId> above, FrameId frame) noexcept {
  auto& tree = CallingContextTree::instance();
  ContextNodes outer = here();
  for (const FrameId each : above) outer = {tree.child(outer.shadow, each), tree.child(outer.python, each)};
  open({outer}, InnermostPython(), source, frame, EntryKind::Range, nullptr);
}

std::optional<ContextNodes> ThreadContext::innermost_operator() const noexcept {
  for (uint32_t i = depth_; i-- > 0;)
    if (entries_[i].kind != EntryKind::Range) return entries_[i].nodes;
  return {};
}

bool ThreadContext::is_innermost(Source source, FrameId frame) const noexcept {
  if (depth_ == 0 || entries_[depth_ - 1].source != source) return false;
  return CallingContextTree::instance().frame(entries_[depth_ - 1].nodes.shadow) == frame;
}

std::optional<ContextNodes> ThreadContext::nodes_of(Source source, EntryOwner owner) const noexcept {
  for (uint32_t i = depth_; i-- > 0;)
    if (entries_[i].source == source && entries_[i].owner == owner) return entries_[i].nodes;
  return {};
}

[[gnu::hot]] void ThreadContext::pop(Source source, EntryOwner owner) noexcept {
  follow_task();
  const Entry* last = innermost();
  if (last != nullptr && last->source == source && last->owner == owner && unopened_ == 0) [[likely]] {
    --depth_;
    publish(depth_ > 0 ? entries_[depth_ - 1].nodes : ContextNodes{});
    return finish(*last);  // it stays what it was until the next one is opened
  }
  if (const std::optional<Entry> ended = take(source, owner)) finish(*ended);
}

std::optional<ThreadContext::Entry> ThreadContext::take(Source source, EntryOwner owner) noexcept {
  if (unopened_ > 0) {
    --unopened_;
    return {};
  }
  uint32_t i = depth_;
  while (i > 0 && (entries_[i - 1].source != source || entries_[i - 1].owner != owner)) --i;
  if (i == 0) return {};
  const Entry ended = entries_[i - 1];
  const auto is_within = [&](const Entry& entry) {
    return entry.source == Source::Api && entry.owner != nullptr && entry.task == ended.task;
  };
  if (source == Source::Api && owner != nullptr && std::any_of(&entries_[i], &entries_[depth_], is_within))
    interleaved_scopes.fetch_add(1, std::memory_order_relaxed);
  remove(i - 1);
  return ended;
}

void ThreadContext::remove(uint32_t index) noexcept {
  if (index + 1 < depth_) std::copy(&entries_[index + 1], &entries_[depth_], &entries_[index]);
  --depth_;
  publish(depth_ > 0 ? entries_[depth_ - 1].nodes : ContextNodes{});
}

[[gnu::hot]] void ThreadContext::finish(const Entry& entry) noexcept {
  const int64_t end_ns = entry.start_ns != 0 ? now_ns() : 0;
  if (measured_ != nullptr && entry.kind != EntryKind::Range) note_measured(entry, end_ns);
  const SessionMask mask = still_active(entry.mask);
  if (mask == 0 || entry.source == Source::State) return;
  record_made([&] { return Event::spanning(EventKind::Scope, mask, entry.nodes, {entry.start_ns, end_ns}); });
}

// An operator within another one is part of it, and all within the backward of an operator is elsewhere.
void ThreadContext::note_measured(const Entry& ended, int64_t end_ns) noexcept {
  const bool is_elsewhere = ended.kind == EntryKind::Elsewhere;
  const auto contains = [&](const Entry& open) {
    return open.kind == EntryKind::Elsewhere || (open.kind == EntryKind::Operator && !is_elsewhere);
  };
  const int64_t start_ns = std::max(ended.start_ns, sampled_ns_);
  if (ended.start_ns == 0 || end_ns <= start_ns || std::any_of(&entries_[0], &entries_[depth_], contains)) return;
  const NodeId place =
      is_elsewhere ? MeasuredStretches::kElsewhere : CallingContextTree::instance().parent(ended.nodes.python);
  measured_->add(place, {start_ns, end_ns});
}

void ThreadContext::record_sample(SessionMask mask, const HostSample& sample) noexcept {
  if (measured_ == nullptr) measured_ = std::make_unique<MeasuredStretches>();
  sampled_ns_ = sample.taken_ns;
  const ContextNodes nodes = here(InnermostPython(PythonFrameIterator(PythonFrameIterator(), sample.seen)));
  int64_t from_ns = sample.taken_ns - sample.elapsed_ns;
  const auto record_part = [&](NodeId node, int64_t ns, bool is_smaller) {
    Event event = Event::spanning(EventKind::Sample, mask, {nodes.shadow, node}, {from_ns, from_ns + ns});
    event.is_smaller_part = is_smaller;
    record(event);
    from_ns += ns;
  };
  measured_->take({from_ns, sample.taken_ns}, [&](NodeId place, int64_t measured_ns) {
    if (place == nodes.python) return;
    const int64_t ns = std::min(measured_ns, sample.taken_ns - from_ns);
    if (place == MeasuredStretches::kElsewhere) {
      from_ns += ns;
    } else if (ns > 0) {
      record_part(place, ns, true);
    }
  });
  const int64_t here_ns = sample.taken_ns - from_ns;
  const bool is_in_leaf = depth_ > 0 && innermost()->source == Source::HostKernel;
  const int64_t wait_ns = is_in_leaf ? 0 : std::clamp<int64_t>(sample.waited_ns, 0, here_ns);
  const int64_t work_ns = here_ns - wait_ns;
  if (wait_ns > 0) {
    const FrameId waiting = waiting_frame.get([] { return intern_frame(FrameKind::State, "[waiting]"); });
    const NodeId node = CallingContextTree::instance().child(nodes.python, waiting);
    record_part(node, wait_ns, wait_ns < work_ns);
  }
  if (work_ns > 0 || wait_ns == 0) record_part(nodes.python, work_ns, work_ns <= wait_ns && wait_ns > 0);
}

// Frames above the entry of the other thread are those of the tree above it: its stack is its own. If it has left that
// entry since, its frames are of later.
bool ThreadContext::record_sample_of(SessionMask mask, const ThreadSample& sample) noexcept {
  uint32_t n_frames = 0;
  sample.frames.for_each([&](const RawFrame&, uint64_t) { return ++n_frames < kMaxPathFrames; });
  if (n_frames == 0 && !sample.has_ended) return false;
  const bool is_in_entry = sample.entry.shadow != kRootNode;
  const NodeId outer = is_in_entry ? sample.entry.python : kRootNode;
  NodeId node = outer;
  if (sample.has_ended) {
    const FrameId ended = ended_frame.get([] { return intern_frame(FrameKind::State, "[ended threads]"); });
    if (!is_in_entry) node = CallingContextTree::instance().child(kRootNode, ended);
  } else if (entry_around(sample.entry, sample.frames) == sample.entry) {
    node = append_frames(outer, sample.frames, n_frames, is_in_entry);
  }
  Event event = Event::spanning(EventKind::Sample, mask, {sample.entry.shadow, node},
                                {sample.taken_ns - sample.ran_ns, sample.taken_ns});
  event.sampled_thread = sample.thread;
  record(event);
  return true;
}

bool ThreadContext::has_own_context() const noexcept { return depth_ > 0 || current_python_frame() != nullptr; }

const ThreadContext* ThreadContext::lender() const noexcept {
  const ThreadContext* lender = context_lenders.current();
  return lender != this ? lender : nullptr;
}

CaptureId ThreadContext::capturing() const noexcept {
  const CaptureId own = capture.load(std::memory_order_relaxed);
  if (own != CaptureId::None || has_own_context()) return own;
  const ThreadContext* from = lender();
  return from != nullptr ? from->capture.load(std::memory_order_relaxed) : CaptureId::None;
}

ContextNodes ThreadContext::inherited() const noexcept {
  const ThreadContext* from = lender();
  return from != nullptr ? from->published_.load(std::memory_order_acquire) : ContextNodes{};
}

inline ThreadContext::Where ThreadContext::where(const InnermostPython& python) noexcept {
  if (is_in_api_call()) return {api_call.nodes};
  follow_task();
  ContextNodes nodes;
  if (const Entry* entry = innermost()) {
    nodes = entry->nodes;
    if (entry->source == Source::HostKernel || python.frame.code == nullptr || entry->opened_at == python.frame)
      return {nodes};
  } else if (python.frame.code == nullptr) {
    return {has_own_context() ? nodes : inherited()};
  }
  return python_below(nodes, python.frames);
}
inline ContextNodes ThreadContext::here(const InnermostPython& python) noexcept {
  return nodes_at(where(python), python.frames);
}
ContextNodes ThreadContext::here() noexcept { return here(InnermostPython()); }

[[gnu::hot]] void ThreadContext::push(Source source, FrameId frame, EntryKind kind, EntryOwner owner) noexcept {
  const InnermostPython python;
  open(where(python), python, source, frame, kind, owner);
}

void ThreadContext::begin_api_call(const ApiCallId& id, FrameId frame, SessionMask mask, uint32_t epoch) noexcept {
  auto& tree = CallingContextTree::instance();
  const ContextNodes outer = here_in_native_code();
  const NodeId shadow = tree.child(outer.shadow, frame);
  const NodeId python = outer.python == outer.shadow ? shadow : tree.child(outer.python, frame);
  api_call = {id, {shadow, python}, mask, CorrelationId::None, epoch, now_ns()};
}

void ThreadContext::end_api_call(Waiting waiting) noexcept {
  const SessionMask mask = still_active(api_call.mask);
  api_call.epoch = 0;
  if (mask == 0) return;
  Event event = Event::spanning(EventKind::ApiCall, mask, api_call.nodes, {api_call.start_ns, now_ns()});
  event.waiting = waiting;
  event.correlation = api_call.launch;
  record(event);
}

ContextNodes ThreadContext::here_in_native_code() noexcept {
  if (is_in_api_call() || recording_state.native.load(std::memory_order_relaxed) == 0) return here();
  follow_task();
  ContextNodes nodes;
  if (!has_own_context()) {
    nodes = inherited();
  } else if (depth_ > 0) {
    nodes = entries_[depth_ - 1].nodes;
    if (entries_[depth_ - 1].source == Source::HostKernel) return nodes;
  }
  nodes.python = native_node(nodes.python);
  return nodes;
}

NativeCallPath& ThreadContext::native_path() noexcept {
  if (native_path_ == nullptr) native_path_ = std::make_unique<NativeCallPath>();
  return *native_path_;
}

void ThreadContext::lend() noexcept {
  publish(here());
  context_lenders.lend(this);
}

void ThreadContext::take_back() noexcept {
  publish(depth_ > 0 ? entries_[depth_ - 1].nodes : ContextNodes{});
  context_lenders.take_back(this);
}

void push_context(Source source, FrameId frame) noexcept {
  ThreadContext& context = ThreadContext::current();
  context.cost.measure(CostPart::Scopes, [&] { context.push(source, frame); });
}

void pop_context(Source source) noexcept {
  ThreadContext* context = ThreadContext::current_if_any();
  if (context != nullptr) context->cost.measure(CostPart::Scopes, [&] { context->pop(source); });
}

}  // namespace bragg
