// The CUPTI in use: found, loaded, its functions resolved.
#pragma once

#include <string>

#include "backends/cuda/driver/cupti_abi.h"
#include "context/loaded_library.h"

namespace bragg {

// Version 2 of the functions for records, from 13.3: all of them or none.
struct CuptiSharedFunctions {
  cupti::CuptiActivityRegisterCallbacks_v2* register_callbacks = nullptr;
  cupti::CuptiActivityEnable_v2* enable = nullptr;
  cupti::CuptiActivityDisable_v2* disable = nullptr;
  cupti::CuptiActivityGetNumDroppedRecords_v2* dropped_records = nullptr;
  cupti::CuptiActivityGetNextRecord_v2* next_record = nullptr;
  cupti::CuptiActivitySetAttribute_v2* set_attribute = nullptr;
  cupti::CuptiActivityGetAttribute_v2* get_attribute = nullptr;
};

struct CuptiLibrary {
  LoadedLibrary library;
  uint32_t version = 0;
  cupti::CuptiGetResultString* get_result_string = nullptr;
  cupti::CuptiSubscribe* subscribe = nullptr;
  cupti::CuptiSubscribe_v2* subscribe_v2 = nullptr;  // optional, from 13.0
  cupti::CuptiUnsubscribe* unsubscribe = nullptr;
  cupti::CuptiEnableCallback* enable_callback = nullptr;
  cupti::CuptiGetCallbackName* callback_name = nullptr;
  cupti::CuptiActivityRegisterCallbacks* register_callbacks = nullptr;
  cupti::CuptiActivityEnable* enable = nullptr;
  cupti::CuptiActivityDisable* disable = nullptr;
  cupti::CuptiActivityFlushAll* flush_all = nullptr;
  cupti::CuptiActivityGetNumDroppedRecords* dropped_records = nullptr;
  cupti::CuptiActivityGetNextRecord* next_record = nullptr;
  cupti::CuptiActivitySetAttribute* set_attribute = nullptr;
  cupti::CuptiActivityGetAttribute* get_attribute = nullptr;  // optional
  CuptiSharedFunctions shared;
  cupti::CuptiGetGraphId* get_graph_id = nullptr;
  cupti::CuptiGetGraphNodeId* get_graph_node_id = nullptr;
  cupti::CuptiGetTimestamp* get_timestamp = nullptr;  // optional

  // Whether several tools of a process may subscribe, as far as the library goes: the driver has a say, too.
  [[nodiscard]] bool can_share() const { return shared.enable != nullptr; }
  [[nodiscard]] std::string text(cupti::Result result) const;
};

// CUDA must be up: CUPTI 13.2 crashes without a driver. Order: a mapped copy (two copies would fight for one subscriber
// slot), then `candidates` (':'-separated), then the loader's search path. On failure `reason` lists what was tried.
[[nodiscard]] bool load_cupti(const std::string& candidates, CuptiLibrary& cupti, std::string& reason);

}  // namespace bragg
