#include "intake/nvtx.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <span>
#include <string_view>
#include <utility>

#include "context/clock.h"
#include "context/due_sample.h"
#include "context/nested_flags.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/nvtx_names.h"
#include "intake/nvtx_payload.h"
#include "intake/record_function.h"

namespace bragg::nvtx {
namespace {

std::atomic<bool> wanted{true};

SessionMask recording_sessions() noexcept {
  return wanted.load(std::memory_order_relaxed) ? recording_state.active.load(std::memory_order_relaxed) : 0;
}

// Pushed ranges -------------------------------------------------------------------------------------------------------

// The open pushed ranges of this thread in one domain: they nest within their domain only.
struct Nesting {
  const Domain* domain;
  Nesting* next;
  int32_t depth = 0;
  NestedFlags was_pushed{true};
};
constexpr int kError = -1;

// initial-exec: 8 bytes of the static TLS reserve, as in the thread's context.
[[gnu::tls_model("initial-exec")]] thread_local Nesting* nestings = nullptr;

void free_nestings(void*) {
  while (nestings != nullptr) delete std::exchange(nestings, nestings->next);
}

const pthread_key_t exit_key = [] {
  pthread_key_t key{};
  pthread_key_create(&key, free_nestings);
  return key;
}();

Nesting& add_nesting(const Domain& domain) noexcept {
  nestings = new Nesting{.domain = &domain, .next = nestings};
  pthread_setspecific(exit_key, nestings);
  return *nestings;
}

Nesting& nesting_in(const Domain& domain) noexcept {
  for (Nesting* nesting = nestings; nesting != nullptr; nesting = nesting->next)
    if (nesting->domain == &domain) return *nesting;
  return add_nesting(domain);
}

Source source_of(const Domain& domain) noexcept {
  return static_cast<Source>(static_cast<uint32_t>(Source::Nvtx) + domain.index);
}

// The depth of the range, from 0.
int push(const Domain& domain, const EventAttributes& attributes) noexcept {
  Nesting& nesting = nesting_in(domain);
  const bool records =
      wanted.load(std::memory_order_relaxed) && recording_state.existing.load(std::memory_order_relaxed) != 0;
  const PushedFrame pushed = records ? pushed_frame(domain, attributes) : PushedFrame{};
  const bool pushes = pushed.frame != FrameId::None && !record_function::is_told(pushed.frame, pushed.task);
  nesting.was_pushed.push(pushes);
  if (pushes) {
    settle_samples();
    if (pushed.above.empty()) {
      autograd::begin_range(source_of(domain), pushed.frame, pushed.task);
    } else {
      ThreadContext::current().push_path(source_of(domain), pushed.above, pushed.frame);
    }
    if (attributes.payload_type != PayloadType::None)
      record_payload(ThreadContext::current().innermost_entry(), attributes);
  }
  return nesting.depth++;
}

int pop(const Domain& domain) noexcept {
  Nesting& nesting = nesting_in(domain);
  if (nesting.depth == 0) return kError;
  if (nesting.was_pushed.pop()) {
    settle_samples();
    autograd::end_range(source_of(domain));
  }
  return --nesting.depth;
}

// Marks and started ranges --------------------------------------------------------------------------------------------

// Where a marker stands, and which sessions it belongs to.
Event marker_here(EventKind kind, SessionMask mask, FrameId frame) noexcept {
  auto& tree = CallingContextTree::instance();
  ContextNodes nodes = ThreadContext::current().here();
  nodes.python =
      recording_state.python.load(std::memory_order_relaxed) != 0 ? tree.child(nodes.python, frame) : kRootNode;
  nodes.shadow = tree.child(nodes.shadow, frame);
  const int64_t moment_ns = now_ns();
  return Event::spanning(kind, mask, nodes, {moment_ns, moment_ns});
}

void mark(const Domain& domain, const EventAttributes& attributes) noexcept {
  const SessionMask mask = recording_sessions();
  if (mask == 0) return;
  const Event event = marker_here(EventKind::Mark, mask, marker_frame(domain, attributes));
  ThreadContext::current().record(event);
  record_payload(event.nodes(), attributes);
}

// Started ranges that have not ended. Threads: any; a range may end on another thread than it started on.
class OpenRanges {
 public:
  // 0: every place that was tried is taken by a range that is still open.
  [[nodiscard]] uint64_t add(const Event& event) noexcept {
    for (int tries = 0; tries < kTries; ++tries) {
      const uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
      Place& place = places_[id % places_.size()];
      uint64_t expected = kFree;
      if (!place.id.compare_exchange_strong(expected, kBusy, std::memory_order_acquire, std::memory_order_relaxed))
        continue;
      place.event = event;
      place.id.store(id, std::memory_order_release);
      return id;
    }
    return 0;
  }

  // False: there is no such range, or it has ended.
  [[nodiscard]] bool take(uint64_t id, Event& event) noexcept {
    Place& place = places_[id % places_.size()];
    if (id <= kBusy ||
        !place.id.compare_exchange_strong(id, kBusy, std::memory_order_acquire, std::memory_order_relaxed))
      return false;
    event = place.event;
    place.id.store(kFree, std::memory_order_release);
    return true;
  }

 private:
  static constexpr uint64_t kFree = 0, kBusy = 1;
  // Ids pass over places of ranges that stay open. A program that never ends its ranges fills them.
  static constexpr int kTries = 64;
  struct Place {
    std::atomic<uint64_t> id{kFree};
    Event event{};
  };
  std::atomic<uint64_t> next_id_{kBusy + 1};
  std::array<Place, 1 << 14> places_{};
};
constinit OpenRanges open_ranges;

uint64_t start(const Domain& domain, const EventAttributes& attributes) noexcept {
  const SessionMask mask = recording_sessions();
  if (mask == 0) return 0;
  const SessionMask sessions = mask >> kSessionShift;  // its slots are those of the phase it ends in
  const Event event = marker_here(EventKind::Range, sessions, marker_frame(domain, attributes));
  record_payload(event.nodes(), attributes);
  const uint64_t id = open_ranges.add(event);
  if (id == 0) ThreadContext::current().dropped.fetch_add(1, std::memory_order_relaxed);
  return id;
}

void end(uint64_t id) noexcept {
  Event event{};
  if (!open_ranges.take(id, event)) return;
  event.mask = static_cast<uint16_t>(still_active(SessionMask{event.mask} << kSessionShift));
  event.interval.end_ns = now_ns();
  if (event.mask != 0) ThreadContext::current().record(event);
}

// Installation --------------------------------------------------------------------------------------------------------

// What is shorter than NVTX 3 makes it is not read.
const EventAttributes& or_none(const EventAttributes* attributes) noexcept {
  static constexpr EventAttributes none{};
  return attributes != nullptr && attributes->size_bytes >= sizeof none ? *attributes : none;
}
EventAttributes ascii(const char* text) noexcept { return {.message_type = MessageType::Ascii, .message = text}; }
EventAttributes unicode(const wchar_t* text) noexcept {
  return {.message_type = MessageType::Unicode, .message = text};
}
std::string_view or_empty(const char* text) noexcept { return text != nullptr ? text : std::string_view(); }

using Attributes = const EventAttributes*;
using Ascii = const char*;
using Wide = const wchar_t*;
using Id = uint64_t;

// A function and its place in its module's array; a place left alone is a call without effect.
struct Implementation {
  uint32_t place;
  Function function;

  template <class Signature>
  Implementation(uint32_t at, Signature* implemented) : place(at), function(reinterpret_cast<Function>(implemented)) {}
};

const Implementation kCore[] = {
    {1, +[](Attributes what) noexcept { mark(default_domain, or_none(what)); }},
    {2, +[](Ascii what) noexcept { mark(default_domain, ascii(what)); }},
    {3, +[](Wide what) noexcept { mark(default_domain, unicode(what)); }},
    {4, +[](Attributes what) noexcept { return start(default_domain, or_none(what)); }},
    {5, +[](Ascii what) noexcept { return start(default_domain, ascii(what)); }},
    {6, +[](Wide what) noexcept { return start(default_domain, unicode(what)); }},
    {7, +[](Id range) noexcept { end(range); }},
    {8, +[](Attributes what) noexcept { return push(default_domain, or_none(what)); }},
    {9, +[](Ascii what) noexcept { return push(default_domain, ascii(what)); }},
    {10, +[](Wide what) noexcept { return push(default_domain, unicode(what)); }},
    {11, +[]() noexcept { return pop(default_domain); }},
    {12, +[](uint32_t id, Ascii name) noexcept { name_category(default_domain, id, or_empty(name)); }},
    {13, +[](uint32_t id, Wide name) noexcept { name_category(default_domain, id, utf8(name)); }},
};

const Implementation kCore2[] = {
    {1, +[](Domain* in, Attributes what) noexcept { mark(or_default(in), or_none(what)); }},
    {2, +[](Domain* in, Attributes what) noexcept { return start(or_default(in), or_none(what)); }},
    {3, +[](Domain*, Id range) noexcept { end(range); }},
    {4, +[](Domain* in, Attributes what) noexcept { return push(or_default(in), or_none(what)); }},
    {5, +[](Domain* in) noexcept { return pop(or_default(in)); }},
    {8, +[](Domain* in, uint32_t id, Ascii name) noexcept { name_category(or_default(in), id, or_empty(name)); }},
    {9, +[](Domain* in, uint32_t id, Wide name) noexcept { name_category(or_default(in), id, utf8(name)); }},
    {10, +[](Domain* in, Ascii text) noexcept { return register_string(or_default(in), or_empty(text)); }},
    {11, +[](Domain* in, Wide text) noexcept { return register_string(or_default(in), utf8(text)); }},
    {12, +[](Ascii name) noexcept { return domain_create(or_empty(name)); }},
    {13, +[](Wide name) noexcept { return domain_create(utf8(name)); }},
};

// Numbers of schemas that a tool gives begin here.
std::atomic<uint64_t> next_schema{uint64_t{1} << 32};
uint64_t number_schema(Domain*, const void*) noexcept { return next_schema.fetch_add(1, std::memory_order_relaxed); }

using Payloads = const void*;

const Implementation kPayload[] = {
    {0, number_schema},
    {1, number_schema},  // of an enumeration
    {2, +[](Domain* in, Payloads, size_t) noexcept { mark(or_default(in), {}); }},
    {3, +[](Domain* in, Payloads, size_t) noexcept { return push(or_default(in), {}); }},
    {4, +[](Domain* in, Payloads, size_t) noexcept { return pop(or_default(in)); }},
    {5, +[](Domain* in, Payloads, size_t) noexcept { return start(or_default(in), {}); }},
    {6, +[](Domain*, Id range, Payloads, size_t) noexcept { end(range); }},
};

void install(const Callbacks& callbacks, Module module, std::span<const Implementation> implementations) {
  Function** places = nullptr;
  uint32_t count = 0;
  if (callbacks.module_functions(module, &places, &count) == 0) return;
  for (const auto& [place, function] : implementations)
    if (place < count) *places[place] = function;
}

}  // namespace

void set_recording(bool records) noexcept { wanted.store(records, std::memory_order_relaxed); }

}  // namespace bragg::nvtx

int InitializeInjectionNvtx2(bragg::nvtx::GetTable get) noexcept {
  using namespace bragg::nvtx;
  if (const auto* version = static_cast<const Version*>(get(Table::Version))) version->set_injection_version(3);
  const auto* callbacks = static_cast<const Callbacks*>(get(Table::Callbacks));
  if (callbacks == nullptr) return 0;
  install(*callbacks, Module::Core, kCore);
  install(*callbacks, Module::Core2, kCore2);
  return 1;
}

int InitializeInjectionNvtxExtension(bragg::nvtx::Extension* extension) noexcept {
  using namespace bragg::nvtx;
  if (extension->module != ExtensionModule::Payload || extension->segment_count == 0) return 1;
  const ExtensionSegment& places = extension->segments[0];
  for (const auto& [place, function] : kPayload)
    if (place < places.count) places.functions[place] = reinterpret_cast<intptr_t>(function);
  return 1;
}
