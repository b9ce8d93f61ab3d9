// Instruction sampling in callbacks: what launches, modules and ends of contexts mean for it.
#include <chrono>
#include <mutex>
#include <thread>

#include "backends/code_images.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/samples/function_cubins.h"
#include "backends/cuda/samples/sampling_state.h"
#include "context/consumer_signal.h"
#include "context/thread_context.h"
#include "symbols/byte_cursor.h"
#include "symbols/elf_image.h"

namespace bragg::pc_sampling {
namespace {

// Larger cubins without lines belong to libraries. Smaller ones may be compiled while the program runs, and then
// several have the same function: they need numbers to be told apart.
constexpr size_t kSmallCubinBytes = 1u << 20;
// The first start on a GPU takes 0.3 to 0.7 s.
constexpr auto kBeginningNap = std::chrono::milliseconds(1);
constexpr int kBeginningNaps = 3000;
constexpr auto kDyingNap = std::chrono::microseconds(100);
constexpr int kDyingNaps = 1000;  // 0.1 s

// Waits until the GPU is sampled: otherwise a short program would be over before.
void await_begin(Sampling& self, uint32_t device) {
  const auto has_begun = [&] { return (self.begun.load() & bit_of(device)) != 0 || !self.active.load(); };
  if (has_begun()) return;
  consumer_signal.wake();
  for (int nap = 0; !has_begun() && nap < kBeginningNaps; ++nap) std::this_thread::sleep_for(kBeginningNap);
  self.begun.fetch_or(bit_of(device));
}

bool knows_lines(const void* cubin, size_t size_bytes) noexcept {
  try {
    return ElfImage({static_cast<const uint8_t*>(cubin), size_bytes}).find(".debug_line") != nullptr;
  } catch (const BadBytes&) {
    return false;  // the driver knows formats that we do not
  }
}

}  // namespace

void before_launch(ThreadContext& thread) noexcept {
  Sampling& self = sampling();
  if (!is_wanted() || thread.gated_calls > 0) return;
  await_begin(self, thread.device_contexts[0].device);
  if (!self.is_serialized.load(std::memory_order_relaxed)) return;
  self.launching_alone.lock();
  thread.is_sampled_alone = true;
}

// Takes the samples of this launch: after the next launch CUPTI no longer tells which one they belong to.
void after_launch(ThreadContext& thread) noexcept {
  if (thread.gated_calls > 0) return;
  Sampling& self = sampling();
  {
    const std::lock_guard lock(self.mutex);
    const CuptiCalls calls(self);
    drain_all(self);
  }
  thread.is_sampled_alone = false;
  self.launching_alone.unlock();
}

void note_module(const cupti::ModuleData& module) noexcept {
  if (!is_wanted() || module.cubin == nullptr) return;
  const bool has_lines = knows_lines(module.cubin, module.cubin_size_bytes);
  if (!has_lines && module.cubin_size_bytes > kSmallCubinBytes) return;
  const auto crc_of = cuda_backend::cupti_library().library.function<cupti::CuptiGetCubinCrc>("cuptiGetCubinCrc");
  cupti::CubinCrcParams params{sizeof params, module.cubin_size_bytes, module.cubin, 0};
  if (crc_of == nullptr || crc_of(&params) != cupti::Result::Success) return;
  FunctionCubins::note_cubin(params.crc);
  if (has_lines) CodeImages::instance().keep(params.crc, module.cubin, module.cubin_size_bytes);
}

// The driver is about to destroy it, on a thread that may hold locks of CUPTI: waits for a call that is under way, not
// for ever.
void note_context_end(cuda::Context context) noexcept {
  Sampling& self = sampling();
  if (!is_wanted()) return;
  {
    const std::lock_guard lock(self.dying_mutex);
    self.dying.push_back(context);
  }
  for (int nap = 0; self.calls_cupti.load() && nap < kDyingNaps; ++nap) std::this_thread::sleep_for(kDyingNap);
}

}  // namespace bragg::pc_sampling
