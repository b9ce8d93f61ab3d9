#include "intake/collective_names.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "intake/collective_progress.h"

namespace bragg::collective_names {
namespace {

// std::string of libstdc++'s C++11 ABI, as of all wheels since PyTorch 2.7.
struct Text {
  const char* begin;
  size_t size;
  char rest[16];

  // What no such string holds is not read: then this PyTorch lays it out in another way.
  [[nodiscard]] std::optional<std::string_view> read() const noexcept {
    constexpr size_t kLongest = 256;
    const bool is_inside = begin == static_cast<const char*>(rest);
    if (size > kLongest || begin == nullptr || (is_inside && size >= sizeof rest)) return std::nullopt;
    return std::string_view(begin, size);
  }
};
static_assert(sizeof(Text) == 32);

// torch::ParamCommsDebugInfo
//   0 vtable   8 description of the group   40 name of the group   72 i32 rank   76 i32 size of the group
//  80 name of the collective   112 i64 elements of the input   120 i64 of the output   128 i8 c10::ScalarType
struct DebugInfo {
  const void* vtable;
  Text description;
  Text group;
  int32_t rank;
  int32_t n_ranks;
  Text collective;
  int64_t n_inputs;
  int64_t n_outputs;
  int8_t type;
};
static_assert(offsetof(DebugInfo, collective) == 80 && offsetof(DebugInfo, type) == 128);

// c10::ThreadLocalDebugInfo::get: the kind is the address of a name, and before PyTorch 2.12 a number.
using Get = const DebugInfo* (*)(uintptr_t kind);
constexpr uintptr_t kNumberOfKind = 4;

Get get = nullptr;
uintptr_t kind_of_info = kNumberOfKind;
const void* vtable_of_info = nullptr;

const DebugInfo* info_of_this_thread() noexcept {
  const DebugInfo* info = get != nullptr ? get(kind_of_info) : nullptr;
  return info != nullptr && info->vtable == vtable_of_info ? info : nullptr;
}

std::string_view name_of(int8_t type) noexcept {
  constexpr std::array<std::string_view, 16> kNames{"u8",  "i8",  "i16",  "i32",  "i64", "f16", "f32",  "f64",
                                                    "c32", "c64", "c128", "bool", "qi8", "qu8", "qi32", "bf16"};
  constexpr int8_t kFloat8E5M2 = 23, kFloat8E4M3 = 24;
  if (type == kFloat8E5M2) return "f8e5m2";
  if (type == kFloat8E4M3) return "f8e4m3";
  return type >= 0 && static_cast<size_t>(type) < kNames.size() ? kNames[static_cast<size_t>(type)] : "elements";
}

}  // namespace

bool find(void* torch_library) {
  get = reinterpret_cast<Get>(dlsym(torch_library, "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE"));
  const auto* table = static_cast<const void* const*>(dlsym(torch_library, "_ZTVN5torch19ParamCommsDebugInfoE"));
  const auto* kind = static_cast<const uintptr_t*>(dlsym(torch_library, "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE"));
  if (kind != nullptr) kind_of_info = *kind;
  vtable_of_info = table != nullptr ? table + 2 : nullptr;  // offset to the top and type info come before
  return get != nullptr && vtable_of_info != nullptr;
}

std::string of_this_thread() {
  const DebugInfo* info = info_of_this_thread();
  if (info == nullptr) return {};
  const auto group = info->group.read(), collective = info->collective.read();
  if (!group || !collective || info->n_inputs < 0 || info->n_ranks < 1 || info->rank < 0) return {};
  const std::string members = "group " + std::string(*group) + " of " + std::to_string(info->n_ranks);
  collective_progress::note(members, *collective);
  std::string text = "collective ";
  text.append(*collective).append("[").append(std::to_string(info->n_inputs)).append(" ").append(name_of(info->type));
  return text.append(", ").append(members).append("]");
}

std::string group_of_this_thread() {
  const DebugInfo* info = info_of_this_thread();
  return std::string(info != nullptr ? info->group.read().value_or("") : "");
}

}  // namespace bragg::collective_names
