// Preloaded, it switches sampling off and on within a session: `dlsym` hands out wrappers of the calls that sample.
// While it is off, CUPTI's sampler is stopped, and the threads that decode samples or ask NVML wait in their call.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/driver/cupti_pm_sampling.h"

namespace {

namespace cupti = bragg::cupti;

constexpr int32_t kNoSampler = -1;

struct Switch {
  int64_t begin_ns, end_ns;  // CLOCK_MONOTONIC
  int32_t is_on, result;     // CUPTI's, or kNoSampler
};

std::atomic<bool> is_on{true}, is_switching{false};
std::atomic<int64_t> waits{0};
std::thread switcher;
std::vector<Switch> switches;

// Guards the sampler and CUPTI's calls for it.
std::recursive_mutex mutex;
void* sampler = nullptr;
cupti::CuptiPmSamplingStart* real_start = nullptr;
cupti::CuptiPmSamplingStop* real_stop = nullptr;
cupti::CuptiPmSamplingDisable* real_disable = nullptr;
cupti::CuptiPmSamplingDecodeData* real_decode = nullptr;

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

void wait_until_on() {
  if (is_on) return;
  ++waits;
  while (!is_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

cupti::Result start(cupti::PmSamplerParams* params) {
  const std::lock_guard lock(mutex);
  const cupti::Result result = real_start(params);
  if (result == cupti::Result::Success) sampler = params->sampler;
  return result;
}

cupti::Result stop(cupti::PmSamplerParams* params) {
  const std::lock_guard lock(mutex);
  sampler = nullptr;
  return real_stop(params);
}

cupti::Result disable(cupti::PmSamplerParams* params) {
  const std::lock_guard lock(mutex);
  sampler = nullptr;
  return real_disable(params);
}

cupti::Result decode(cupti::PmDecodeParams* params) {
  wait_until_on();
  const std::lock_guard lock(mutex);
  return real_decode(params);
}

// NVML's calls have up to six integers or pointers.
using Question = long(long, long, long, long, long, long);
constexpr std::string_view kQuestions[] = {
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetSamples",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetTotalEnergyConsumption",
};
constexpr size_t kQuestionCount = std::size(kQuestions);
std::array<Question*, kQuestionCount> real_questions{};

template <size_t kIndex>
long ask(long a, long b, long c, long d, long e, long f) {
  wait_until_on();
  return real_questions[kIndex](a, b, c, d, e, f);
}

template <size_t... kIndices>
constexpr std::array<Question*, kQuestionCount> wrappers(std::index_sequence<kIndices...>) {
  return {&ask<kIndices>...};
}
constexpr std::array kWrappers = wrappers(std::make_index_sequence<kQuestionCount>());

template <class Function>
void* wrapped(Function*& real, void* found, Function& wrapper) {
  real = reinterpret_cast<Function*>(found);
  return reinterpret_cast<void*>(&wrapper);
}

void* wrapper_of(std::string_view name, void* found) {
  if (name == "cuptiPmSamplingStart") return wrapped(real_start, found, start);
  if (name == "cuptiPmSamplingStop") return wrapped(real_stop, found, stop);
  if (name == "cuptiPmSamplingDisable") return wrapped(real_disable, found, disable);
  if (name == "cuptiPmSamplingDecodeData") return wrapped(real_decode, found, decode);
  for (size_t i = 0; i < kQuestionCount; ++i)
    if (name == kQuestions[i]) return wrapped(real_questions[i], found, *kWrappers[i]);
  return found;
}

using Dlsym = void*(void*, const char*);
Dlsym* real_dlsym() {
  static Dlsym* const real = [] {
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"})
      if (void* const found = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Dlsym*>(found);
    return static_cast<Dlsym*>(nullptr);
  }();
  return real;
}

void turn(bool on) {
  Switch done{now_ns(), 0, on, kNoSampler};
  {
    const std::lock_guard lock(mutex);
    cupti::PmSamplerParams params{sizeof params, nullptr, sampler};
    if (sampler != nullptr) done.result = static_cast<int32_t>(on ? real_start(&params) : real_stop(&params));
  }
  is_on = on;
  done.end_ns = now_ns();
  switches.push_back(done);
}

}  // namespace

extern "C" {

void* dlsym(void* handle, const char* name) noexcept {
  void* const found = real_dlsym()(handle, name);
  return found == nullptr ? nullptr : wrapper_of(name, found);
}

void begin_switching(int64_t period_ns) {
  switches.clear();
  waits = 0;
  is_switching = true;
  switcher = std::thread([period_ns] {
    for (bool on = false; is_switching; on = !on) {
      turn(on);
      std::this_thread::sleep_for(std::chrono::nanoseconds(period_ns));
    }
    if (!is_on) turn(true);
  });
}

// How often it was switched; `found` stays valid until it begins again.
int64_t end_switching(const Switch** found) {
  is_switching = false;
  switcher.join();
  *found = switches.data();
  return static_cast<int64_t>(switches.size());
}

// How many calls waited while it was off.
int64_t switch_waits() { return waits; }
}
