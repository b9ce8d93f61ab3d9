#include "backends/cuda/driver/cupti_library.h"

#include <sstream>

namespace bragg {
namespace {

std::vector<std::string> split(const std::string& paths) {
  std::vector<std::string> parts;
  std::istringstream stream(paths);
  for (std::string part; std::getline(stream, part, ':');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

LoadedLibrary find_library(const std::string& candidates, std::vector<std::string>& tried) {
  for (const std::string& path : mapped_libraries("libcupti.so"))
    if (LoadedLibrary library = LoadedLibrary::already_mapped(path)) return library;
  std::vector<std::string> paths = split(candidates);
  paths.insert(paths.end(), {"libcupti.so.13", "libcupti.so.12"});
  for (const std::string& path : paths) {
    if (LoadedLibrary library = LoadedLibrary::open(path)) return library;
    tried.push_back(path);
  }
  return {};
}

template <class Function>
bool resolve(const LoadedLibrary& library, const char* symbol, Function*& function, std::string& missing) {
  function = library.function<Function>(symbol);
  if (function == nullptr) missing = symbol;
  return function != nullptr;
}

CuptiSharedFunctions shared_functions(const LoadedLibrary& library) {
  using namespace ::bragg::cupti;
  CuptiSharedFunctions found;
  std::string missing;
  const bool complete = resolve(library, "cuptiActivityRegisterCallbacks_v2", found.register_callbacks, missing) &&
                        resolve(library, "cuptiActivityEnable_v2", found.enable, missing) &&
                        resolve(library, "cuptiActivityDisable_v2", found.disable, missing) &&
                        resolve(library, "cuptiActivityGetNumDroppedRecords_v2", found.dropped_records, missing) &&
                        resolve(library, "cuptiActivityGetNextRecord_v2", found.next_record, missing) &&
                        resolve(library, "cuptiActivitySetAttribute_v2", found.set_attribute, missing) &&
                        resolve(library, "cuptiActivityGetAttribute_v2", found.get_attribute, missing);
  return complete ? found : CuptiSharedFunctions{};
}

}  // namespace

std::string CuptiLibrary::text(cupti::Result result) const {
  const char* text = nullptr;
  if (get_result_string != nullptr) get_result_string(result, &text);
  return std::string(text != nullptr ? text : "CUPTI error") + " (" + std::to_string(static_cast<uint32_t>(result)) +
         ")";
}

bool load_cupti(const std::string& candidates, CuptiLibrary& cupti, std::string& reason) {
  std::vector<std::string> tried;
  cupti.library = find_library(candidates, tried);
  if (!cupti.library) {
    reason = "CUPTI was not found; tried";
    for (const std::string& path : tried) reason += " " + path;
    reason += ". Install it (pip install nvidia-cuda-cupti) or set BRAGG_CUPTI_DIR";
    return false;
  }
  const LoadedLibrary& library = cupti.library;
  ::bragg::cupti::CuptiGetVersion* get_version = nullptr;
  std::string missing;
  const bool complete = resolve(library, "cuptiGetVersion", get_version, missing) &&
                        resolve(library, "cuptiGetResultString", cupti.get_result_string, missing) &&
                        resolve(library, "cuptiSubscribe", cupti.subscribe, missing) &&
                        resolve(library, "cuptiUnsubscribe", cupti.unsubscribe, missing) &&
                        resolve(library, "cuptiEnableCallback", cupti.enable_callback, missing) &&
                        resolve(library, "cuptiGetCallbackName", cupti.callback_name, missing) &&
                        resolve(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks, missing) &&
                        resolve(library, "cuptiActivityEnable", cupti.enable, missing) &&
                        resolve(library, "cuptiActivityDisable", cupti.disable, missing) &&
                        resolve(library, "cuptiActivityFlushAll", cupti.flush_all, missing) &&
                        resolve(library, "cuptiActivityGetNumDroppedRecords", cupti.dropped_records, missing) &&
                        resolve(library, "cuptiActivityGetNextRecord", cupti.next_record, missing) &&
                        resolve(library, "cuptiGetGraphId", cupti.get_graph_id, missing) &&
                        resolve(library, "cuptiGetGraphNodeId", cupti.get_graph_node_id, missing);
  if (!complete) {
    reason = library.path() + " lacks " + missing + ": not a CUPTI of CUDA 12 or 13";
    return false;
  }
  cupti.subscribe_v2 = library.function<::bragg::cupti::CuptiSubscribe_v2>("cuptiSubscribe_v2");
  cupti.set_attribute = library.function<::bragg::cupti::CuptiActivitySetAttribute>("cuptiActivitySetAttribute");
  cupti.get_timestamp = library.function<::bragg::cupti::CuptiGetTimestamp>("cuptiGetTimestamp");
  cupti.get_attribute = library.function<::bragg::cupti::CuptiActivityGetAttribute>("cuptiActivityGetAttribute");
  if (const auto result = get_version(&cupti.version); result != ::bragg::cupti::Result::Success) {
    reason = library.path() + ": " + cupti.text(result);
    return false;
  }
  if (cupti.version >= ::bragg::cupti::kSharedFrom && cupti.subscribe_v2 != nullptr)
    cupti.shared = shared_functions(library);
  return true;
}

}  // namespace bragg
