#include "backends/cuda/launch/api_calls.h"

#include <array>
#include <atomic>
#include <string_view>

#include "backends/cuda/driver/api_names.h"
#include "backends/cuda/launch/launch_callbacks.h"
#include "backends/gpu_memory/cuda_memory_source.h"
#include "context/clock.h"

namespace bragg::api_calls {
namespace {

constexpr uint32_t kMaxCbids = 1024;

struct Call {
  const char* callback_name = nullptr;  // CUPTI's own text, which stays; nullptr: not followed at any level
  Waiting waiting = Waiting::No;
  std::atomic<FrameId> frame{FrameId::None};  // interned by the first call
};

constinit struct Calls {
  std::array<Call, kMaxCbids> driver, runtime;
  bool are_known = false;

  [[nodiscard]] std::array<Call, kMaxCbids>& of(cupti::Domain domain) {
    return domain == cupti::Domain::RuntimeApi ? runtime : driver;
  }
} calls;

constexpr cupti::Domain kDomains[] = {cupti::Domain::DriverApi, cupti::Domain::RuntimeApi};

[[nodiscard]] bool is_wanted(const Call& call, ApiLevel level) {
  return call.callback_name != nullptr &&
         (level == ApiLevel::All || (level == ApiLevel::Sync && call.waiting != Waiting::No));
}

// Callbacks that other parts of the backend enable and disable.
[[nodiscard]] bool is_shared(cupti::Domain domain, uint32_t cbid) {
  if (domain != cupti::Domain::DriverApi || cupti::driver_call_name(cbid).empty()) return false;
  if (cupti::allocation_call(cbid) != cupti::AllocationCall::None) return cuda_memory::is_wanted();
  return !cupti::is_for_sampling(cbid) || cuda_backend::uses_gate();
}

void learn_names(const CuptiLibrary& cupti) {
  if (calls.are_known) return;
  for (const cupti::Domain domain : kDomains) {
    for (uint32_t cbid = 1; cbid < kMaxCbids; ++cbid) {
      const char* text = nullptr;
      if (cupti.callback_name(domain, cbid, &text) != cupti::Result::Success || text == nullptr) continue;
      const std::string_view name = cupti::api_name(text);
      Call& call = calls.of(domain)[cbid];
      if (!cupti::only_asks(name)) call.callback_name = text;
      call.waiting = cupti::waiting(name);
    }
  }
  calls.are_known = true;
}

FrameId frame_of(Call& call) noexcept {
  FrameId frame = call.frame.load(std::memory_order_relaxed);
  if (frame != FrameId::None) return frame;
  frame = FrameTable::instance().intern(FrameKind::GpuApi, cupti::api_name(call.callback_name));
  call.frame.store(frame, std::memory_order_relaxed);
  return frame;
}

ApiCallId id_of(cupti::Domain domain, uint32_t cbid, const cupti::CallbackData& data) noexcept {
  return {static_cast<uint32_t>(domain), cbid, CorrelationId{data.correlation}};
}

}  // namespace

void follow(const CuptiLibrary& cupti, cupti::Subscriber subscriber, ApiLevel level) {
  const ApiLevel before = cuda_backend::launch_watch.api_level.load();
  if (level == before) return;
  learn_names(cupti);
  cuda_backend::launch_watch.api_level.store(ApiLevel::Off);
  for (const cupti::Domain domain : kDomains) {
    for (uint32_t cbid = 1; cbid < kMaxCbids; ++cbid) {
      const Call& call = calls.of(domain)[cbid];
      const bool wanted = is_wanted(call, level);
      if (wanted != is_wanted(call, before) && !is_shared(domain, cbid))
        (void)cupti.enable_callback(wanted ? 1 : 0, subscriber, domain, cbid);
    }
  }
  forget();
  cuda_backend::launch_watch.api_level.store(level);
}

// A call whose end is not told any more must not stay open. A callback that comes too late reads the epoch before the
// level, so it opens a call of an epoch that has passed, or none.
void forget() {
  cuda_backend::launch_watch.api_level.store(ApiLevel::Off);
  recording_state.api_epoch.fetch_add(1);
}

void enter(cupti::Domain domain, uint32_t cbid, const cupti::CallbackData& data) noexcept {
  const uint32_t epoch = recording_state.api_epoch.load();
  const ApiLevel level = cuda_backend::launch_watch.api_level.load();
  if (level == ApiLevel::Off || cbid >= kMaxCbids) return;
  Call& call = calls.of(domain)[cbid];
  if (!is_wanted(call, level)) return;
  const SessionMask mask = recording_state.active.load(std::memory_order_relaxed);
  ThreadContext& thread = ThreadContext::current();
  if (mask == 0 || thread.makes_own_calls || thread.api_call.is_open()) return;
  thread.cost.measure(CostPart::ApiCalls,
                      [&] { thread.begin_api_call(id_of(domain, cbid, data), frame_of(call), mask, epoch); });
}

void leave(cupti::Domain domain, uint32_t cbid, const cupti::CallbackData& data) noexcept {
  ThreadContext* thread = ThreadContext::current_if_any();
  if (thread == nullptr || !thread->api_call.is_open()) return;
  if (thread->api_call.id != id_of(domain, cbid, data)) return;
  thread->cost.measure(CostPart::ApiCalls, [&] { thread->end_api_call(calls.of(domain)[cbid].waiting); });
}

}  // namespace bragg::api_calls
