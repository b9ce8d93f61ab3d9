// NVTX as programs have it linked, and what it left on the thread of a test.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/nvtx.h"

namespace bragg::test {

using nvtx::Callbacks;
using nvtx::Domain;
using nvtx::EventAttributes;
using nvtx::Function;
using nvtx::Message;
using nvtx::MessageType;
using nvtx::Module;
using nvtx::Table;

// What one linked copy holds: places for functions, and the tables through which an injected library fills them.
class Copy {
 public:
  Copy() {
    current = this;
    for (size_t i = 0; i < kPlaces; ++i) core_places_[i] = &core_[i], core2_places_[i] = &core2_[i];
    is_initialized = InitializeInjectionNvtx2(tables) == 1;
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  bool is_initialized = false;
  uint32_t version = 0;

  int push(const char* text) const { return core<int(const char*)>(9)(text); }
  int push(const wchar_t* text) const { return core<int(const wchar_t*)>(10)(text); }
  int push(const EventAttributes& what) const { return core<int(const EventAttributes*)>(8)(&what); }
  int pop() const { return core<int()>(11)(); }
  void mark(const char* text) const { core<void(const char*)>(2)(text); }
  uint64_t start(const char* text) const { return core<uint64_t(const char*)>(5)(text); }
  void end(uint64_t range) const { core<void(uint64_t)>(7)(range); }

  Domain* create_domain(const char* name) const { return core2<Domain*(const char*)>(12)(name); }
  Domain* create_domain(const wchar_t* name) const { return core2<Domain*(const wchar_t*)>(13)(name); }
  Message* register_string(Domain* in, const char* text) const {
    return core2<Message*(Domain*, const char*)>(10)(in, text);
  }
  void name_category(Domain* in, uint32_t id, const char* name) const {
    core2<void(Domain*, uint32_t, const char*)>(8)(in, id, name);
  }
  int push(Domain* in, const EventAttributes& what) const {
    return core2<int(Domain*, const EventAttributes*)>(4)(in, &what);
  }
  int pop(Domain* in) const { return core2<int(Domain*)>(5)(in); }
  void mark(Domain* in, const EventAttributes& what) const {
    core2<void(Domain*, const EventAttributes*)>(1)(in, &what);
  }
  uint64_t start(Domain* in, const EventAttributes& what) const {
    return core2<uint64_t(Domain*, const EventAttributes*)>(2)(in, &what);
  }
  void end(Domain* in, uint64_t range) const { core2<void(Domain*, uint64_t)>(3)(in, range); }
  // The payload extension, whose functions get the address of payloads and their number.
  uint64_t register_schema(Domain* in) { return payload<uint64_t(Domain*, const void*)>(0)(in, nullptr); }
  int push_with_payload(Domain* in) { return payload<int(Domain*, const void*, size_t)>(3)(in, nullptr, 0); }
  int pop_with_payload(Domain* in) { return payload<int(Domain*, const void*, size_t)>(4)(in, nullptr, 0); }
  void end_with_payload(Domain* in, uint64_t range) {
    payload<void(Domain*, uint64_t, const void*, size_t)>(6)(in, range, nullptr, 0);
  }
  [[nodiscard]] static bool is_served(nvtx::ExtensionModule module, nvtx::ExtensionSegment segment) {
    nvtx::Extension extension{.module = module, .segment_count = 1, .segments = &segment};
    return InitializeInjectionNvtxExtension(&extension) == 1;
  }
  [[nodiscard]] bool leaves_resources_alone() const { return core2_[6] == nullptr && core2_[7] == nullptr; }

 private:
  static constexpr size_t kPlaces = 16;
  static inline Copy* current = nullptr;

  template <class Signature>
  Signature* payload(size_t place) {
    if (payload_[place] == 0 && !is_served(nvtx::ExtensionModule::Payload, {0, kPlaces, payload_.data()}))
      return nullptr;
    return reinterpret_cast<Signature*>(payload_[place]);
  }
  template <class Signature>
  [[nodiscard]] Signature* core(size_t place) const {
    return reinterpret_cast<Signature*>(core_[place]);
  }
  template <class Signature>
  [[nodiscard]] Signature* core2(size_t place) const {
    return reinterpret_cast<Signature*>(core2_[place]);
  }

  static const void* tables(Table table) {
    static const Callbacks callbacks{.module_functions = module_functions};
    static const nvtx::Version version{.set_injection_version = [](uint32_t number) { current->version = number; }};
    return table == Table::Callbacks ? &callbacks
           : table == Table::Version ? static_cast<const void*>(&version)
                                     : nullptr;
  }
  static int module_functions(Module module, Function*** functions, uint32_t* count) {
    *functions = module == Module::Core ? current->core_places_.data() : current->core2_places_.data();
    *count = kPlaces;
    return 1;
  }

  std::array<Function, kPlaces> core_{}, core2_{};
  std::array<Function*, kPlaces> core_places_{}, core2_places_{};
  std::array<intptr_t, kPlaces> payload_{};
};

inline EventAttributes text(const char* message) { return {.message_type = MessageType::Ascii, .message = message}; }
inline EventAttributes registered(const Message* message) {
  return {.message_type = MessageType::Registered, .message = message};
}

class ExistingSession {
 public:
  ExistingSession() { recording_state.existing.store(1); }
  ~ExistingSession() { recording_state.existing.store(0); }
};

class ActiveSession : ExistingSession {
 public:
  ActiveSession() {
    (void)events();
    recording_state.active.store(1);
  }
  ~ActiveSession() { recording_state.active.store(0); }

  // What this thread has recorded since the last call.
  static std::vector<Event> events() {
    std::vector<Event> found;
    ThreadContext::current().ring.drain([&](const Event& event) { found.push_back(event); });
    return found;
  }
};

struct Open {
  FrameKind kind;
  std::string name;
  friend bool operator==(const Open&, const Open&) = default;
};
using Path = std::vector<Open>;

// Outermost first.
inline Path path_of(NodeId node) {
  auto& tree = CallingContextTree::instance();
  auto& frames = FrameTable::instance();
  Path path;
  for (; node != kRootNode; node = tree.parent(node)) {
    const Frame frame = frames.frame(tree.frame(node));
    path.insert(path.begin(), {frame.kind, std::string(frames.string(frame.name))});
  }
  return path;
}

inline Path context() { return path_of(ThreadContext::current().here().shadow); }

inline std::map<std::string, std::string> attributes_of(const std::string& name) {
  auto& frames = FrameTable::instance();
  std::map<std::string, std::string> found;
  for (uint32_t i = 0; i < frames.attribute_count(); ++i) {
    const FrameAttribute row = frames.attribute(i);
    if (frames.string(frames.frame(row.frame).name) == name)
      found.emplace(frames.string(row.key), frames.string(row.value));
  }
  return found;
}

}  // namespace bragg::test
