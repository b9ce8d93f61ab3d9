// Work on the virtual GPUs: operations of one stream run one after another, streams and devices overlap without limit.
#pragma once

#include "driver/driver_call.h"
#include "driver/handles.h"

namespace bragg::fake {

// The stream a handle means: null and the two special handles are the context's default stream.
[[nodiscard]] cuda::StreamHandle& resolve(cuda::Context context, cuda::Stream stream) noexcept;
[[nodiscard]] Place place_of(const cuda::StreamHandle& stream) noexcept;

// Kernels: as set, plus a fixed pattern; copies 500 ns + 20 B/ns; sets 300 ns + 100 B/ns.
[[nodiscard]] uint64_t duration_ns(const Operation& operation) noexcept;
// Puts work at the end of a stream's queue; the stream's mutex is held.
[[nodiscard]] Span enqueue(cuda::StreamHandle& stream, uint64_t duration_ns) noexcept;

// Work gets its place on the timeline, and the tool hears of it, while one of these exists: a thread may lose its core
// in between, and a GPU counts all that it executes.
class Placing {
 public:
  Placing();
  ~Placing();
  Placing(const Placing&) = delete;
  Placing& operator=(const Placing&) = delete;

 private:
  uint64_t began_ns_;
};
// The tool has heard of all work that begins earlier; now, where no thread places work.
[[nodiscard]] uint64_t all_placed_until_ns();

// A launch, copy or set as the driver takes it: a graph node while the stream is being captured, else work.
cuda::Result submit(ApiCall& call, cuda::Stream stream, const Operation& operation);

// Calls that could wait for the device fail while a stream is being captured, unless their thread has said that it
// knows.
inline std::atomic<uint32_t> open_captures{0};
inline thread_local cuda::CaptureMode capture_mode = cuda::CaptureMode::Global;
[[nodiscard]] inline bool may_wait() noexcept {
  return open_captures.load() == 0 || capture_mode == cuda::CaptureMode::Relaxed;
}

void wait_for(cuda::StreamHandle& stream);
void wait_for(cuda::ContextHandle& context);

}  // namespace bragg::fake
