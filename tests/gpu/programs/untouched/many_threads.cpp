// 96 threads launch on streams of their own; prints how many launches there were, and how long the worst took.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

void* driver = dlopen("libcuda.so.1", RTLD_NOW);
template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  const int result = reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name))(arguments...);
  if (result == 0) return;
  std::fprintf(stderr, "%s: %d\n", name, result);
  std::exit(1);
}

constexpr int kThreads = 96, kLaunches = 5000;
constexpr const char* kNothing = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";
using Clock = std::chrono::steady_clock;

}  // namespace

int main() {
  int device = 0;
  void *context = nullptr, *module = nullptr, *kernel = nullptr;
  call("cuInit", 0u);
  call("cuDeviceGet", &device, 0);
  call("cuDevicePrimaryCtxRetain", &context, device);
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadData", &module, static_cast<const void*>(kNothing));
  call("cuModuleGetFunction", &kernel, module, "nothing");
  std::vector<double> worst_ms(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      void* stream = nullptr;
      call("cuCtxSetCurrent", context);
      call("cuStreamCreate", &stream, 1u);
      for (int launch = 0; launch < kLaunches; ++launch) {
        const auto start = Clock::now();
        call("cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, nullptr, nullptr);
        const double took_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
        if (launch > 100) worst_ms[i] = std::max(worst_ms[i], took_ms);
        if (launch % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      call("cuStreamSynchronize", stream);
    });
  for (auto& thread : threads) thread.join();
  std::sort(worst_ms.begin(), worst_ms.end());
  std::printf("launches %d\nworst_ms %.3f median %.3f\n", kThreads * kLaunches, worst_ms.back(),
              worst_ms[kThreads / 2]);
  return 0;
}
