// A stand-in for the part of libtorch_cpu.so that calls observers, with PyTorch's own names and types: a list of global
// callbacks, one of each thread's, and operators that run them all. `fake_begin` and `fake_end` run one on the thread
// that calls.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#define EXPORTED [[gnu::visibility("default")]]

namespace at {

struct ObserverContext {
  virtual ~ObserverContext() = default;
};

class RecordFunction;

class RecordFunctionCallback {
 public:
  using Start = std::unique_ptr<ObserverContext> (*)(const RecordFunction&);
  using End = void (*)(const RecordFunction&, ObserverContext*);

  Start start_;
  End end_;
  double sampling_prob_ = 1.0;
  std::array<bool, 10> scopes_ = {};
  bool needs_inputs_ = false;
  bool needs_outputs_ = false;
  bool needs_ids_ = false;
};

namespace {

struct Registered {
  uint64_t handle;
  RecordFunctionCallback callback;
};

std::mutex mutex;
std::vector<Registered> global_callbacks;
thread_local std::vector<Registered> local_callbacks;
std::atomic<uint64_t> last_handle{0};

std::vector<Registered> callbacks_now() {
  const std::lock_guard lock(mutex);
  std::vector<Registered> all = global_callbacks;
  all.insert(all.end(), local_callbacks.begin(), local_callbacks.end());
  return all;
}

}  // namespace

class RecordFunction {
 public:
  RecordFunction(const char* name, uint32_t scope, bool is_async)
      : name_(name), has_schema_(scope == kFunction && name_.starts_with("aten::")), is_async_(is_async) {
    for (const Registered& each : callbacks_now())
      if (each.callback.scopes_.at(scope) && !each.callback.needs_inputs_) running_.push_back({each.callback, nullptr});
    for (Running& each : running_) each.context = each.callback.start_(*this);
  }
  ~RecordFunction() {
    for (const Running& each : running_) each.callback.end_(*this, each.context.get());
  }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;

  EXPORTED const char* name() const;
  EXPORTED bool isAsync() const;
  EXPORTED size_t num_outputs() const;  // before it ends: of its schema

 private:
  struct Running {
    RecordFunctionCallback callback;
    std::unique_ptr<ObserverContext> context;
  };
  static constexpr uint32_t kFunction = 0;

  std::string name_;
  bool has_schema_;
  bool is_async_;
  std::vector<Running> running_;
};

const char* RecordFunction::name() const { return name_.c_str(); }
bool RecordFunction::isAsync() const { return is_async_; }
size_t RecordFunction::num_outputs() const { return has_schema_ ? 1 : 0; }

EXPORTED uint64_t addThreadLocalCallback(RecordFunctionCallback callback) {
  local_callbacks.push_back({++last_handle, callback});
  return last_handle;
}

EXPORTED uint64_t addGlobalCallback(RecordFunctionCallback callback) {
  const std::lock_guard lock(mutex);
  global_callbacks.push_back({++last_handle, callback});
  return last_handle;
}

EXPORTED void removeCallback(uint64_t handle) {
  const auto is_it = [handle](const Registered& each) { return each.handle == handle; };
  std::erase_if(local_callbacks, is_it);
  const std::lock_guard lock(mutex);
  std::erase_if(global_callbacks, is_it);
}

}  // namespace at

namespace c10 {

class EXPORTED DebugInfoBase {
 public:
  virtual ~DebugInfoBase() = default;
};

struct EXPORTED DebugInfoKind {
  static const DebugInfoKind PARAM_COMMS_INFO;
  const std::string_view* value_;
};
constexpr std::string_view kParamComms = "PARAM_COMMS_INFO";
const DebugInfoKind DebugInfoKind::PARAM_COMMS_INFO{&kParamComms};

thread_local DebugInfoBase* param_comms_info = nullptr;

struct EXPORTED ThreadLocalDebugInfo {
  static DebugInfoBase* get(DebugInfoKind kind);
};
DebugInfoBase* ThreadLocalDebugInfo::get(DebugInfoKind kind) {
  return kind.value_ == DebugInfoKind::PARAM_COMMS_INFO.value_ ? param_comms_info : nullptr;
}

}  // namespace c10

namespace torch {

// The members in PyTorch's order, up to the last one that is read.
class EXPORTED ParamCommsDebugInfo : public c10::DebugInfoBase {
 public:
  ParamCommsDebugInfo(const char* group, int n_ranks, const char* collective, int64_t n_inputs, int type)
      : pg_name_(group, "a description that is longer than fits"),
        world_size_(n_ranks),
        collective_(collective),
        n_inputs_(n_inputs),
        type_(static_cast<int8_t>(type)) {}
  ~ParamCommsDebugInfo() override;

 private:
  std::tuple<std::string, std::string> pg_name_;
  int rank_ = 0;
  int world_size_;
  std::string collective_;
  int64_t n_inputs_;
  int64_t n_outputs_ = 0;
  int8_t type_;
};
ParamCommsDebugInfo::~ParamCommsDebugInfo() = default;

}  // namespace torch

extern "C" {

// What this thread's next operators are told to send; no group: nothing.
EXPORTED void fake_collective(const char* group, int n_ranks, const char* collective, int64_t n_inputs, int type) {
  delete c10::param_comms_info;
  c10::param_comms_info =
      group == nullptr ? nullptr : new torch::ParamCommsDebugInfo(group, n_ranks, collective, n_inputs, type);
}

EXPORTED void* fake_begin(const char* name, uint32_t scope, int is_async) {
  return new at::RecordFunction(name, scope, is_async != 0);
}
EXPORTED void fake_end(void* running) { delete static_cast<at::RecordFunction*>(running); }
}
