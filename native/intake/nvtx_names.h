// Domains, categories and messages of NVTX, and the frames that they stand for.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "context/frame_table.h"
#include "intake/autograd.h"
#include "intake/nvtx.h"

namespace bragg::nvtx {

struct Category {
  std::string_view name;
  uint32_t id;
  Category* next = nullptr;
};

// One for each name, for ever: a domain that a program destroys costs nothing more.
struct Domain {
  std::string_view name;  // empty: the default domain
  uint32_t index = 0;
  std::atomic<Category*> categories{nullptr};
  Domain* next = nullptr;
};

// What a message means where it is used.
struct Use {
  std::atomic<FrameId> frame{FrameId::None};
  std::atomic<bool> is_described{false};
};

struct Message {
  std::string_view name;
  const Domain* domain;
  FrameKind kind;           // of the frame that it pushes
  autograd::TaskKind task;  // of an operator
  // Of a range of XLA, when these are read: what it pushes, and frames between the context and that.
  FrameId read_as = FrameId::None;
  std::vector<FrameId> above{};
  bool is_detail = false;  // or nothing
  Use pushed{};
  Use marker{};
  Message* next = nullptr;
};

inline constinit Domain default_domain{};
[[nodiscard]] inline Domain& or_default(Domain* domain) noexcept {
  return domain != nullptr ? *domain : default_domain;
}

// Threads: any, all of them.
[[nodiscard]] Domain* domain_create(std::string_view name) noexcept;
void name_category(Domain& domain, uint32_t id, std::string_view name) noexcept;
[[nodiscard]] Message* register_string(const Domain& domain, std::string_view text) noexcept;

// A range of these attributes when it is pushed: a scope, or an operator of PyTorch.
struct PushedFrame {
  std::span<const FrameId> above{};
  FrameId frame = FrameId::None;  // nothing is pushed
  autograd::TaskKind task{};
};
[[nodiscard]] PushedFrame pushed_frame(const Domain& domain, const EventAttributes& attributes) noexcept;
// A mark or a started range.
[[nodiscard]] FrameId marker_frame(const Domain& domain, const EventAttributes& attributes) noexcept;

[[nodiscard]] std::string utf8(const wchar_t* text);  // of UTF-32; empty for null

}  // namespace bragg::nvtx
