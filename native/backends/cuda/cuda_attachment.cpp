#include "backends/cuda/cuda_attachment.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <utility>

#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/driver/cupti_library.h"
#include "backends/cuda/graphs/graph_callbacks.h"
#include "backends/cuda/launch/api_calls.h"
#include "backends/cuda/launch/cuda_callbacks.h"
#include "backends/cuda/launch/launch_callbacks.h"
#include "backends/cuda/launch/launch_calls.h"
#include "backends/gpu_memory/cuda_memory_source.h"

namespace bragg::cuda_backend {
namespace {

constexpr cupti::Kind kKinds[] = {cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy, cupti::Kind::Memset};

constexpr BufferCallbacks kBufferCallbacks{on_buffer_requested, on_buffer_completed, on_buffer_requested_v2,
                                           on_buffer_completed_v2};

// By version 2. `holder`: the name of another subscriber, as far as CUPTI tells (13.0 and later).
cupti::Result subscribe_v2(const CuptiLibrary& cupti, cupti::Subscriber& subscriber, std::string* holder = nullptr) {
  char name[cupti::kOldSubscriberNameBytes] = "";
  cupti::SubscriberParams params{};
  params.struct_size_bytes = cupti.can_share() ? sizeof params : cupti::kSubscriberParamsBytes13_0;
  params.name = "bragg";
  params.old_name = name;
  params.old_name_size_bytes = sizeof name;
  params.allow_multiple = 1;
  const cupti::Result result = cupti.subscribe_v2(&subscriber, on_callback, nullptr, &params);
  if (holder != nullptr) *holder = name;
  return result;
}

// Who holds the only subscription.
std::string slot_holder(const CuptiLibrary& cupti) {
  if (cupti.subscribe_v2 == nullptr) return "";
  std::string holder;
  cupti::Subscriber probe = nullptr;
  if (subscribe_v2(cupti, probe, &holder) == cupti::Result::Success) cupti.unsubscribe(probe);
  return holder;
}

// BRAGG_CUPTI_SHARED, the user's choice: 1, 0, or nothing.
bool user_chose(const char* choice) {
  const char* chosen = std::getenv("BRAGG_CUPTI_SHARED");
  return chosen != nullptr && std::strcmp(chosen, choice) == 0;
}

bool may_share(const CuptiLibrary& cupti) { return cupti.can_share() && !user_chose("0"); }

// The first subscriber of a process decides for all that come later: with version 1 nobody else may subscribe, but
// tools that use records without a subscription (torch.profiler by Kineto) work in turn with us; with version 2 others
// of version 2 may, and those of version 1 get nothing. So it is version 2 where the user says so, or where another one
// holds it.
cupti::Result subscribe(Backend& self) {
  const CuptiLibrary& cupti = self.cupti;
  const bool shares_first = may_share(cupti) && user_chose("1");
  const auto share = [&] { return subscribe_v2(cupti, self.subscriber) == cupti::Result::Success; };
  bool is_shared = shares_first && share();
  if (!is_shared) {
    const auto result = cupti.subscribe(&self.subscriber, on_callback, nullptr);
    const bool is_taken = result == cupti::Result::MultipleSubscribersNotSupported;
    is_shared = is_taken && may_share(cupti) && !shares_first && share();
    if (result != cupti::Result::Success && !is_shared) return result;
  }
  self.current_activity.store(&self.activities.emplace_back(cupti, self.subscriber, is_shared));
  return cupti::Result::Success;
}

std::string refusal(const CuptiLibrary& cupti, cupti::Result result) {
  if (result == cupti::Result::MultipleSubscribersNotSupported) {
    const std::string holder = slot_holder(cupti);
    return "another tool holds the only CUPTI subscription" + (holder.empty() ? "" : " (" + holder + ")") +
           "; stop it (Nsight, torch.profiler, another profiler) and run again";
  }
  if (result == cupti::Result::InsufficientPrivileges ||
      result == cupti::Result::VirtualizedDeviceInsufficientPrivileges)
    return "no permission to profile: " + cupti.text(result) + "; see bragg doctor";
  return "CUPTI refused: " + cupti.text(result) + "; see bragg doctor";
}

bool fail(Backend& self, std::string reason) {
  self.reason = std::move(reason);
  self.state.store(State::Failed);
  std::fprintf(stderr, "bragg: no GPU times: %s\n", self.reason.c_str());
  return false;
}

// As long as a session exists, active or not: a graph that is captured now may run later.
void follow_graphs(Backend& self) {
  // What an older CUPTI does not know it refuses, and does not call back.
  for (const uint32_t cbid : kGraphResources)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cbid);
  for (const uint32_t cbid : cupti::graph_cbids)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
  for (const uint32_t cbid : std::views::filter(cupti::launch_cbids, cupti::is_graph_launch))
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
}

// Buffers, and callbacks that are wanted however little is recorded.
cupti::Result follow_always(Backend& self) {
  (void)self.activity().set(cupti::Attribute::ZeroedOutBuffer, 1);  // an optimisation: may be refused
  if (const auto result = self.activity().register_buffers(kBufferCallbacks); result != cupti::Result::Success)
    return result;
  follow_graphs(self);
  for (const uint32_t cbid : {cupti::resource::kContextCreated, cupti::resource::kContextDestroyStarting})
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cbid);
  if (uses_gate()) follow_calls_for_sampling(self);
  if (cuda_memory::is_wanted()) follow_calls_for_memory(self);
  return cupti::Result::Success;
}

// Once version 1 was used in a process, version 2 subscribes and gets no records (CUPTI 13.5 on an H100): better known
// now than by missing GPU times.
cupti::Result try_records(const Backend& self) {
  if (!self.activity().is_shared()) return cupti::Result::Success;
  const auto result = self.activity().enable(cupti::Kind::Memset);
  if (result == cupti::Result::Success) self.activity().disable(cupti::Kind::Memset);
  return result;
}

bool begin_subscription(Backend& self) {
  if (const auto result = subscribe(self); result != cupti::Result::Success)
    return fail(self, refusal(self.cupti, result));
  auto result = follow_always(self);
  if (result == cupti::Result::Success) result = try_records(self);
  if (result == cupti::Result::Success) return true;
  self.cupti.unsubscribe(self.subscriber);
  if (self.activity().is_shared() && result == cupti::Result::NotCompatible)
    return fail(self,
                "CUPTI was used by version 1 before, so it gives no records beside other tools; set "
                "BRAGG_CUPTI_SHARED=1 before the program starts");
  return fail(self, refusal(self.cupti, result));
}

void say_that_nodes_are_recorded(const char* reason) noexcept {
  std::fprintf(stderr, "bragg: CUDA graphs are recorded by their nodes, not as a whole: %s\n", reason);
}

}  // namespace

void record_nodes_from_now_on(Backend& self, const char* reason) noexcept {
  self.needs_nodes.store(true);
  if (!launch_watch.traces_graphs.exchange(false)) return;
  (void)self.activity().disable(cupti::Kind::GraphTrace);
  say_that_nodes_are_recorded(reason);
}

void follow_calls_for_sampling(Backend& self) {
  for (const uint32_t cbid : cupti::module_cbids)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
  for (const uint32_t cbid : cupti::holding_cbids)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
  (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cupti::resource::kModuleLoaded);
}

void follow_calls_for_memory(Backend& self) {
  for (const uint32_t cbid : cupti::allocation_cbids)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
}

void apply_graph_level(Backend& self) {
  if (self.state.load() != State::Attached) return;
  if (!self.wants_whole_graphs.load()) return record_nodes_from_now_on(self, "another session wants the nodes");
  if (launch_watch.traces_graphs.load()) return;
  if (self.activity().is_shared())  // it would be so for all subscribers, and for good
    return say_that_nodes_are_recorded("another tool may want the nodes, and shares CUPTI");
  if (self.needs_nodes.load()) return say_that_nodes_are_recorded("they were before, in this process");
  if (const auto result = self.activity().enable(cupti::Kind::GraphTrace); result != cupti::Result::Success)
    return say_that_nodes_are_recorded(self.cupti.text(result).c_str());
  launch_watch.traces_graphs.store(true);
}

bool attach(Backend& self) {
  if (self.unusable) return fail(self, "this process was forked from one that had initialised CUDA");
  std::string reason;
  if (!load_cupti(self.candidates, self.cupti, reason)) return fail(self, reason);
  number_calls();
  if (!begin_subscription(self)) return false;
  if (const char* directory = std::getenv("BRAGG_DUMP_BUFFERS")) self.dump_directory = directory;
  self.reason.clear();
  self.state.store(State::Attached);
  apply_graph_level(self);
  return true;
}

void apply_collecting(Backend& self, bool on) {
  if (self.state.load() != State::Attached) return;
  api_calls::follow(self.cupti, self.subscriber, on ? self.api_level : ApiLevel::Off);
  if (self.collecting == on) return;
  const std::lock_guard lock(self.records_mutex);
  const auto follow_calls = [&] {
    const bool keeps_gate = !on && uses_gate();
    for (size_t i = 0; i < kCalls; ++i)  // an older CUPTI does not know the newest calls: nothing to enable then
      if (!cupti::is_graph_launch(call_at(i).cbid) && !keeps_gate)
        (void)self.cupti.enable_callback(on ? 1 : 0, self.subscriber, cupti::Domain::DriverApi, call_at(i).cbid);
  };
  // While something records, no launch is followed that has no record: it would be awaited. Otherwise none has a record
  // that is not followed: nobody would know that it is not wanted.
  const bool stops_to_follow_first = !on && recording();
  if (stops_to_follow_first) follow_calls();
  for (const cupti::Kind kind : kKinds) {
    if (kind == cupti::Kind::ConcurrentKernel && self.has_launch_without_record) continue;  // its end switches them on
    const auto result = on ? self.activity().enable(kind) : self.activity().disable(kind);
    if (on && result != cupti::Result::Success && kind == cupti::Kind::ConcurrentKernel) {
      self.cupti.unsubscribe(self.subscriber);
      api_calls::forget();
      fail(self, refusal(self.cupti, result));
      return;
    }
  }
  if (!on && self.records_peer_copies.exchange(false)) (void)self.activity().disable(cupti::Kind::PeerMemcpy);
  if (!stops_to_follow_first) follow_calls();
  self.collecting = on;
}

// CUPTI 13.0 makes programs fail whose copies between GPUs are recorded too: after a flush, graphs that are built later
// end with "unspecified launch failure" (H100: XLA's, in nine of ten runs; in none without this kind or a flush). So
// they are recorded only where there may be any, and then nothing is flushed in the background.
void record_peer_copies_if_any(Backend& self) noexcept {
  if (self.n_contexts.load() < 2 || self.records_peer_copies.load()) return;
  const std::unique_lock lock(self.records_mutex, std::try_to_lock);  // its holder may be within CUPTI
  if (!lock.owns_lock() || !self.collecting || self.records_peer_copies.exchange(true)) return;
  (void)self.activity().enable(cupti::Kind::PeerMemcpy);
}

bool attach_if_up(Backend& self) {
  const CudaDriver driver = CudaDriver::mapped();
  if (!driver.is_initialized()) return false;
  self.n_contexts.store(driver.n_primary_contexts());
  return attach(self);
}

}  // namespace bragg::cuda_backend
