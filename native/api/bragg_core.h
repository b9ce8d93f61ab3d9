// The C ABI of libbragg_core.so: what the Python extension and the CUDA driver call.
#pragma once

#include <stdint.h>

#define BRAGG_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

enum bragg_backend { BRAGG_AUTO = 0, BRAGG_CUDA = 1, BRAGG_CPU = 2 };

enum bragg_sampling {
  BRAGG_SAMPLE_OFF = 0,
  BRAGG_SAMPLE_CONTINUOUS = 1,
  BRAGG_SAMPLE_WINDOWS = 2,
  BRAGG_SAMPLE_SERIALIZED = 3
};

// Which calls of the CUDA runtime and driver become nodes of the tree. A process records the same ones for all of its
// sessions: what any of those that are active asks for.
enum bragg_gpu_api { BRAGG_GPU_API_OFF = 0, BRAGG_GPU_API_SYNC = 1, BRAGG_GPU_API_ALL = 2 };

struct bragg_python_frame {
  const void* code;
  const void* frame;
  uint32_t instruction_offset;  // bytes from the first instruction
};

#define BRAGG_MAX_SEEN_FRAMES 8

// What a thread did in the `elapsed_ns` until `taken_ns`, in `waited_ns` of which it waited.
struct bragg_host_sample {
  int64_t taken_ns;
  int64_t elapsed_ns;
  int64_t waited_ns;
  // The Python frames that it was in, innermost first, each called by the next one. It is where it is now if none of
  // them still runs.
  const struct bragg_python_frame* seen;
  uint32_t n_seen;  // at most BRAGG_MAX_SEEN_FRAMES
};

// The innermost scope or operator that a thread is in: nodes of the tree; 0, 0: in none.
struct bragg_open_entry {
  uint32_t shadow;
  uint32_t python;
};

// What another thread than the main one ran in Python: `ran_ns` of the processor's time until `taken_ns`.
struct bragg_thread_sample {
  uint32_t thread;           // as the system numbers it
  const void* thread_state;  // null: it has ended
  int64_t taken_ns;
  int64_t ran_ns;
  struct bragg_open_entry entry;
  const struct bragg_python_frame* seen;  // as of the main thread
  uint32_t n_seen;
};

// Telemetry of long runs that takes at most 0.1 % of a core.
#define BRAGG_TELEMETRY_THRIFTY (-1.0)

struct bragg_session_options {
  const char* part_path;
  const char* meta_json;         // a JSON object
  const char* cupti_candidates;  // ':'-separated paths
  int backend;                   // enum bragg_backend
  int python_context;
  int native_context;  // the C and C++ functions that launches come from; with python_context
  int trace;
  int graph_level;  // one record for each launch of a CUDA graph, instead of its nodes'
  int gpu_api;      // enum bragg_gpu_api
  uint32_t flush_interval_ms;
  uint32_t tree_limit_mb;        // memory that call paths may take, 256 bytes each; 0: 1 GB
  int sampling;                  // enum bragg_sampling: of instructions
  uint32_t sample_period;        // 2^n cycles; 0: chosen here
  uint32_t sample_interval_us;   // of the host, by the Python binding; 0: none
  double sample_budget;          // of BRAGG_SAMPLE_WINDOWS: share of the program's time that sampling may cost
  char counters[512];            // of the hardware, ','-separated; "": none
  uint32_t counter_interval_us;  // 0: chosen here
  char exact_kernels[512];       // whose launches are counted exactly: a POSIX extended regular expression; "": none
  char exact_metrics[512];       // as `counters`
  uint32_t exact_launches;       // of each kernel and shape
  double telemetry_hz;           // samples of power, clocks and load in a second; 0: none; or BRAGG_TELEMETRY_THRIFTY
  int memory;                    // follow what PyTorch's allocator hands out on GPUs
  int nccl;                      // take what NCCL tells its profiler plug-in
  int no_idle;                   // leave out what devices waited for
  uint32_t rotate_interval_ms;  // the next phase begins by itself, in <part_path without .part>.part_<n>.part; 0: never
};

// Options out of a JSON object, as `bragg.record.config` writes it; those that it does not name keep their values. 0,
// or -1: `problem` (NUL-terminated) says what is wrong.
BRAGG_EXPORT int bragg_read_options(const char* json, struct bragg_session_options* options, char* problem,
                                    uint32_t problem_size);
// A session >= 0, or -1: `os_error` is the errno of the capture file, else `reason` (NUL-terminated) says why.
BRAGG_EXPORT int bragg_session_start(const struct bragg_session_options* options, int* os_error, char* reason,
                                     uint32_t reason_size);
BRAGG_EXPORT void bragg_session_activate(int session);
BRAGG_EXPORT void bragg_session_deactivate(int session, int flush);
BRAGG_EXPORT void bragg_session_flush(int session);
// The next phase, in a capture of its own; `end_meta_json` describes the end of the one before, which completes its
// capture as soon as the records of its launches have come. Returns as the start does.
BRAGG_EXPORT int bragg_session_advance(int session, const char* part_path, const char* meta_json,
                                       const char* end_meta_json, int* os_error, char* reason, uint32_t reason_size);
BRAGG_EXPORT void bragg_session_stop(int session, const char* meta_json);
// Finish all sessions before this signal ends the process. Not zero: it will; zero: the program handles or ignores it.
BRAGG_EXPORT int bragg_finish_on_signal(int number);

// Tells of each process group how many collectives this process has entered, the name of the last one, and when that
// was, CLOCK_MONOTONIC. Texts stay valid.
BRAGG_EXPORT void bragg_collective_progress(void (*tell)(void* context, const char* group, const char* last,
                                                         uint64_t count, int64_t at_ns),
                                            void* context);
// Writes a JSON object of at most `size` bytes with its NUL; returns the bytes it needs.
BRAGG_EXPORT uint32_t bragg_session_statistics(int session, char* json, uint32_t size);

BRAGG_EXPORT uint32_t bragg_scope_frame(const char* name, uint32_t size);
BRAGG_EXPORT uint32_t bragg_operator_frame(const char* name, uint32_t size);  // entered and left as scopes are
BRAGG_EXPORT void bragg_scope_enter(uint32_t frame);
BRAGG_EXPORT void bragg_scope_exit(void);
// Scopes of an owner, which may end in any order: those of a generator that is closed late, or of an object that
// another thread has got.
BRAGG_EXPORT void bragg_scope_enter_of(uint32_t frame, const void* owner);
BRAGG_EXPORT void bragg_scope_exit_of(const void* owner);
// The same in programs with tasks, such as asyncio's: the scope is open for the running task alone. GIL held. Not zero:
// the scope that tasks inherit from this one has changed; `bragg_inherited_scope` returns it, 0: none.
BRAGG_EXPORT int bragg_task_scope_enter(uint32_t frame, const void* owner);
BRAGG_EXPORT int bragg_task_scope_exit(const void* owner);
BRAGG_EXPORT uint64_t bragg_inherited_scope(void);
// What is known of a frame beside its name.
BRAGG_EXPORT void bragg_describe_frame(uint32_t frame, const char* key, const char* value);
BRAGG_EXPORT uint32_t bragg_state_frame(const char* name, uint32_t size);
BRAGG_EXPORT void bragg_state_enter(uint32_t frame);
BRAGG_EXPORT void bragg_state_exit(void);
// A kernel that this thread executes itself, without a GPU: measured as scopes are, and a leaf of the call path.
BRAGG_EXPORT uint32_t bragg_host_kernel_frame(const char* name, uint32_t size);
BRAGG_EXPORT void bragg_host_kernel_enter(uint32_t frame);
BRAGG_EXPORT void bragg_host_kernel_exit(void);
BRAGG_EXPORT uint32_t bragg_context_depth(void);
BRAGG_EXPORT void bragg_lend_context(void);
BRAGG_EXPORT void bragg_return_context(void);
// Whether NVTX ranges and marks that begin from now on are recorded; they are at first.
BRAGG_EXPORT void bragg_record_nvtx(int wanted);
// From now on operators that autograd's engine runs are shown below their forward operators. `library`: the loaded one
// that has the engine; offsets: where its nodes keep their number and that of their thread. Returns 0 if the library
// lacks a function, or if this thread's number there is not `thread_number`.
BRAGG_EXPORT int bragg_follow_autograd(const char* library, int counts_references_itself, uint32_t number_offset,
                                       uint32_t thread_offset, uint64_t thread_number);
// Tries whether PyTorch's library calls observers as expected, on one operator that this thread runs between the two
// calls. `reason`: what is not as expected; empty: nothing.
BRAGG_EXPORT void bragg_begin_operator_trial(const char* library, char* reason, uint32_t reason_size);
BRAGG_EXPORT void bragg_end_operator_trial(const char* operator_name, char* reason, uint32_t reason_size);
// Tries whether operators pass their tensors as expected, on one whose inputs are a list of two tensors and a number.
// Arrays: the addresses of a tensor, its storage and its data. The end returns 0 if they do not.
BRAGG_EXPORT void bragg_begin_input_trial(const uint64_t first[3], const uint64_t second[3]);
BRAGG_EXPORT int bragg_end_input_trial(const uint64_t output[3]);
// From now on the operators of all threads are recorded through observers; a trial must have succeeded before. Returns
// 0 if shapes are wanted and cannot be had.
BRAGG_EXPORT int bragg_observe_operators(int with_shapes);
BRAGG_EXPORT void bragg_stop_observing_operators(void);
// What PyTorch pays for one operator because it is observed, outside the core, ns.
BRAGG_EXPORT void bragg_set_operator_cost(uint32_t ns);
// Whether ranges of XLA are shown as modules, scopes and operations from now on; they are not at first.
BRAGG_EXPORT void bragg_read_xla(int wanted);
// One host sample of this thread, which stands for the time since the one before. Taking it held the thread up for
// `interruption_ns`.
BRAGG_EXPORT void bragg_sample(const struct bragg_host_sample* sample, int64_t interruption_ns);
// GIL: the thread's frames stand still. 0: no session wants it, or the thread is in no Python function.
BRAGG_EXPORT int bragg_sample_thread(const struct bragg_thread_sample* sample);
BRAGG_EXPORT struct bragg_open_entry bragg_open_entry_of(uint32_t thread);
BRAGG_EXPORT int bragg_is_own_thread(uint32_t thread);
BRAGG_EXPORT int64_t bragg_waits_if_runnable(uint32_t thread);  // how often it waited; -1: it does, or is not known

enum bragg_metric_kind { BRAGG_INCLUSIVE = 0, BRAGG_EXCLUSIVE = 1, BRAGG_PROPERTY = 2 };

// The id of a metric, or 0xFFFFFFFF: the name has another unit, kind (enum bragg_metric_kind) or type already.
BRAGG_EXPORT uint32_t bragg_metric(const char* name, const char* unit, int kind, int is_float);
// One value at this thread's innermost open scope, operator or state, else where it is. `bits`: of an int64 or a
// double. `length` 0: a scalar, else element `index`.
BRAGG_EXPORT void bragg_add_value(uint32_t metric, uint64_t bits, uint32_t index, uint32_t length);

// In the order in which the GPU side knows them.
enum bragg_dtype {
  BRAGG_F16,
  BRAGG_BF16,
  BRAGG_F32,
  BRAGG_F64,
  BRAGG_I8,
  BRAGG_I16,
  BRAGG_I32,
  BRAGG_I64,
  BRAGG_U8,
  BRAGG_BOOL
};

// Numbers in GPU memory, at this thread's context: read by a kernel that is put on `stream` (a CUstream). It waits for
// nothing, and the memory may be freed in the order of the stream. `length` as above; `stride` in elements. 0, or -1
// and the NUL-terminated `reason`.
BRAGG_EXPORT int bragg_add_device_value(uint32_t metric, uint64_t address, int dtype, uint32_t length, int64_t stride,
                                        void* stream, char* reason, uint32_t reason_size);

// Launches of a CUfunction are shown as `name` from now on, if its symbol is `symbol` or that is empty. `attributes`:
// 2 * `attribute_count` texts, each a key and its value. `name` nullptr: forget it.
BRAGG_EXPORT void bragg_name_kernel(const void* function, const char* name, const char* symbol,
                                    const char* const* attributes, uint32_t attribute_count);
// This thread's next launch is of `function`: shown as `name` unless that is nullptr, with values for its node.
BRAGG_EXPORT void bragg_expect_launch(const void* function, const char* name, const uint32_t* metrics,
                                      const uint64_t* bits, uint32_t count);

// Time since the epoch, ns, by the recorder's clock: nobody sets it while the process runs.
BRAGG_EXPORT int64_t bragg_now_ns(void);

// Not zero while a session exists / records.
BRAGG_EXPORT int bragg_has_session(void);
BRAGG_EXPORT int bragg_is_recording(void);

// The library with this function is the interpreter: its own functions are not part of call paths.
BRAGG_EXPORT void bragg_set_interpreter(const void* function);
// Not zero: call paths of native code can be read on this machine.
BRAGG_EXPORT int bragg_can_unwind(void);

// The code object at this address dies: cached paths through it are dropped.
BRAGG_EXPORT void bragg_forget_code(const void* code);
BRAGG_EXPORT const char* bragg_library_path(void);

// While a call of this API waits for the GPU, `look` is called every 50 ms on the caller's thread; any result but 0
// ends the wait.
BRAGG_EXPORT void bragg_set_interrupt_look(int (*look)(void));
// The process was told to end: from now on nothing waits long for the GPU.
BRAGG_EXPORT void bragg_hurry(void);
// The calling thread is the recorder's: the process ends when the program's own threads have.
BRAGG_EXPORT void bragg_note_own_thread(void);

// Before and after another tool of this process uses CUPTI's buffers: brings the records of what was launched, and
// takes the buffers back.
BRAGG_EXPORT void bragg_flush_device_records(void);
BRAGG_EXPORT void bragg_reclaim_device_records(void);

// Initialises CUDA and CUPTI and says what a session would find: a JSON object, sized as above.
BRAGG_EXPORT uint32_t bragg_probe_cuda(const char* cupti_candidates, char* json, uint32_t size);
// As bragg_probe_cuda, for the hardware counters of the first GPU. Takes seconds, each time.
BRAGG_EXPORT uint32_t bragg_list_counters(const char* cupti_candidates, char* json, uint32_t size);

// CUDA_INJECTION64_PATH: the driver calls this inside cuInit.
BRAGG_EXPORT int InitializeInjection(void);

#ifdef __cplusplus
}
#endif
