// The receiving side of NVTX: what every copy of NVTX in a process finds in the library that NVTX_INJECTION64_PATH
// names. The layouts are those of NVTX 3 on LP64.
//
// Pushed ranges are entries of the thread's context. Marks and started ranges need not nest, so they are markers below
// the context that they were made in. A name is `message` in the default domain and `domain: message` in others. Colour
// and category describe the name, once; a payload that is a number is a value of its range.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bragg::nvtx {

struct Domain;   // of our making; NVTX hands the pointer back
struct Message;  // of our making, too: a registered string

enum class ColorType : int32_t { Unknown = 0, Argb = 1 };
enum class PayloadType : int32_t {  // any other: `payload` is not a number
  None = 0,
  UnsignedInt64 = 1,
  Int64 = 2,
  Double = 3,
  UnsignedInt32 = 4,
  Int32 = 5,
  Float = 6,
};
enum class MessageType : int32_t { Unknown = 0, Ascii = 1, Unicode = 2, Registered = 3 };

struct EventAttributes {
  uint16_t version = 2;
  uint16_t size_bytes = 48;
  uint32_t category = 0;  // 0: none
  ColorType color_type = ColorType::Unknown;
  uint32_t color = 0;
  PayloadType payload_type = PayloadType::None;
  int32_t reserved = 0;
  uint64_t payload = 0;  // of types of 32 bits the lower half
  MessageType message_type = MessageType::Unknown;
  const void* message = nullptr;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);

enum class Table : uint32_t { Callbacks = 1, Version = 3 };
using GetTable = const void* (*)(Table);

enum class Module : int32_t { Core = 1, Core2 = 5 };
using Function = void (*)();

struct Callbacks {
  size_t size_bytes = sizeof(Callbacks);
  // Points `functions` to a module's array of places for functions; 0: there is no such module.
  int (*module_functions)(Module module, Function*** functions, uint32_t* count) = nullptr;
};

struct Version {
  size_t size_bytes = sizeof(Version);
  uint32_t version = 3;
  uint32_t reserved = 0;
  void (*set_injection_version)(uint32_t version) = nullptr;
};

// What a copy tells of an extension, and its places for functions: pointers, as integers.
struct ExtensionSegment {
  size_t id = 0;
  size_t count = 0;
  intptr_t* functions = nullptr;
};
enum class ExtensionModule : uint16_t { Payload = 2 };
struct Extension {
  uint16_t nvtx_version = 3;
  uint16_t size_bytes = 40;
  ExtensionModule module{};
  uint16_t compatible_with = 0;
  size_t segment_count = 0;
  ExtensionSegment* segments = nullptr;
  const void* exports = nullptr;
  const void* facts = nullptr;
};
static_assert(sizeof(Extension) == 40);

// Whether ranges and marks that begin from now on are recorded; they are at first. Threads: any.
void set_recording(bool records) noexcept;

}  // namespace bragg::nvtx

// Called by every copy (the nvtx module, torch, NCCL, XLA, ...) at its first use, each with its own places for
// functions. Returns 1: the copy calls us from now on.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(bragg::nvtx::GetTable get) noexcept;

// NVTX calls this for each extension that a copy uses. Payloads of schemas are not read, but NCCL ends ranges with
// functions that give one: without these, what follows would stand below `NCCL: ncclCommInitRankConfig`. Schemas get
// numbers, since the nvtx module makes no range at all for a tool that declines one.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtxExtension(
    bragg::nvtx::Extension* extension) noexcept;
