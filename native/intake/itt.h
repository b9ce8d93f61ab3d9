// The collector side of Intel's ITT API: what a statically linked ittnotify finds in the library that
// INTEL_LIBITTNOTIFY64 names. Tasks become entries of the thread's context: PyTorch's and oneDNN's are operators,
// others are scopes. The layouts are those of ittnotify 3 on LP64; it keeps the fields named extra1 and extra2 for
// collectors.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "context/frame_table.h"
#include "intake/autograd.h"

namespace bragg::itt {

struct Id {  // passed by value
  uint64_t parts[3];
};

struct Domain {
  int32_t flags = 1;  // 0: the macros at the call sites skip the domain
  const char* name = nullptr;
  const void* wide_name = nullptr;
  int32_t extra1 = 0;
  void* extra2 = nullptr;
  Domain* next = nullptr;
};
static_assert(sizeof(Domain) == 48);

// What a string handle means as a task of one domain.
struct TaskFrame {
  const Domain* domain;
  FrameId frame;
  autograd::TaskKind kind;
  TaskFrame* next;
};

struct StringHandle {
  const char* name = nullptr;
  const void* wide_name = nullptr;
  int32_t extra1 = 0;
  TaskFrame* frames = nullptr;  // extra2: one for each domain that used the handle
  StringHandle* next = nullptr;
};
static_assert(sizeof(StringHandle) == 40);

struct ApiEntry {
  const char* name;  // null: end of the list
  void** function;
  void* initializer;
  void* null_function;
  int32_t group;
};
static_assert(sizeof(ApiEntry) == 40);

struct Global {
  uint8_t versions_and_flags[56];
  pthread_mutex_t mutex;  // 40 bytes on x86-64, 48 on aarch64
  void* library;
  void* error_handler;
  const char** library_path;
  const ApiEntry* api_list;
};

}  // namespace bragg::itt

// Called once by every linked copy of ittnotify (torch, the ittapi module, ...), each with its own list of functions.
extern "C" [[gnu::visibility("default")]] void __itt_api_init(bragg::itt::Global* global, int groups) noexcept;
