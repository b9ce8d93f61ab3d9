// Launches of an empty kernel through the driver, each with its times, and work of the host in between.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>

namespace {

constexpr int kNoDriver = -1;
constexpr int kWork = 8000;  // steps of a random generator: some 12 us
constexpr char kEmpty[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n";

using Load = int(void** module, const void* image);
using GetFunction = int(void** function, void* module, const char* name);
using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);

struct Step {
  int64_t begin_ns, launched_ns;  // CLOCK_MONOTONIC
};

Launch* launch = nullptr;
void* kernel = nullptr;
volatile uint64_t sink;

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

void work(uint64_t random) {
  for (int i = 0; i < kWork; ++i) random = random * 6364136223846793005u + 1442695040888963407u;
  sink = random;
}

}  // namespace

extern "C" {

// Needs a current context. CUDA's result, or kNoDriver.
int load_empty_kernel() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) return kNoDriver;
  auto* load = reinterpret_cast<Load*>(dlsym(cuda, "cuModuleLoadData"));
  auto* get_function = reinterpret_cast<GetFunction*>(dlsym(cuda, "cuModuleGetFunction"));
  launch = reinterpret_cast<Launch*>(dlsym(cuda, "cuLaunchKernel"));
  void* module = nullptr;
  if (const int result = load(&module, kEmpty)) return result;
  return get_function(&kernel, module, "empty");
}

// How many of `steps` there are when the time is up or the room is used; -1 after a launch that failed.
int64_t take_launches(int64_t until_ns, Step* steps, int64_t room) {
  for (int64_t count = 0; count < room; ++count) {
    const int64_t begin_ns = now_ns();
    if (begin_ns >= until_ns) return count;
    if (launch(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) != 0) return -1;
    steps[count] = {begin_ns, now_ns()};
    work(static_cast<uint64_t>(begin_ns));
  }
  return room;
}
}
