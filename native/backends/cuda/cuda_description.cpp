// What is said of the CUDA backend, its devices and what a session would find.
#include "backends/cuda/cuda_state.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/driver/cuda_functions.h"
#include "backends/cuda/samples/pc_sampling.h"
#include "context/clock.h"
#include "data/json.h"

namespace bragg::cuda_backend {
namespace {

std::string devices_of(const CudaDriver& driver) {
  return json_array(driver.devices(), [](const CudaDevice& device) {
    return JsonObject()
        .put("name", device.name)
        .put("arch", std::to_string(device.compute_capability_major) + std::to_string(device.compute_capability_minor))
        .put("num_sms", device.multiprocessors)
        .put("clock_khz", device.clock_khz)
        .put("memory_clock_khz", device.memory_clock_khz)
        .put("bus_width_bits", device.memory_bus_bits)
        .text();
  });
}

// Of the first GPU; "": it can be sampled.
std::string sampling_refusal() {
  std::string reason;
  const CudaFunctions* functions = CudaFunctions::find(reason);
  if (functions == nullptr) return reason;
  cuda::Context context = nullptr;
  if (const auto result = functions->retain_primary(&context, 0); result != cuda::Result::Success)
    return functions->failure("cuDevicePrimaryCtxRetain", result);
  reason = pc_sampling::probe(backend().cupti, context);
  (void)functions->release_primary(0);
  return reason;
}

const char* name_of(State state) {
  constexpr const char* kNames[] = {"off", "waiting", "attached", "failed"};
  return kNames[static_cast<size_t>(state)];
}

std::string clock_json(Backend& self) {
  const std::lock_guard lock(self.clock_mutex);
  return self.clock.json();
}

// Another session may be trying again.
std::string reason_of(Backend& self) {
  const std::lock_guard lock(self.mutex);
  return self.reason;
}

}  // namespace

std::string description_json() {
  Backend& self = backend();
  const State state = self.state.load();
  JsonObject json;
  json.put("state", name_of(state));
  if (state == State::Failed) json.put("reason", reason_of(self));
  if (state != State::Attached) return json.text();
  return json.put("cupti_path", self.cupti.library.path())
      .put("cupti_version", self.cupti.version)
      .put("subscription", self.activity().is_shared() ? 2 : 1)
      .put("driver_version", CudaDriver::mapped().version())
      .put("missed_start_ns", self.missed_start_ns.load(std::memory_order_relaxed))
      .put("dropped_records", self.dropped_records.load(std::memory_order_relaxed))
      .put("unread_bytes", self.unread_bytes.load(std::memory_order_relaxed))
      .put("foreign_records", self.foreign_records.load(std::memory_order_relaxed))
      .put("foreign_buffers", self.foreign_buffers.load(std::memory_order_relaxed))
      .put("buffers", self.buffers.allocated())
      .put("graphs", launch_watch.traces_graphs.load() ? "graph" : "node")
      .raw("clock", clock_json(self))
      .text();
}

void note_clock() {
  Backend& self = backend();
  if (state() != State::Attached || self.cupti.get_timestamp == nullptr) return;
  const int64_t before_ns = now_ns();
  {
    const std::lock_guard lock(self.clock_mutex);
    if (!self.clock.is_due(before_ns)) return;
  }
  // Outside the lock, which the consumer takes: CUPTI may hang.
  uint64_t time_ns = 0;
  if (self.cupti.get_timestamp(&time_ns) != cupti::Result::Success) return;
  const int64_t after_ns = now_ns();
  const std::lock_guard lock(self.clock_mutex);
  self.clock.add(before_ns + (after_ns - before_ns) / 2, {static_cast<int64_t>(time_ns)});
}

// Inside cuInit, where attachment happens, the driver does not list devices yet.
void note_devices() {
  Backend& self = backend();
  if (state() != State::Attached || self.devices.load() != nullptr) return;
  const CudaDriver driver = CudaDriver::mapped();
  if (!driver.is_initialized()) return;
  auto told = std::make_unique<const std::string>(devices_of(driver));
  const std::string* none = nullptr;
  if (self.devices.compare_exchange_strong(none, told.get())) (void)told.release();
}

std::string devices_json() {
  const std::string* devices = backend().devices.load();
  return devices != nullptr ? *devices : "";
}

std::string probe_json(const std::string& candidates) {
  if (const std::string refusal = CudaDriver::initialize(); !refusal.empty()) {
    const std::string cuda = JsonObject().put("state", "failed").put("reason", refusal).text();
    return JsonObject().raw("cuda", cuda).raw("devices", "[]").text();
  }
  start(candidates);
  const std::string description = description_json();
  const std::string devices = devices_of(CudaDriver::mapped());
  JsonObject json;
  json.raw("cuda", description).raw("devices", devices);
  if (state() == State::Attached && devices != "[]") json.put("sampling", sampling_refusal());
  detach();
  return json.text();
}

}  // namespace bragg::cuda_backend
