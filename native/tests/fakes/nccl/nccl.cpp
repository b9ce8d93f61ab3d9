// A stand-in for NCCL: no communication, but what it tells a profiler plug-in, as versions 4 to 6 of the interface do.
//
// Events are written byte by byte, since the plug-in's declarations are what is tested. Channels begin and end on a
// thread of their own, after the collective was stopped, and end in another order than they began.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#define EXPORTED extern "C" [[gnu::visibility("default")]]

namespace {

using Log = void (*)(int, unsigned long, const char*, int, const char*, ...);

// ncclProfiler_v4_t to ncclProfiler_v6_t: a name and five functions.
struct Plugin {
  const char* name;
  void* init;
  int (*start)(void* context, void** handle, void* event);
  int (*stop)(void* handle);
  int (*record)(void* handle, int state, void* value);
  int (*finalize)(void* context);
};

constexpr int kCollective = 1 << 1, kMessage = 1 << 2, kChannel = 1 << 6, kGroupCall = 1 << 8, kCollectiveCall = 1 << 9,
              kMessageCall = 1 << 10, kLaunch = 1 << 11, kCopied = 1 << 12, kGroup = 1 << 0;
constexpr int kChannelEnds = 22;
constexpr size_t kUnion = 24;  // where an event has what its type says

struct Communicator {
  int version = 0;
  int rank = 0;
  void* library = nullptr;
  const Plugin* plugin = nullptr;  // none
  void* context = nullptr;
  int mask = 0;
  std::map<std::string, uint64_t> sequences;
  uint64_t gpu_clock_ns = 1'000'000'000'000;
};

class Event {
 public:
  // Version 4 writes one byte of the type, and what was there before remains in the others.
  Event(const Communicator& communicator, int type, void* parent) : communicator_(communicator), type_(type) {
    bytes_.fill(std::byte{0xAA});
    if (communicator.version < 5)
      put<uint8_t>(0, static_cast<uint8_t>(type));
    else
      put<uint64_t>(0, static_cast<uint64_t>(type));
    put(8, parent).put(16, communicator.rank);
  }
  template <class Value>
  Event& put(size_t offset, Value value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    return *this;
  }
  // nullptr: the plug-in does not want it.
  void* start() {
    void* handle = nullptr;
    if ((communicator_.mask & type_) != 0) communicator_.plugin->start(communicator_.context, &handle, bytes_.data());
    return handle;
  }

 private:
  const Communicator& communicator_;
  int type_;
  alignas(8) std::array<std::byte, 160> bytes_;
};

void stop(const Communicator& communicator, void* handle) {
  if (handle != nullptr) communicator.plugin->stop(handle);
}

struct Call {
  const char* function;
  const char* dtype;
  size_t count;
  int root;
  uint8_t n_channels;

  [[nodiscard]] bool is_message() const {
    return std::strcmp(function, "Send") == 0 || std::strcmp(function, "Recv") == 0;
  }
};

void* start_call(const Communicator& communicator, const Call& call, void* group) {
  Event event(communicator, call.is_message() ? kMessageCall : kCollectiveCall, group);
  event.put(kUnion, call.function).put(kUnion + 8, call.count).put(kUnion + 16, call.dtype);
  if (!call.is_message()) event.put(kUnion + 24, call.root);
  return event.start();
}

void* start_operation(Communicator& communicator, const Call& call, void* parent, bool is_copied) {
  if (call.is_message())
    return Event(communicator, kMessage, parent)
        .put(kUnion, call.function)
        .put(kUnion + 16, call.dtype)
        .put(kUnion + 24, call.count)
        .put(kUnion + 32, call.root)
        .put(kUnion + 36, call.n_channels)
        .start();
  Event event(communicator, is_copied ? kCopied : kCollective, parent);
  event.put(kUnion, communicator.sequences[call.function]++)
      .put(kUnion + 8, call.function)
      .put(kUnion + 32, call.count)
      .put(kUnion + 40, call.root)
      .put(kUnion + 48, call.dtype);
  if (!is_copied) event.put(kUnion + 56, call.n_channels).put(kUnion + 64, "RING").put(kUnion + 72, "LL");
  return event.start();
}

void run_channels(const Communicator& communicator, const Call& call, void* operation, uint64_t begin_ns,
                  uint64_t took_ns) {
  std::vector<void*> channels;
  for (uint8_t channel = 0; channel < call.n_channels; ++channel)
    channels.push_back(Event(communicator, kChannel, operation)
                           .put(kUnion, channel)
                           .put(kUnion + 8, begin_ns + uint64_t{10} * channel)
                           .start());
  for (uint64_t channel = channels.size(); channel-- > 0;) {
    if (channels[channel] == nullptr) continue;
    uint64_t end_ns = begin_ns + took_ns - 10 * channel;
    communicator.plugin->record(channels[channel], kChannelEnds, &end_ns);
    communicator.plugin->stop(channels[channel]);
  }
}

}  // namespace

EXPORTED int ncclGetVersion(int* version) {
  const char* wanted = std::getenv("BRAGG_FAKE_NCCL_VERSION");
  *version = wanted != nullptr ? std::atoi(wanted) : 22809;
  return 0;
}

// `version`: of the interface that it offers; 3: one of before, for which the plug-in has nothing.
EXPORTED void* fake_nccl_init(int version, uint64_t id, const char* name, int n_ranks, int rank) {
  auto* communicator = new Communicator;
  communicator->version = version;
  communicator->rank = rank;
  const char* path = std::getenv("NCCL_PROFILER_PLUGIN");
  if (path == nullptr || (communicator->library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) == nullptr) return communicator;
  const std::string symbol = "ncclProfiler_v" + std::to_string(version);
  communicator->plugin = static_cast<const Plugin*>(dlsym(communicator->library, symbol.c_str()));
  if (communicator->plugin == nullptr) return communicator;
  using InitV4 = int (*)(void**, int*, const char*, uint64_t, int, int, int, Log);
  using Init = int (*)(void**, uint64_t, int*, const char*, int, int, int, Log);
  void* const init = communicator->plugin->init;
  if (version < 5)
    reinterpret_cast<InitV4>(init)(&communicator->context, &communicator->mask, name, id, 1, n_ranks, rank, nullptr);
  else
    reinterpret_cast<Init>(init)(&communicator->context, id, &communicator->mask, name, 1, n_ranks, rank, nullptr);
  return communicator;
}

// `calls` equal calls of each communicator in one group, whose kernels `launch` launches, one for each communicator;
// nullptr: they are copied, without kernels.
EXPORTED void fake_nccl_run(Communicator* const* communicators, int n_communicators, const char* function,
                            const char* dtype, size_t count, int root, int n_channels, int calls, uint64_t gpu_ns,
                            void (*launch)()) {
  const Call call{function, dtype, count, root, static_cast<uint8_t>(n_channels)};
  const std::vector<Communicator*> all(communicators, communicators + n_communicators);
  const Communicator& first = *all.front();
  void* const group_call = Event(first, kGroupCall, nullptr).put(kUnion, false).put(kUnion + 4, 1).start();
  std::map<Communicator*, void*> last_calls;
  for (Communicator* communicator : all)
    for (int i = 0; i < calls; ++i) {
      last_calls[communicator] = start_call(*communicator, call, group_call);
      stop(*communicator, last_calls[communicator]);
    }
  for (Communicator* communicator : all) {
    if (launch == nullptr) break;
    void* const launched = Event(*communicator, kLaunch, group_call).put<void*>(kUnion, nullptr).start();
    launch();
    stop(*communicator, launched);
  }
  std::map<Communicator*, std::vector<void*>> operations;
  for (Communicator* communicator : all) {
    void* const group = Event(*communicator, kGroup, nullptr).start();
    void* const parent = communicator->version < 5 ? group : last_calls[communicator];
    for (int i = 0; i < calls; ++i)
      operations[communicator].push_back(start_operation(*communicator, call, parent, launch == nullptr));
    for (void* operation : operations[communicator]) stop(*communicator, operation);
    stop(*communicator, group);
  }
  stop(first, group_call);
  std::thread([&] {
    for (Communicator* communicator : all)
      for (void* operation : operations[communicator])
        if (operation != nullptr && launch != nullptr)
          run_channels(*communicator, call, operation, communicator->gpu_clock_ns += 1'000'000, gpu_ns);
  }).join();
}

EXPORTED void fake_nccl_destroy(Communicator* communicator) {
  if (communicator->plugin != nullptr) communicator->plugin->finalize(communicator->context);
  if (communicator->library != nullptr) dlclose(communicator->library);
  delete communicator;
}
