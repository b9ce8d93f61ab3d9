// The CUPTI in use: found, loaded, its functions resolved.
#pragma once

#include <string>

#include "backends/cuda/driver/cupti_abi.h"
#include "context/loaded_library.h"

namespace bragg {

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
  cupti::CuptiGetGraphId* get_graph_id = nullptr;
  cupti::CuptiGetGraphNodeId* get_graph_node_id = nullptr;

  [[nodiscard]] std::string text(cupti::Result result) const;
};

// CUDA must be up: CUPTI 13.2 crashes without a driver. Order: a mapped copy (two copies would fight for one subscriber
// slot), then `candidates` (':'-separated), then the loader's search path. On failure `reason` lists what was tried.
[[nodiscard]] bool load_cupti(const std::string& candidates, CuptiLibrary& cupti, std::string& reason);

}  // namespace bragg
