// The fake driver by itself.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {

SCENARIO(calls_before_cuInit_fail) {
  const Program program(false);
  int32_t count = 0;
  CHECK_EQ(program.call("cuDeviceGetCount", &count), cuda::Result::NotInitialized);
  CHECK_EQ(program.call("cuCtxSynchronize"), cuda::Result::NotInitialized);
  program.must("cuInit", 0u);
  program.must("cuDeviceGetCount", &count);
  CHECK_EQ(count, 2);
}

SCENARIO(devices_are_described) {
  const Program program;
  char name[32] = "";
  int32_t multiprocessors = 0;
  program.must("cuDeviceGetName", static_cast<char*>(name), 32, cuda::Device{1});
  program.must("cuDeviceGetAttribute", &multiprocessors, cuda::DeviceAttribute::MultiprocessorCount, cuda::Device{1});
  CHECK_EQ(std::strcmp(name, "Virtual GPU 1"), 0);
  CHECK_EQ(multiprocessors, 132);
  CHECK_EQ(program.call("cuDeviceGetAttribute", &multiprocessors, cuda::DeviceAttribute::ClockKhz, cuda::Device{2}),
           cuda::Result::InvalidDevice);
}

SCENARIO(no_device, {"DEVICES", "0"}) {
  const Program program(false);
  CHECK_EQ(program.call("cuInit", 0u), cuda::Result::NoDevice);
}

SCENARIO(launch_without_context_fails) {
  const Program program(false);
  program.must("cuInit", 0u);
  CHECK_EQ(program.call("cuLaunchKernel", program.function("k"), 1u, 1u, 1u, 1u, 1u, 1u, 0u, cuda::Stream{nullptr},
                        static_cast<void**>(nullptr), static_cast<void**>(nullptr)),
           cuda::Result::InvalidContext);
}

SCENARIO(ordered_failure_of_a_driver_call, {"FAIL", "cuStreamCreate=2,cuCtxSynchronize=719"}) {
  const Program program;
  cuda::Stream stream = nullptr;
  CHECK_EQ(program.call("cuStreamCreate", &stream, 0u), cuda::Result::OutOfMemory);
  CHECK_EQ(program.call("cuCtxSynchronize"), cuda::Result::LaunchFailed);
}

SCENARIO(child_of_an_initialised_process_gets_errors) {
  const Program program;
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = program.call("cuCtxSynchronize") == cuda::Result::NotInitialized &&
                         program.call("cuInit", 0u) == cuda::Result::NotInitialized;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  program.synchronize();
}

SCENARIO(cupti_in_a_forked_child_gives_errors) {
  const Program program;
  const Profiler profiler;
  CHECK_EQ(profiler.call<cupti::CuptiActivityEnable>("cuptiActivityEnable", cupti::Kind::Memcpy), Profiler::kOk);
  const pid_t child = fork();
  if (child == 0) {
    const auto flush = profiler.call<cupti::CuptiActivityFlushAll>("cuptiActivityFlushAll", 0u);
    _exit(flush == cupti::Result::Unknown ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

SCENARIO(child_forked_before_cuInit_may_initialise) {
  const Program program(false);
  const pid_t child = fork();
  if (child == 0) _exit(program.call("cuInit", 0u) == cuda::Result::Success ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

SCENARIO(virtual_time_passes_by_calls_and_waits, {"CALL_NS", "10"}, {"VARY_NS", "0"}) {
  const Program program;
  const cuda::Stream stream = program.stream();
  cuda::Event start = nullptr, end = nullptr;
  program.must("cuEventCreate", &start, 0u);
  program.must("cuEventCreate", &end, 0u);
  program.must("cuEventRecord", start, stream);
  const cuda::Function kernel = program.function("k", 1'000'000);
  program.launch(kernel, stream);
  program.launch(kernel, stream);
  program.must("cuEventRecord", end, stream);
  CHECK_EQ(program.call("cuEventQuery", end), cuda::Result::NotReady);
  program.must("cuStreamSynchronize", stream);
  CHECK_EQ(program.call("cuEventQuery", end), cuda::Result::Success);
  float elapsed_ms = 0;
  program.must("cuEventElapsedTime", &elapsed_ms, start, end);
  CHECK(elapsed_ms > 1.9999f && elapsed_ms < 2.0002f);
}

SCENARIO(real_time_is_waited_for, {"CLOCK", "real"}) {
  const Program program;
  timespec before{}, after{};
  clock_gettime(CLOCK_REALTIME, &before);
  program.launch(program.function("k", 20'000'000));
  program.synchronize();
  clock_gettime(CLOCK_REALTIME, &after);
  const double waited_ms = 1e3 * static_cast<double>(after.tv_sec - before.tv_sec) +
                           1e-6 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  CHECK(waited_ms >= 20);
}

}  // namespace bragg::fake::selftest
