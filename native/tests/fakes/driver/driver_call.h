// The state of the fake driver, and what surrounds every call of it: is it initialised, was a failure ordered, and the
// tool's ENTER and EXIT.
#pragma once

#include <atomic>
#include <utility>

#include "driver/clock.h"
#include "driver/driver_cbids.h"
#include "driver/handles.h"
#include "link.h"
#include "settings.h"

// static_assert that an entry point has the signature that bragg declares for it.
#define FAKE_CUDA_IS(name, type) static_assert(std::is_same_v<decltype(name), bragg::cuda::type>)
#define FAKE_CUDA(name) BRAGG_FAKE_EXPORT bragg::cuda::Result name

namespace bragg::fake {

inline std::atomic<DriverState> driver_state{DriverState::NotInitialized};
inline std::atomic<const Tool*> attached_tool{nullptr};

// Null: no context is current on this thread.
[[nodiscard]] cuda::Context current_context() noexcept;

struct CallDetails {
  const char* symbol = nullptr;
  const void* params = nullptr;
  cupti::Domain domain = cupti::Domain::DriverApi;
};

// Runs `body(call)`, which returns a Result, as one call of the driver API.
template <class Body>
cuda::Result driver_call(const CallSite& site, const CallDetails& details, Body&& body) {
  if (driver_state.load(std::memory_order_acquire) != DriverState::Ready) return cuda::Result::NotInitialized;
  ApiCall call{.domain = details.domain,
               .cbid = site.cbid,
               .name = site.name,
               .symbol = details.symbol,
               .params = details.params};
  call.context = current_context();
  call.context_uid = call.context != nullptr ? call.context->id : 0;
  const Tool* tool = attached_tool.load(std::memory_order_acquire);
  if (tool != nullptr) tool->enter(call);
  clock::pass_call();
  const uint32_t failed = failure(site.name);
  call.result = failed != 0 ? static_cast<cuda::Result>(failed) : std::forward<Body>(body)(call);
  if (tool != nullptr) tool->exit(call);
  return call.result;
}

template <class Body>
cuda::Result driver_call(const CallSite& site, Body&& body) {
  return driver_call(site, {}, std::forward<Body>(body));
}

inline void notify_resource(uint32_t cbid, cuda::Context context, cuda::Stream stream, void* descriptor) {
  if (const Tool* tool = attached_tool.load(std::memory_order_acquire))
    tool->resource(cbid, {context, stream, descriptor});
}

}  // namespace bragg::fake
