#include "backends/cuda/cuda_attachment.h"

#include <cstdio>
#include <cstdlib>
#include <ranges>
#include <utility>

#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/driver/cupti_library.h"
#include "backends/cuda/graphs/graph_callbacks.h"
#include "backends/cuda/launch/api_calls.h"
#include "backends/cuda/launch/cuda_callbacks.h"
#include "backends/cuda/launch/launch_calls.h"
#include "backends/cuda/samples/pc_sampling.h"

namespace bragg::cuda_backend {
namespace {

constexpr cupti::Kind kKinds[] = {cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy, cupti::Kind::PeerMemcpy,
                                  cupti::Kind::Memset};

// Who holds the slot, as far as CUPTI tells (13.0 and later).
std::string slot_holder(const CuptiLibrary& cupti) {
  if (cupti.subscribe_v2 == nullptr) return "";
  char name[cupti::kOldSubscriberNameBytes] = "";
  cupti::SubscriberParams params{};
  params.struct_size_bytes = cupti::kSubscriberParamsBytes13_0;
  params.name = "bragg";
  params.old_name = name;
  params.old_name_size_bytes = sizeof name;
  cupti::Subscriber probe = nullptr;
  if (cupti.subscribe_v2(&probe, on_callback, nullptr, &params) == cupti::Result::Success) cupti.unsubscribe(probe);
  return name;
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

void say_that_nodes_are_recorded(const char* reason) noexcept {
  std::fprintf(stderr, "bragg: CUDA graphs are recorded by their nodes, not as a whole: %s\n", reason);
}

}  // namespace

void record_nodes_from_now_on(Backend& self, const char* reason) noexcept {
  self.needs_nodes.store(true);
  if (!self.traces_graphs.exchange(false)) return;
  (void)self.cupti.disable(cupti::Kind::GraphTrace);
  say_that_nodes_are_recorded(reason);
}

void follow_modules(Backend& self) {
  for (const uint32_t cbid : cupti::module_cbids)
    (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::DriverApi, cbid);
  (void)self.cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cupti::resource::kModuleLoaded);
}

void apply_graph_level(Backend& self) {
  if (self.state.load() != State::Attached) return;
  if (!self.wants_whole_graphs.load()) return record_nodes_from_now_on(self, "another session wants the nodes");
  if (self.traces_graphs.load()) return;
  if (self.needs_nodes.load()) return say_that_nodes_are_recorded("they were before, in this process");
  if (const auto result = self.cupti.enable(cupti::Kind::GraphTrace); result != cupti::Result::Success)
    return say_that_nodes_are_recorded(self.cupti.text(result).c_str());
  self.traces_graphs.store(true);
}

bool attach(Backend& self) {
  if (self.unusable) return fail(self, "this process was forked from one that had initialised CUDA");
  std::string reason;
  if (!load_cupti(self.candidates, self.cupti, reason)) return fail(self, reason);
  number_calls();
  const CuptiLibrary& cupti = self.cupti;
  if (const auto result = cupti.subscribe(&self.subscriber, on_callback, nullptr); result != cupti::Result::Success)
    return fail(self, refusal(cupti, result));
  if (cupti.set_attribute != nullptr) {
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    (void)cupti.set_attribute(cupti::Attribute::ZeroedOutBuffer, &size, &zeroed);  // an optimisation: may be refused
  }
  if (const auto result = cupti.register_callbacks(on_buffer_requested, on_buffer_completed);
      result != cupti::Result::Success) {
    cupti.unsubscribe(self.subscriber);
    return fail(self, refusal(cupti, result));
  }
  follow_graphs(self);
  (void)cupti.enable_callback(1, self.subscriber, cupti::Domain::Resource, cupti::resource::kContextDestroyStarting);
  if (pc_sampling::is_wanted()) follow_modules(self);
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
  // No call is followed whose records nobody wants: they would be awaited.
  const auto follow_calls = [&] {
    const bool keeps_gate = !on && pc_sampling::is_wanted();
    for (size_t i = 0; i < kCalls; ++i)  // an older CUPTI does not know the newest calls: nothing to enable then
      if (!cupti::is_graph_launch(call_at(i).cbid) && !keeps_gate)
        (void)self.cupti.enable_callback(on ? 1 : 0, self.subscriber, cupti::Domain::DriverApi, call_at(i).cbid);
  };
  if (!on) follow_calls();
  for (const cupti::Kind kind : kKinds) {
    const auto result = on ? self.cupti.enable(kind) : self.cupti.disable(kind);
    if (on && result != cupti::Result::Success && kind == cupti::Kind::ConcurrentKernel) {
      self.cupti.unsubscribe(self.subscriber);
      api_calls::forget();
      fail(self, refusal(self.cupti, result));
      return;
    }
  }
  if (on) follow_calls();
  self.collecting = on;
}

bool attach_if_up(Backend& self) { return CudaDriver::mapped().is_initialized() && attach(self); }

}  // namespace bragg::cuda_backend
