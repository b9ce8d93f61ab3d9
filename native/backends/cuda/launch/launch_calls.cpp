#include "backends/cuda/launch/launch_calls.h"

#include "context/call_names.h"

namespace bragg::cuda_backend {
namespace {

std::array<uint8_t, kCalls> numbers;

}  // namespace

uint8_t number_of(const LaunchCall& call) noexcept { return numbers[call.number - 1u]; }

void number_calls() {
  for (size_t i = 0; i < kCalls; ++i) numbers[i] = CallNames::instance().number_of(call_at(i).name);
}

}  // namespace bragg::cuda_backend
