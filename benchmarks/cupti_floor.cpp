// The floor of what a CUPTI profiler costs: kernel records are enabled, buffers are handed back and thrown away.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "backends/cuda/driver/cupti_abi.h"

namespace {

namespace cupti = bragg::cupti;

constexpr size_t kBufferBytes = 4 << 20;  // within CUPTI's recommendation of 1 to 10 MB
constexpr int kNoLibrary = -1;

std::mutex mutex;
std::vector<uint8_t*> free_buffers;
void* library = nullptr;

void request_buffer(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
  const std::lock_guard lock(mutex);
  *size_bytes = kBufferBytes;
  *max_records = 0;  // as many as fit
  if (free_buffers.empty()) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  } else {
    *buffer = free_buffers.back();
    free_buffers.pop_back();
  }
}

void discard_buffer(bragg::cuda::Context, uint32_t, uint8_t* buffer, size_t, size_t) {
  const std::lock_guard lock(mutex);
  free_buffers.push_back(buffer);
}

template <class Function, class... Arguments>
int call(const char* symbol, Arguments... arguments) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, symbol));
  return function == nullptr ? kNoLibrary : static_cast<int>(function(arguments...));
}

}  // namespace

// Both return 0 or the CUPTI result that is in the way; -1: the library or a symbol of it is missing.
extern "C" int floor_attach(const char* cupti_path) {
  library = dlopen(cupti_path, RTLD_NOW);
  if (library == nullptr) return kNoLibrary;
  using cupti::Kind;
  const int status =
      call<cupti::CuptiActivityRegisterCallbacks>("cuptiActivityRegisterCallbacks", &request_buffer, &discard_buffer);
  return status != 0 ? status : call<cupti::CuptiActivityEnable>("cuptiActivityEnable", Kind::ConcurrentKernel);
}

// For programs without Python: the driver calls it within cuInit, by CUDA_INJECTION64_PATH.
extern "C" int InitializeInjection() {
  const char* path = std::getenv("CUPTI_FLOOR_LIBRARY");
  return path != nullptr && floor_attach(path) == 0 ? 1 : 0;
}

extern "C" int floor_detach() {
  const int status = call<cupti::CuptiActivityDisable>("cuptiActivityDisable", cupti::Kind::ConcurrentKernel);
  return status != 0 ? status : call<cupti::CuptiActivityFlushAll>("cuptiActivityFlushAll", cupti::kFlushForced);
}
