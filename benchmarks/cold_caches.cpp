// An observer of PyTorch's operators that leaves nothing in the caches of its core: it writes 1.5 MB.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

struct Context {  // what an observer returns: a pointer, as it is passed by address
  void* nothing;
  ~Context() {}
};
struct Observer {
  Context (*start)(const void*);
  void (*end)(const void*, void*);
  double sampling_probability;
  std::array<bool, 10> scopes;
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
};

alignas(64) std::array<unsigned char, 3 << 19> memory;

void evict() {
  for (size_t i = 0; i < memory.size(); i += 64) ++memory[i];
}

Context start(const void*) {
  evict();
  return {nullptr};
}
void end(const void*, void*) { evict(); }

}  // namespace

extern "C" int evict_at_operators(const char* torch_library) {
  void* const torch = dlopen(torch_library, RTLD_NOW | RTLD_NOLOAD);
  if (torch == nullptr) return 1;
  void* const add = dlsym(torch, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
  if (add == nullptr) return 1;
  constexpr std::array<bool, 10> kFunctions{true};
  reinterpret_cast<uint64_t (*)(Observer)>(add)({start, end, 1.0, kFunctions});
  return 0;
}
