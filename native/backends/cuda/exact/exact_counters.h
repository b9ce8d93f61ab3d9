// Hardware counters of single launches, exactly: a launch that is chosen is counted alone by CUPTI's range profiler,
// and its values become metrics of its node.
//
// Threads: those of the program, inside the driver's launch calls, but what is said to be control. While a launch is
// counted its thread alone launches (LaunchGate).
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/driver/cupti_abi.h"
#include "backends/cuda/launch/launch_watch.h"
#include "backends/event_source.h"
#include "backends/instruction_samples.h"
#include "context/thread_context.h"

namespace bragg::exact_counters {

void want(const ExactCounterOptions& options);  // control: a session that wants them begins; the first one decides
[[nodiscard]] inline bool is_wanted() noexcept {
  return cuda_backend::launch_watch.counts_launches.load(std::memory_order_relaxed);
}
void finish();  // control: the last session ends; waits for a launch that is counted

// At the beginning of a call that launches. If the launch is chosen and can be counted, it is from now on.
void before_launch(ThreadContext& thread, uint32_t cbid, const cupti::CallbackData& data, StringId name) noexcept;
[[nodiscard]] inline bool is_counting(const ThreadContext& thread) noexcept {
  return cuda_backend::launch_watch.counting.load(std::memory_order_relaxed) == &thread;
}
// Whether it has no record, as its instructions are counted.
[[nodiscard]] bool is_without_record(const ThreadContext& thread) noexcept;
void note_node(ContextNodes kernel) noexcept;  // of the launch that this thread counts
// At the end of a call that is counted: waits for the kernel and records its values.
void after_launch(ThreadContext& thread, bool has_failed) noexcept;

// Counts by instruction that have come. Threads: any.
[[nodiscard]] std::vector<InstructionCount> take_instructions();

void note_context_end(cuda::Context context) noexcept;
[[nodiscard]] std::string description_json();

void after_fork_in_child();

}  // namespace bragg::exact_counters
