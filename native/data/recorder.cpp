#include "data/recorder.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "backends/cuda.h"
#include "context/clock.h"
#include "context/consumer_signal.h"
#include "context/kernel_names.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr uint32_t kPollMs = 20;  // idle consumer: 50 wake-ups a second
constexpr long kEndingPollNs = 10'000'000;
constexpr int kEndingPolls = 300;                // 3 s
constexpr int64_t kDeviceFlushNs = 500'000'000;  // completed records wait in CUPTI's buffers no longer than this
constexpr const char* kCopyNames[] = {"copy",      "copy HtoD", "copy DtoH", "copy HtoA", "copy AtoH", "copy AtoA",
                                      "copy AtoD", "copy DtoA", "copy DtoD", "copy HtoH", "copy PtoP"};

const char* operation_name(const DeviceEvent& event) {
  if (event.kind == DeviceEventKind::Set) return "set";
  return kCopyNames[event.copy_kind < std::size(kCopyNames) ? event.copy_kind : 0];
}

KernelConfig config_of(const DeviceEvent& event, FrameId frame) {
  KernelConfig config;
  config.fields[0] = frame;
  std::copy(std::begin(event.launch_config), std::end(event.launch_config), &config.fields[1]);
  return config;
}

// A signal that interrupted a control call could not be finished: the consumer would wait for the locks of this thread.
class ControlLock {
 public:
  explicit ControlLock(std::mutex& mutex) : mutex_(mutex) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    mutex_.lock();
  }
  ~ControlLock() {
    mutex_.unlock();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  ControlLock(const ControlLock&) = delete;
  ControlLock& operator=(const ControlLock&) = delete;

 private:
  std::mutex& mutex_;
  sigset_t before_{};
};

void tell_of_unknown_captures() {
  static bool told = false;
  if (std::exchange(told, true)) return;
  std::fputs("bragg: a CUDA graph was captured before recording; its kernels are shown under their launch\n", stderr);
}

uint64_t& counter_of(SessionCounters& counters, DeviceEventKind kind) {
  switch (kind) {
    case DeviceEventKind::Kernel:
      return counters.kernels;
    case DeviceEventKind::Copy:
      return counters.copies;
    case DeviceEventKind::Set:
      return counters.sets;
    default:
      return counters.graphs;
  }
}

bool has_interval(const DeviceEvent& event) { return event.start_ns > 0 && event.end_ns >= event.start_ns; }

}  // namespace

Recorder& Recorder::instance() {
  static Recorder& recorder = *new Recorder;  // driver threads may outlive static destruction
  return recorder;
}

template <class Visit>
void Recorder::for_sessions(uint32_t mask, Visit&& visit) {
  for (uint32_t slot = 0; mask != 0; ++slot, mask >>= 1)
    if ((mask & 1) != 0 && sessions_[slot] != nullptr) visit(*sessions_[slot]);
}

// Control
// ----------------------------------------------------------------------------------------------------------------

StartResult Recorder::start(SessionOptions options) {
  const ControlLock control(control_mutex_);
  uint32_t slot = next_slot_;
  while (sessions_[slot] != nullptr) {
    slot = (slot + 1) % kMaxSessions;
    if (slot == next_slot_) return {-1, 0, "16 sessions are already open; stop one first"};
  }
  next_slot_ = (slot + 1) % kMaxSessions;
  const bool wants_cuda = options.backend != BackendChoice::Cpu;
  const std::string candidates = options.cupti_candidates;
  auto session = std::make_unique<Session>(std::move(options), slot);
  if (const int error = session->open()) return {-1, error, {}};
  const ThreadTotals totals = thread_totals();
  session->own_ns_before = totals.own_ns;
  session->dropped_events_before = totals.dropped_events;
  if (wants_cuda) cuda_backend::start(candidates);

  const SessionMask bit = session->mask();
  const bool python = session->options().python_context;
  const bool trace = session->options().trace;
  {
    const std::lock_guard work(work_mutex_);
    step();  // what is left of earlier sessions is not this one's
    sessions_[slot] = std::move(session);
    next_flush_ns_[slot] = now_ns();
  }
  if (python) recording_state.python.fetch_or(bit);
  if (trace) recording_state.trace.fetch_or(bit);
  recording_state.existing.fetch_or(bit);
  recording_state.active.fetch_or(bit);
  update_collecting();
  if (consumer_ == nullptr) {
    stopping_.store(false);
    consumer_ = std::make_unique<std::thread>([this] { consumer_loop(); });
  }
  return {static_cast<int>(slot), 0, {}};
}

void Recorder::activate(int slot) {
  const ControlLock control(control_mutex_);
  recording_state.active.fetch_or(1u << slot);
  update_collecting();
}

void Recorder::deactivate(int slot, bool flush) {
  const ControlLock control(control_mutex_);
  recording_state.active.fetch_and(~(1u << slot));
  if (flush) cuda_backend::flush(true);
  update_collecting();
}

void Recorder::update_collecting() { cuda_backend::set_collecting(recording_state.active.load() != 0); }

void Recorder::flush(int slot) {
  const ControlLock control(control_mutex_);
  cuda_backend::flush(true);
  const std::lock_guard work(work_mutex_);
  step();
  add_graph_values();
  for_sessions(1u << slot, [this](Session& session) { session.flush(tracks_, statistics_json(session)); });
}

void Recorder::stop(int slot, const std::string& meta_json) {
  const ControlLock control(control_mutex_);
  const SessionMask bit = 1u << slot;
  recording_state.active.fetch_and(~bit);
  cuda_backend::flush(true);
  update_collecting();
  {
    const std::lock_guard work(work_mutex_);
    step();
    add_graph_values();
    for_sessions(bit, [&](Session& session) { session.finish(tracks_, statistics_json(session), meta_json); });
    sessions_[static_cast<uint32_t>(slot)].reset();
  }
  for (auto* mask : {&recording_state.python, &recording_state.trace, &recording_state.existing}) mask->fetch_and(~bit);
  if (recording_state.existing.load() == 0) finish_consumer();
}

void Recorder::finish_consumer() {
  cuda_backend::detach();
  stopping_.store(true);
  consumer_signal.wake();
  consumer_->join();
  consumer_.reset();
  launches_.clear();
  captured_paths_.clear();
}

std::string Recorder::statistics(int slot) {
  const ControlLock control(control_mutex_);
  const std::lock_guard work(work_mutex_);
  step();
  const auto& session = sessions_[static_cast<uint32_t>(slot)];
  return session != nullptr ? statistics_json(*session) : "{}";
}

// The driver holds its own locks here, so this must not wait for a control call that may be waiting for the driver; if
// one is under way the consumer's poll attaches half a second later.
void Recorder::on_cuda_initialized() {
  const std::unique_lock control(control_mutex_, std::try_to_lock);
  if (!control) return;
  cuda_backend::on_cuda_initialized();
  update_collecting();
}

// Consumer
// ---------------------------------------------------------------------------------------------------------------

void Recorder::consumer_loop() {
  pthread_setname_np(pthread_self(), "bragg");
  while (!stopping_.load()) {
    consumer_signal.wait_ms(kPollMs);
    if (const int number = ending_signal_.load()) finish_and_end_by(number);
    bool flush_device = false;
    {
      const std::lock_guard work(work_mutex_);
      step();
      flush_device = now_ns() >= next_device_flush_ns_;
    }
    if (flush_device) {  // without the work lock: CUPTI may wait for a thread that waits for us
      cuda_backend::poll();
      cuda_backend::flush(false);
      next_device_flush_ns_ = now_ns() + kDeviceFlushNs;
    }
    const std::lock_guard work(work_mutex_);
    flush_due_sessions();
    if (flush_device) {
      add_graph_values();
      captured_paths_.trim(now_ns());
    }
  }
  if (const int number = ending_signal_.load()) finish_and_end_by(number);
}

// Ending by a signal
// ----------------------------------------------------------------------------------------------------

bool Recorder::finish_on_signal(int number) {
  struct sigaction current{};
  if (sigaction(number, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return false;
  struct sigaction ours{};
  ours.sa_handler = on_ending_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  return sigaction(number, &ours, nullptr) == 0;
}

// The thread that was interrupted goes no further, as without us. It may hold a lock that the consumer needs
// (malloc's), so it waits for its end no longer than it takes to write a large capture.
void Recorder::on_ending_signal(int number) {
  if (recording_state.existing.load() != 0) {
    instance().ending_signal_.store(number);
    consumer_signal.wake();
    for (int poll = 0; poll < kEndingPolls && recording_state.existing.load() != 0; ++poll) {
      const timespec pause{.tv_sec = 0, .tv_nsec = kEndingPollNs};
      nanosleep(&pause, nullptr);
    }
  }
  signal(number, SIG_DFL);
  raise(number);
}

void Recorder::finish_and_end_by(int number) {
  cuda_backend::flush(false);
  {
    const std::lock_guard work(work_mutex_);
    step();
    add_graph_values();
    for_sessions(recording_state.existing.load(),
                 [this](Session& session) { session.finish(tracks_, statistics_json(session), "{}"); });
  }
  signal(number, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, number);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(number);
  std::abort();  // not reached: the default of the signals that we take is to end the process
}

void Recorder::step() {
  cuda_backend::consume([this] { drain_rings(); }, [this](const DeviceEvent& event) { take_device_event(event); });
  for_sessions(recording_state.trace.load(), [this](Session& session) {
    if (session.wants_flush()) session.flush(tracks_, statistics_json(session));
  });
}

void Recorder::drain_rings() {
  ThreadRegistry::instance().for_each([this](ThreadContext& thread) {
    const bool exited = thread.exited.load(std::memory_order_acquire);
    thread.ring.drain([&](const Event& event) { take_event(thread, event); });
    if (exited) ThreadRegistry::instance().release(&thread);
  });
}

void Recorder::take_event(ThreadContext& thread, const Event& event) {
  const auto duration_ns = static_cast<uint64_t>(std::max<int64_t>(event.end_ns - event.start_ns, 0));
  switch (event.kind) {
    case EventKind::Launch:
      for_sessions(event.mask, [&](Session& session) { session.note_launch(event.correlation); });
      take_launch({event.shadow, event.python, static_cast<StringId>(event.start_ns - 1),
                   static_cast<GraphVersionId>(event.end_ns), event.mask, event.detail != 0},
                  event.correlation);
      return;
    case EventKind::Captured:
      for_sessions(event.mask, [](Session& session) { --session.counters.launches; });
      return;
    case EventKind::LaunchEnd: {
      const FrameId api = FrameTable::instance().intern(FrameKind::GpuApi, cuda_backend::api_name(event.detail));
      for_sessions(event.mask & recording_state.trace.load(), [&](Session& session) {
        session.keep({event.start_ns, duration_ns, CallingContextTree::instance().child(session.node_of(event), api),
                      host_track(thread), event.correlation});
      });
      return;
    }
    case EventKind::Scope:
      for_sessions(event.mask, [&](Session& session) {
        ++session.counters.scopes;
        const NodeId node = session.node_of(event);
        session.count(node, MetricGroup::Host, duration_ns);
        if (session.options().trace) session.keep({event.start_ns, duration_ns, node, host_track(thread), 0});
      });
      return;
    case EventKind::Sample:
      for_sessions(event.mask & recording_state.python.load(), [&](Session& session) {
        ++session.counters.samples;
        session.count(event.python, MetricGroup::Sample, duration_ns);
      });
      return;
    case EventKind::Value: {
      const auto element = static_cast<uint64_t>(event.end_ns);
      for_sessions(event.mask, [&](Session& session) {
        session.add_value({session.node_of(event), event.correlation, static_cast<uint32_t>(element >> 32),
                           static_cast<uint32_t>(element)},
                          static_cast<uint64_t>(event.start_ns));
      });
      return;
    }
    case EventKind::Mark:
    case EventKind::Range:
      for_sessions(event.mask, [&](Session& session) {
        ++session.counters.markers;
        const NodeId node = session.node_of(event);
        session.count(node, MetricGroup::Marker, duration_ns);
        if (!session.options().trace) return;
        const uint32_t track = event.kind == EventKind::Mark ? host_track(thread) : range_track();
        session.keep({event.start_ns, duration_ns, node, track, 0});
      });
      return;
  }
}

void Recorder::take_launch(const Launch& launch, uint32_t correlation) {
  launches_.insert(correlation, launch);
  if (launch.graph != 0) captured_paths_.note_launch(launch);
}

// Records of conditional graphs have no correlation id.
const Launch* Recorder::launch_of(const DeviceEvent& event) {
  const Launch* launch = launches_.take(event.correlation);
  return launch == nullptr && event.graph_node != 0 ? captured_paths_.launch_of(event.graph) : launch;
}

// nullptr: it ran for no graph, or it is a whole graph.
CapturedPlace* Recorder::captured_place_of(const Launch& launch, const DeviceEvent& event) {
  if (event.graph_node == 0) return nullptr;
  CapturedPlace& place =
      captured_paths_.place_of(launch, event, [&](StringId name) { return device_frame(event, name); });
  if (place.captured == nullptr) tell_of_unknown_captures();
  return &place;
}

void Recorder::take_device_event(const DeviceEvent& event) {
  const Launch* known = launch_of(event);
  if (known == nullptr && event.kind == DeviceEventKind::Graph) return;  // launched while nothing recorded
  const Launch launch =
      known != nullptr ? *known : Launch{.mask = static_cast<uint16_t>(recording_state.existing.load())};
  CapturedPlace* const captured = captured_place_of(launch, event);
  const FrameId frame = captured != nullptr ? captured->frame : device_frame(event, launch.name);
  const auto duration_ns = static_cast<uint64_t>(event.end_ns - event.start_ns);
  for_sessions(launch.mask, [&](Session& session) {
    SessionCounters& counters = session.counters;
    if (known == nullptr) {
      if (session.is_older(event)) return;
      ++counters.unattributed;
    }
    if (!has_interval(event)) {
      ++counters.bad_timestamps;
      return;
    }
    const NodeId node = captured != nullptr
                            ? captured_paths_.node_of(*captured, launch, session.options().python_context)
                            : CallingContextTree::instance().child(session.node_of(launch), frame);
    session.activity.add(event);
    session.count(node, MetricGroup::Device, duration_ns, event.bytes);
    if (session.options().trace)
      session.keep({event.start_ns, duration_ns, node, stream_track(event), event.correlation});
    if (event.kind == DeviceEventKind::Kernel) session.count_kernel(config_of(event, frame));
    if (event.kind == DeviceEventKind::Kernel || event.kind == DeviceEventKind::Graph)
      session.count_duration(frame, event);
    if (captured != nullptr && captured->captured == nullptr) ++counters.unknown_captures;
    ++counter_of(counters, event.kind);
  });
}

// What was recorded while graphs were captured, as often as they were launched since. Before sessions are written.
void Recorder::add_graph_values() {
  for (const ReplayedValues& replayed : captured_paths_.take_values())
    for_sessions(replayed.launch.mask, [&](Session& session) {
      for (const CapturedValue& value : replayed.graph->values) {
        const NodeId node = captured_below(session.node_of(replayed.launch), session.node_of(value.nodes));
        session.repeat_value({node, value.metric, value.index, value.length}, value.bits, replayed.count);
      }
    });
}

FrameId Recorder::device_frame(const DeviceEvent& event, StringId wanted) {
  if (event.kind == DeviceEventKind::Graph)
    return FrameTable::instance().intern(FrameKind::Kernel, "<cuda graph " + std::to_string(event.graph) + ">",
                                         event.device);
  if (event.kind != DeviceEventKind::Kernel)
    return FrameTable::instance().intern(FrameKind::Memory, operation_name(event), event.device);
  const char* name = event.name != nullptr ? event.name : "(unnamed kernel)";
  auto& [text, frames] = kernel_frames_[name];
  if (text != name) {  // first sight, or the driver reused the address for another name
    text = name;
    frames.clear();
  }
  const auto [found, is_new] = frames.try_emplace({event.device, wanted}, kNone);
  if (is_new) {
    auto& table = FrameTable::instance();
    const bool fits = wanted != kNone && KernelNames::instance().fits(wanted, text);
    found->second = table.intern(FrameKind::Kernel, fits ? table.string(wanted) : text, event.device);
    if (fits) KernelNames::instance().describe(found->second, wanted);
  }
  return found->second;
}

uint32_t Recorder::host_track(ThreadContext& thread) {
  if (thread.track == kNone) {
    thread.track = static_cast<uint32_t>(tracks_.size());
    const std::string name = "thread " + std::to_string(thread.system_id);
    tracks_.push_back(
        {TrackKind::HostThread, kNone, kNone, thread.system_id, FrameTable::instance().intern_string(name)});
  }
  return thread.track;
}

// Of the whole process: a reader spreads ranges that overlap over several lanes.
uint32_t Recorder::range_track() {
  if (range_track_ == kNone) {
    range_track_ = static_cast<uint32_t>(tracks_.size());
    tracks_.push_back({TrackKind::Ranges, kNone, kNone, 0, FrameTable::instance().intern_string("ranges")});
  }
  return range_track_;
}

uint32_t Recorder::stream_track(const DeviceEvent& event) {
  const auto [found, is_new] =
      stream_tracks_.try_emplace({event.device, event.context, event.stream}, static_cast<uint32_t>(tracks_.size()));
  if (is_new) {
    const std::string name = "GPU " + std::to_string(event.device) + " stream " + std::to_string(event.stream);
    tracks_.push_back(
        {TrackKind::GpuStream, event.device, event.context, event.stream, FrameTable::instance().intern_string(name)});
  }
  return found->second;
}

void Recorder::flush_due_sessions() {
  const int64_t now = now_ns();
  for (uint32_t slot = 0; slot < kMaxSessions; ++slot) {
    if (sessions_[slot] == nullptr || now < next_flush_ns_[slot]) continue;
    Session& session = *sessions_[slot];
    add_graph_values();
    session.flush(tracks_, statistics_json(session));
    next_flush_ns_[slot] = now + int64_t{session.options().flush_interval_ms} * 1'000'000;
  }
}

Recorder::ThreadTotals Recorder::thread_totals() {
  ThreadTotals totals;
  ThreadRegistry::instance().for_each([&](const ThreadContext& thread) {
    totals.own_ns += thread.own_ns.load(std::memory_order_relaxed);
    totals.dropped_events += thread.dropped.load(std::memory_order_relaxed);
  });
  return totals;
}

std::string Recorder::statistics_json(const Session& session) {
  const ThreadTotals totals = thread_totals();
  const SessionCounters& counters = session.counters;
  JsonObject statistics;
  statistics.put("launches", counters.launches)
      .put("kernels", counters.kernels)
      .put("copies", counters.copies)
      .put("sets", counters.sets)
      .put("scopes", counters.scopes)
      .put("samples", counters.samples)
      .put("markers", counters.markers)
      .put("graphs", counters.graphs)
      .put("unattributed_records", counters.unattributed)
      .put("unknown_captures", counters.unknown_captures)
      .put("bad_timestamps", counters.bad_timestamps)
      .put("dropped_events", totals.dropped_events - session.dropped_events_before)
      .put("refused_nodes", CallingContextTree::instance().refused())
      .put("refused_kernel_configs", session.refused_kernel_configs())
      .put("own_ns", totals.own_ns - session.own_ns_before);
  if (session.writer().error() != 0) statistics.put("capture_error", std::strerror(session.writer().error()));
  JsonObject meta;
  meta.put("end_ns", now_ns()).raw("statistics", statistics.text()).raw("gpu_busy_ns", session.activity.busy_json());
  if (session.options().backend != BackendChoice::Cpu) meta.raw("cuda", cuda_backend::description_json());
  if (const std::string devices = cuda_backend::devices_json(); !devices.empty()) meta.raw("devices", devices);
  if (session.activity.first_ns() != 0)
    meta.put("gpu_first_ns", session.activity.first_ns()).put("gpu_last_ns", session.activity.last_ns());
  return meta.text();
}

// Fork
// -------------------------------------------------------------------------------------------------------------------

void Recorder::prepare_fork() {
  control_mutex_.lock();
  work_mutex_.lock();
  ThreadRegistry::instance().lock_for_fork();
  CallingContextTree::instance().lock_for_fork();
  GraphRegistry::instance().lock_for_fork();
  StreamCaptures::instance().lock_for_fork();
  KernelNames::instance().lock_for_fork();
  MetricNames::instance().lock_for_fork();
  FrameTable::instance().lock_for_fork();
}

void Recorder::after_fork_in_parent() {
  FrameTable::instance().unlock_after_fork();
  MetricNames::instance().unlock_after_fork();
  KernelNames::instance().unlock_after_fork();
  StreamCaptures::instance().unlock_after_fork();
  GraphRegistry::instance().unlock_after_fork();
  CallingContextTree::instance().unlock_after_fork();
  ThreadRegistry::instance().unlock_after_fork();
  work_mutex_.unlock();
  control_mutex_.unlock();
}

void Recorder::after_fork_in_child() {
  for (auto* mask :
       {&recording_state.active, &recording_state.existing, &recording_state.python, &recording_state.trace})
    mask->store(0);
  for (auto& session : sessions_) {
    if (session != nullptr) session->abandon();
    session.reset();
  }
  (void)consumer_.release();  // that thread does not exist here
  consumer_signal.reset();
  ending_signal_.store(0);
  cuda_backend::after_fork_in_child();
  launches_.clear();
  captured_paths_.clear();
  tracks_.clear();
  range_track_ = kNone;
  stream_tracks_.clear();
  ThreadRegistry::instance().keep_only(ThreadContext::current_if_any());
  after_fork_in_parent();
  GraphRegistry::instance().clear();
  StreamCaptures::instance().clear();
}

}  // namespace bragg
