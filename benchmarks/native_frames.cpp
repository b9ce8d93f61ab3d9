// A program as deep as PyTorch is below an operator: launches from two places, 25 and 30 calls below the caller.
#include <dlfcn.h>

#include <chrono>

namespace {

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);
Launch launch;

template <int Depth>
[[gnu::noinline]] int call(void* kernel) {
  int result = 0;
  if constexpr (Depth == 0) {
    result = launch(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
  } else {
    result = call<Depth - 1>(kernel);
  }
  asm volatile("" : "+r"(result));  // the call is not the last thing that is done
  return result;
}

}  // namespace

// ns for a launch.
extern "C" double launch_deeply(void* kernel, int launches) {
  launch = reinterpret_cast<Launch>(dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) (void)(i % 2 == 0 ? call<25>(kernel) : call<30>(kernel));
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / launches;
}
