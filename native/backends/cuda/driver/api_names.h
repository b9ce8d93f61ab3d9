// Calls of the CUDA runtime and driver by the names that CUPTI has for their callbacks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "context/event.h"

namespace bragg::cupti {

// As the program writes it: "cudaMemcpyAsync_ptsz_v7000" is cudaMemcpyAsync, "cuMemFree_v2" is cuMemFree.
[[nodiscard]] constexpr std::string_view api_name(std::string_view callback_name) noexcept {
  std::string_view name = callback_name;
  while (name.starts_with('_')) name.remove_prefix(1);
  for (;;) {
    const size_t at = name.rfind('_');
    if (at == std::string_view::npos) return name;
    const std::string_view suffix = name.substr(at + 1);
    const bool is_version = suffix.size() > 1 && suffix.front() == 'v' &&
                            std::ranges::all_of(suffix.substr(1), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_version && suffix != "ptsz" && suffix != "ptds") return name;
    name.remove_suffix(suffix.size() + 1);
  }
}

[[nodiscard]] constexpr Waiting waiting(std::string_view name) noexcept {  // of an api_name
  constexpr std::string_view kFrees[] = {"cuMemFree", "cuMemFreeHost", "cuArrayDestroy",
                                         "cudaFree",  "cudaFreeHost",  "cudaFreeArray"};
  if (name.ends_with("Synchronize") || std::ranges::find(kFrees, name) != std::end(kFrees)) return Waiting::Yes;
  const bool copies = name.starts_with("cudaMemcpy") || name.starts_with("cuMemcpy");
  if (!copies || name.find("DtoD") != std::string_view::npos) return Waiting::No;
  return name.find("Async") == std::string_view::npos ? Waiting::Yes : Waiting::Copies;
}

// Of an api_name: a call that only asks or chooses. Frameworks make several for each launch.
[[nodiscard]] constexpr bool only_asks(std::string_view name) noexcept {
  constexpr std::string_view kParts[] = {
      "Get", "Peek", "Query", "IsCapturing", "Occupancy", "CallConfiguration", "SetDevice", "Current"};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace bragg::cupti
