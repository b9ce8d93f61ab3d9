// Launches that the driver refuses are not work of the GPU.
#include <cstdint>

#include "api/bragg_core.h"
#include "check.h"
#include "recording.h"

namespace {

using bragg::test::device;
using bragg::test::Recording;
namespace cuda = bragg::cuda;

constexpr uint32_t kTooManyResources = 701;

cuda::Result launch(cuda::Function kernel, cuda::Stream stream) {
  using Launch = cuda::Result(cuda::Function, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                              cuda::Stream, void**, void**);
  return bragg::test::in_fake<Launch>("cuLaunchKernel")(kernel, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr);
}

TEST(a_launch_that_the_driver_refuses_is_counted_apart) {
  device().use();
  const cuda::Stream stream = device().stream();
  const cuda::Function kernel = device().kernel("k");
  const uint32_t metric = bragg_metric("flops of a launch", "1", BRAGG_INCLUSIVE, 0);
  const uint64_t flops = 5;
  const Recording recording("failed launches", true);
  for (int i = 0; i < 10; ++i) {
    bragg_expect_launch(kernel, nullptr, &metric, &flops, 1);
    device().launch(kernel, stream);
  }
  bragg::test::fail_calls("cuLaunchKernel", kTooManyResources);
  for (int i = 0; i < 7; ++i) {
    bragg_expect_launch(kernel, nullptr, &metric, &flops, 1);
    CHECK(launch(kernel, stream) == static_cast<cuda::Result>(kTooManyResources));
  }
  bragg::test::fail_calls("cuLaunchKernel", 0);
  device().must("cuStreamSynchronize", stream);
  recording.flush();
  CHECK_EQ(recording.count("launches"), 10u);
  CHECK_EQ(recording.count("failed_launches"), 7u);
  CHECK_EQ(recording.count("kernels"), 10u);
  CHECK_EQ(recording.value(metric).count, 10u);
}

}  // namespace
