// Symbols that not every release of CUPTI has: dlsym finds one only if the emulated release is new enough and it is not
// listed in BRAGG_FAKE_OMIT="cuptiSubscribe_v2,...". An ifunc whose resolver returns null is a symbol that is not
// there.
#pragma once

#include <cstdint>
#include <type_traits>

#include "link.h"

namespace bragg::fake {

[[nodiscard]] bool has_symbol(const char* name, uint32_t since_version);

}  // namespace bragg::fake

#define FAKE_OPTIONAL_CUPTI(name, type, implementation, since_version)                \
  static_assert(std::is_same_v<decltype(implementation), bragg::cupti::type>);        \
  extern "C" bragg::cupti::type* resolve_##name() {                                   \
    return bragg::fake::has_symbol(#name, since_version) ? &implementation : nullptr; \
  }                                                                                   \
  extern "C" __attribute__((visibility("default"), ifunc("resolve_" #name))) bragg::cupti::type name;
