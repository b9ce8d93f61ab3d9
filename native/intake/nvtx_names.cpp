#include "intake/nvtx_names.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "context/utf8.h"
#include "intake/growing_list.h"
#include "intake/xla_names.h"

namespace bragg::nvtx {
namespace {

constexpr std::string_view kNoMessage = "(no message)";
constexpr std::string_view kOtherMessage = "(other messages)";

// A program that numbers its messages must not fill the memory: 262,144 of 20 bytes take 64 MB with their frames.
constexpr uint32_t kMaxMessages = 1u << 18;
constinit std::atomic<uint32_t> message_count{0};
constinit std::array<std::atomic<Message*>, 1 << 14> messages{};  // by hash

constinit std::atomic<Domain*> domains{nullptr};
constinit std::atomic<uint32_t> domain_count{1};

std::string_view copy(std::string_view text) {
  auto* bytes = static_cast<char*>(std::malloc(text.size() + 1));
  std::memcpy(bytes, text.data(), text.size());
  bytes[text.size()] = '\0';
  return {bytes, text.size()};
}

template <class Node>
Node* everything(const std::atomic<Node*>& list) noexcept {
  return list.load(std::memory_order_acquire);
}

std::string category_name(const Domain& domain, uint32_t id) {
  const Category* end = nullptr;
  const Category* named =
      find_before(everything(domain.categories), end, [id](const Category& category) { return category.id == id; });
  return named != nullptr ? std::string(named->name) : std::to_string(id);
}

// What XLA says of each step of each compilation: thousands of texts, of which nothing is kept.
constinit Message xla_detail{
    .name = "(detail)", .domain = &default_domain, .kind = FrameKind::Scope, .task = {}, .is_detail = true};

bool reads_xla() noexcept { return xla::is_wanted.load(std::memory_order_relaxed); }

// The frames that the text of a range of XLA stands for. It may be registered long before ranges are read.
void name_frames(Message& message, const xla::Range& range) {
  message.is_detail = range.is_detail;
  for (const auto& [kind, name, role] : range.path) {
    message.above.push_back(intern_frame(kind, name));
    if (!role.empty()) FrameTable::instance().describe(message.above.back(), role, "yes");
  }
  if (message.above.empty()) return;
  message.read_as = message.above.back();
  message.above.pop_back();
  if (!range.source.empty()) FrameTable::instance().describe(message.read_as, "source", range.source);
}

Message& message_called(const Domain& domain, std::string_view name, FrameKind kind = FrameKind::Scope) noexcept {
  auto& list = messages[(std::hash<std::string_view>{}(name) + domain.index) % messages.size()];
  const auto matches = [&](const Message& message) {
    return message.name == name && message.domain == &domain && message.kind == kind;
  };
  const Message* end = nullptr;
  if (Message* known = find_before(everything(list), end, matches)) return *known;
  const xla::Range range = domain.name == xla::kDomain ? xla::parse_range(name) : xla::Range{};
  if (range.is_detail && reads_xla()) return xla_detail;
  const auto task = kind == FrameKind::Operator ? autograd::kind_of(name) : autograd::TaskKind::Other;
  if (message_count.fetch_add(1, std::memory_order_relaxed) < kMaxMessages || name == kOtherMessage)
    return *find_or_add(list, matches, [&] {
      NamedNode<Message> made(new Message{.name = copy(name), .domain = &domain, .kind = kind, .task = task});
      name_frames(*made, range);
      return made;
    });
  message_count.fetch_sub(1, std::memory_order_relaxed);
  return message_called(domain, kOtherMessage);
}

// Where a message of PyTorch's emit_nvtx continues with what differs at each call:
// "aten::mm, seq = 7, op_id = 5, sizes = [[2, 2], [2, 2]], input_op_ids = [(4,0), (0,-1)]". npos: it is none.
size_t operator_name_size(std::string_view text) noexcept {
  for (size_t comma = text.find(','); comma != text.npos; comma = text.find(',', comma + 1)) {
    const std::string_view rest = text.substr(comma);
    for (const std::string_view key : {", seq = ", ", op_id = ", ", sizes = [", ", input_op_ids = ["})
      if (rest.starts_with(key)) return comma;
  }
  return text.npos;
}

Message& message_of(const Domain& domain, std::string_view text) noexcept {
  if (text.empty()) return message_called(domain, kNoMessage);
  const size_t size = &domain == &default_domain ? operator_name_size(text) : text.npos;
  return size == text.npos ? message_called(domain, text)
                           : message_called(domain, text.substr(0, size), FrameKind::Operator);
}

Message& message_of(const Domain& domain, const EventAttributes& attributes) noexcept {
  if (attributes.size_bytes < sizeof attributes || attributes.message == nullptr)
    return message_called(domain, kNoMessage);
  const void* message = attributes.message;
  switch (attributes.message_type) {
    case MessageType::Ascii:
      return message_of(domain, static_cast<const char*>(message));
    case MessageType::Unicode:
      return message_of(domain, utf8(static_cast<const wchar_t*>(message)));
    case MessageType::Registered:
      return *static_cast<Message*>(const_cast<void*>(message));
    default:
      return message_called(domain, kNoMessage);
  }
}

// The first use that has a colour or a category decides: a frame for each value would take the tree apart.
void describe(FrameId frame, const Message& message, Use& use, const EventAttributes& attributes) {
  const bool has_color = attributes.color_type == ColorType::Argb;
  if (!has_color && attributes.category == 0) return;
  if (use.is_described.exchange(true, std::memory_order_relaxed)) return;
  FrameTable& frames = FrameTable::instance();
  if (has_color) {
    char text[8];
    std::snprintf(text, sizeof text, "#%06x", attributes.color & 0xFFFFFF);
    frames.describe(frame, "color", text);
  }
  if (attributes.category != 0) frames.describe(frame, "category", category_name(*message.domain, attributes.category));
}

FrameId frame_of(const Message& message, Use& use, FrameKind kind, const EventAttributes& attributes) {
  FrameId frame = use.frame.load(std::memory_order_relaxed);
  if (frame == FrameId::None) {
    std::string name(message.domain->name);
    if (!name.empty()) name += ": ";
    frame = intern_frame(kind, name.append(message.name));
    use.frame.store(frame, std::memory_order_relaxed);
  }
  if (!use.is_described.load(std::memory_order_relaxed)) describe(frame, message, use, attributes);
  return frame;
}

}  // namespace

Domain* domain_create(std::string_view name) noexcept {
  if (name.empty()) return &default_domain;
  return find_or_add(
      domains, [name](const Domain& domain) { return domain.name == name; },
      [name] { return NamedNode<Domain>(new Domain{.name = copy(name), .index = domain_count.fetch_add(1)}); });
}

void name_category(Domain& domain, uint32_t id, std::string_view name) noexcept {
  (void)find_or_add(
      domain.categories, [id](const Category& category) { return category.id == id; },
      [id, name] { return NamedNode<Category>(new Category{.name = copy(name), .id = id}); });
}

Message* register_string(const Domain& domain, std::string_view text) noexcept { return &message_of(domain, text); }

PushedFrame pushed_frame(const Domain& domain, const EventAttributes& attributes) noexcept {
  Message& message = message_of(domain, attributes);
  if (reads_xla() && message.is_detail) return {};
  if (reads_xla() && message.read_as != FrameId::None) return {message.above, message.read_as, message.task};
  return {{}, frame_of(message, message.pushed, message.kind, attributes), message.task};
}

FrameId marker_frame(const Domain& domain, const EventAttributes& attributes) noexcept {
  Message& message = message_of(domain, attributes);
  return frame_of(message, message.marker, FrameKind::Marker, attributes);
}

std::string utf8(const wchar_t* wide) {
  std::string text;
  for (; wide != nullptr && *wide != 0; ++wide) append_utf8(text, static_cast<uint32_t>(*wide));
  return text;
}

}  // namespace bragg::nvtx
