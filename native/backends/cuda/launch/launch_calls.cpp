#include "backends/cuda/launch/launch_calls.h"

#include "context/call_names.h"

namespace bragg::cuda_backend {
namespace {

std::array<uint8_t, kCalls> numbers;

}  // namespace

uint8_t number_of_call(uint32_t cbid) noexcept { return numbers[kCallOf[cbid] - 1u]; }

void number_calls() {
  for (size_t i = 0; i < kCalls; ++i) numbers[i] = CallNames::instance().number_of(call_at(i).name);
}

}  // namespace bragg::cuda_backend
