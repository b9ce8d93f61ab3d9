// Version, names, ids, time.
#include <ctime>

#include "cupti/optional_symbol.h"
#include "cupti/tool.h"
#include "driver/driver_cbids.h"
#include "driver/runtime_cbids.h"

namespace bragg::fake {
namespace {

const char* name_of(cupti::Result result) {
  using enum cupti::Result;
  switch (result) {
    case Success:
      return "CUPTI_SUCCESS";
    case InvalidParameter:
      return "CUPTI_ERROR_INVALID_PARAMETER";
    case InvalidOperation:
      return "CUPTI_ERROR_INVALID_OPERATION";
    case MaxLimitReached:
      return "CUPTI_ERROR_MAX_LIMIT_REACHED";
    case NotCompatible:
      return "CUPTI_ERROR_NOT_COMPATIBLE";
    case NotInitialized:
      return "CUPTI_ERROR_NOT_INITIALIZED";
    case InvalidKind:
      return "CUPTI_ERROR_INVALID_KIND";
    case HardwareBusy:
      return "CUPTI_ERROR_HARDWARE_BUSY";
    case OutOfMemory:
      return "CUPTI_ERROR_OUT_OF_MEMORY";
    case InsufficientPrivileges:
      return "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
    case MultipleSubscribersNotSupported:
      return "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
    case Unknown:
      return "CUPTI_ERROR_UNKNOWN";
    default:
      return nullptr;
  }
}

template <class Id, class Get>
cupti::Result answer(const char* entry_point, bool valid, Id* id, Get get) {
  return api(entry_point, Needs::Driver, [&] {
    if (!valid || id == nullptr) return cupti::Result::InvalidParameter;
    *id = get();
    return cupti::Result::Success;
  });
}

cupti::Result graph_exec_id(cuda::GraphExec graph_exec, uint32_t* id) {
  return answer("cuptiGetGraphExecId", graph_exec != nullptr, id, [&] { return driver()->graph_exec_id(graph_exec); });
}

}  // namespace

FAKE_CUPTI(cuptiGetVersion)(uint32_t* version) {
  return api("cuptiGetVersion", Needs::Nothing, [&] {
    if (version == nullptr) return cupti::Result::InvalidParameter;
    *version = emulated_release().api_version;
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiGetVersion, CuptiGetVersion);

FAKE_CUPTI(cuptiGetResultString)(cupti::Result result, const char** text) {
  return api("cuptiGetResultString", Needs::Nothing, [&] {
    if (text == nullptr || name_of(result) == nullptr) return cupti::Result::InvalidParameter;
    *text = name_of(result);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiGetResultString, CuptiGetResultString);

FAKE_CUPTI(cuptiGetTimestamp)(uint64_t* timestamp_ns) {
  return api("cuptiGetTimestamp", Needs::Nothing, [&] {
    if (timestamp_ns == nullptr) return cupti::Result::InvalidParameter;
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    const auto real_ns = static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
    *timestamp_ns = driver() != nullptr ? now_ns() : real_ns;
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiGetTimestamp, CuptiGetTimestamp);

FAKE_CUPTI(cuptiSetThreadIdType)(cupti::ThreadIdType type) {
  return api("cuptiSetThreadIdType", Needs::Nothing, [&] {
    if (type != cupti::ThreadIdType::Default && type != cupti::ThreadIdType::System)
      return cupti::Result::InvalidParameter;
    state().thread_id_type.store(type);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiSetThreadIdType, CuptiSetThreadIdType);

FAKE_CUPTI(cuptiGetDeviceId)(cuda::Context context, uint32_t* device) {
  return answer("cuptiGetDeviceId", context != nullptr, device, [&] { return driver()->context_device(context); });
}
FAKE_CUPTI_IS(cuptiGetDeviceId, CuptiGetDeviceId);

FAKE_CUPTI(cuptiGetContextId)(cuda::Context context, uint32_t* id) {
  return answer("cuptiGetContextId", context != nullptr, id, [&] { return driver()->context_id(context); });
}
FAKE_CUPTI_IS(cuptiGetContextId, CuptiGetContextId);

FAKE_CUPTI(cuptiGetStreamIdEx)(cuda::Context context, cuda::Stream stream, uint8_t, uint32_t* id) {
  return answer("cuptiGetStreamIdEx", context != nullptr, id, [&] { return driver()->stream_id(context, stream); });
}
FAKE_CUPTI_IS(cuptiGetStreamIdEx, CuptiGetStreamIdEx);

FAKE_CUPTI(cuptiGetGraphId)(cuda::Graph graph, uint32_t* id) {
  return answer("cuptiGetGraphId", graph != nullptr, id, [&] { return driver()->graph_id(graph); });
}
FAKE_CUPTI_IS(cuptiGetGraphId, CuptiGetGraphId);

FAKE_CUPTI(cuptiGetGraphNodeId)(cuda::GraphNode node, uint64_t* id) {
  return answer("cuptiGetGraphNodeId", node != nullptr, id, [&] { return driver()->graph_node_id(node); });
}
FAKE_CUPTI_IS(cuptiGetGraphNodeId, CuptiGetGraphNodeId);

FAKE_OPTIONAL_CUPTI(cuptiGetGraphExecId, CuptiGetGraphExecId, graph_exec_id, 21)

FAKE_CUPTI(cuptiGetCallbackName)(cupti::Domain domain, uint32_t cbid, const char** name) {
  return api("cuptiGetCallbackName", Needs::Nothing, [&] {
    if (name == nullptr) return cupti::Result::InvalidParameter;
    const std::string_view known = domain == cupti::Domain::DriverApi    ? any_driver_call_name(cbid)
                                   : domain == cupti::Domain::RuntimeApi ? runtime_call_name(cbid)
                                                                         : "";
    if (known.empty()) return cupti::Result::InvalidParameter;
    *name = known.data();
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiGetCallbackName, CuptiGetCallbackName);

// Controls of the fake, for tests that have no driver; bragg_fake_set of the driver reaches both.
BRAGG_FAKE_EXPORT bool bragg_fake_set(const char* name, int64_t value) { return set_knob(name, value); }

}  // namespace bragg::fake
