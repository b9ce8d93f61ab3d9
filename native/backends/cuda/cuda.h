// The CUDA backend: CUPTI callbacks that note who launched, and activity buffers that say what ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/driver/cupti_library.h"
#include "backends/device_event.h"
#include "context/recording_state.h"

namespace bragg::cuda_backend {

enum class State : uint8_t {
  Off,       // no session wants it
  Waiting,   // CUDA is not up in this process yet
  Attached,  // subscribed
  Failed,    // `reason` says why; scopes and host times are still recorded
};

// Threads: control calls under the recorder's control lock; `gather` and `take` on the consumer side.

// Attaches if CUDA is up, else waits for InitializeInjection. `candidates`: libcupti paths, ':'-separated.
void start(const std::string& candidates);
// Inside cuInit, from the driver's injection hook.
void on_cuda_initialized();
// A process whose injection slot another tool owns is polled instead: attaches once CUDA is up.
void poll();
// Records are produced or not; cheap, keeps the subscription. `api_level`: calls that become nodes while they are.
void set_collecting(bool on, ApiLevel api_level);
// While it exists, what is launched has no record of its kernel. One at a time. Threads: any, also in driver callbacks.
class NoKernelRecords {
 public:
  NoKernelRecords();
  ~NoKernelRecords();
  NoKernelRecords(const NoKernelRecords&) = delete;
  NoKernelRecords& operator=(const NoKernelRecords&) = delete;
};
// Before `start`, and again whenever a session starts. Whole graphs are recorded instead of their nodes as long as all
// want it: once one wanted nodes, or a graph was launched that had been instantiated before, it is nodes until
// `detach`, which is said on stderr.
void set_graph_level(bool wanted);
void follow_memory();  // calls that take memory and give it back, from now on or once CUDA is there
// Activity buffers belong to whoever registered last. After another user of them in this process (torch.profiler) is
// done, this makes records come here again.
void reclaim_records();
// Brings the buffers whose records are all complete. Never waits for the GPU, but CUPTI may hang in it. Forced, it
// brings all others, too: what still runs then has no usable end and no further record, so that is for the very end.
void flush(bool is_forced = false);
// False while the hardware event system is on, which bragg never switches on: such a flush may damage CUPTI's heap.
[[nodiscard]] bool may_flush_in_background();
// Unsubscribes; the library stays loaded. Never cuptiFinalize: it poisons CUPTI for the rest of the process.
void detach();
void lock_for_fork();
void unlock_after_fork();
// In a forked child, which holds these locks, CUDA cannot be used if the parent had it up.
void after_fork_in_child();

// Takes the oldest buffers that have come; `take` walks them. True: there may be more.
inline constexpr size_t kBuffersAtOnce = 8;  // 38,000 kernels: some 10 ms under the recorder's lock
void gather();
bool take(const std::function<void(const DeviceEvent&)>& take);

[[nodiscard]] State state();
[[nodiscard]] uint64_t dropped_records();  // since attachment

struct KnownContext {
  cuda::Context handle;
  uint32_t device;
};
// Those that something was launched in, until they are destroyed. Threads: any.
[[nodiscard]] std::vector<KnownContext> contexts();
[[nodiscard]] const CuptiLibrary& cupti_library();  // loaded from attachment on
[[nodiscard]] std::string description_json();       // for META: state, reason, library, versions, dropped records
[[nodiscard]] std::string devices_json();           // "" before `note_devices`
// Asks the driver for them, once it is attached. Not while the work lock is held.
void note_devices();
// Reads the clock of CUPTI's records every few seconds.
void note_clock();
// Initialises CUDA, subscribes and unsubscribes: what a session would find. Call it in a separate process.
[[nodiscard]] std::string probe_json(const std::string& candidates);

}  // namespace bragg::cuda_backend
