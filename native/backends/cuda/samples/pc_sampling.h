// The instruction sampling of the process: one CUDA context of each GPU, beside the kernel records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/launch/launch_watch.h"
#include "backends/cuda/samples/pc_sampler.h"
#include "backends/instruction_samples.h"

namespace bragg {

class ThreadContext;

}  // namespace bragg

namespace bragg::pc_sampling {

// The options of the first call count until `finish`.
void want(const SamplingOptions& options);
[[nodiscard]] inline bool is_wanted() noexcept {
  return cuda_backend::launch_watch.samples_instructions.load(std::memory_order_relaxed);
}

// Whether any session records.
void set_active(bool on);

// Consumer thread, without a lock that a callback or a control call of the driver waits for: begins to sample contexts
// that are new, and brings what has come. `launches`: of the program so far.
void step(uint64_t launches);
// Waits until everything that was sampled so far has come. Any thread, without such a lock.
void bring();
[[nodiscard]] std::vector<PcSample> take();  // of the program's kernels

// Brings the last samples and ends sampling.
void finish();

// Callbacks. The first launch on a GPU waits until its instructions are sampled; serialized launches wait for each
// other.
void before_launch(ThreadContext& thread) noexcept;
// Of a thread that `is_sampled_alone`.
void after_launch(ThreadContext& thread) noexcept;
void note_module(const cupti::ModuleData& module) noexcept;
void note_context_end(cuda::Context context) noexcept;

void lock_for_fork();
void unlock_after_fork();
void after_fork_in_child();

[[nodiscard]] std::string description_json();  // for META: mode, period, state of each GPU, what was lost
// Samples a context for a moment: "" or why that is not possible, with what to do.
[[nodiscard]] std::string probe(const CuptiLibrary& cupti, cuda::Context context);

}  // namespace bragg::pc_sampling
