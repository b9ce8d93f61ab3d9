// Settings of the fake driver and the fake CUPTI. Both libraries hold a copy of their own, read from the environment
// when they are loaded: knob `kernel_ns` from BRAGG_FAKE_KERNEL_NS. bragg_fake_set on libcuda.so.1 sets both copies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bragg::fake {

enum class Knob : uint32_t {
  // The virtual GPU.
  Devices,       // number of devices
  CallNs,        // virtual time one driver call takes on its thread
  KernelNs,      // duration of a kernel that was given none
  ModuleLoadMs,  // how long cuModuleLoadData takes at least, unless this is set to less meanwhile
  VaryNs,        // kernels last up to this much longer, by a fixed pattern
  RealClock,     // 1: CLOCK_REALTIME instead of virtual time (also BRAGG_FAKE_CLOCK=real)
  // How CUPTI works.
  CompletionOrder,  // 1: records in order of completion; 0: in order of launch; -1: as the emulated version (from 13.0:
                    // 0)
  FlushOnCaller,    // 1: cuptiActivityFlushAll delivers on the calling thread instead of the worker
  FlushDelayMs,     // how long cuptiActivityFlushAll takes
  WaitingFlushMs,   // a flush that comes sooner after the one before shows that the tool waits for the GPU, so virtual
                    // time jumps to the end of the work; 0: never. Without a call of the driver in between it may be 20
                    // times as long, for a machine that is busy
  HardwareTrace,    // 1: another tool has switched the hardware event system on: flushing in the background crashes
  LateMs,           // 0: what cuptiUnsubscribe leaves undelivered waits for a flush; else it comes so much later
  SlotTaken,        // 1: another tool, BRAGG_FAKE_SLOT_HOLDER, holds the subscription
  NoSharing,        // 1: the driver is too old for several subscribers
  CountersBusy,     // 1: another process uses the counters of all GPUs
  SampleBuffer,     // instruction samples that the GPU's buffer holds; 0: as many as the configured bytes
  PmBuffer,         // samples of counters that the GPU's buffer holds; 0: as many as the configured bytes
  PmDecodeNs,       // CPU time that a sample takes to be decoded
  PmConfigMs,       // time that configuring a session takes: 67 to 200 were seen
  RangePassMetrics,  // metrics of ranges that fit one pass; 0: all
  // What NVML tells.
  NvmlPowerMw,
  NvmlSmMhz,
  NvmlReasons,  // bits
  NvmlSlowMs,   // what each call takes
  NvmlBusyUs,   // of CPU time
  // Faults in every n-th record of a kernel, copy or set; 0: never.
  DropEvery,
  DuplicateEvery,
  ReorderEvery,  // swapped with the next record of its buffer
  ZeroCorrelationEvery,
  ZeroTimestampsEvery,
  UnknownEndEvery,  // end 0
  EndBeforeStartEvery,
  ForeignEvery,  // follows a record of a kind that bragg does not know
  kCount,
};

extern std::atomic<int64_t> knob_values[static_cast<size_t>(Knob::kCount)];

[[nodiscard]] inline int64_t knob(Knob which) noexcept {
  return knob_values[static_cast<size_t>(which)].load(std::memory_order_relaxed);
}
// As many milliseconds as a knob says, which may be set to less meanwhile.
void take_time(Knob milliseconds);
void take_cpu_time(int64_t ns);
// False if there is no knob of that name.
bool set_knob(std::string_view name, int64_t value) noexcept;
extern std::atomic<bool> record_faults_on;  // one of the record faults is: the hot path asks only this

// Calls that fail: BRAGG_FAKE_FAIL="cuptiActivityEnable=35,cuLaunchKernel=719".
void set_failure(std::string_view call, uint32_t result);
extern std::atomic<bool> failures_on;
[[nodiscard]] uint32_t ordered_failure(std::string_view call);
// 0: the call works.
[[nodiscard]] inline uint32_t failure(std::string_view call) {
  return failures_on.load(std::memory_order_acquire) ? ordered_failure(call) : 0;
}

// BRAGG_FAKE_<name>, or `fallback`.
[[nodiscard]] std::string setting(const char* name, const char* fallback);

}  // namespace bragg::fake
