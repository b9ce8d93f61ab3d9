#include "backends/cuda/cuda_source.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/cuda/cuda.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/exact/exact_counters.h"
#include "backends/cuda/samples/function_cubins.h"
#include "backends/cuda/samples/launch_gate.h"
#include "backends/cuda/samples/pc_sampling.h"
#include "backends/cuda/samples/sampled_spans.h"
#include "backends/cuda/values/device_values.h"

namespace bragg {
namespace {

class CudaSource final : public EventSource {
 public:
  void start(const SourceOptions& options) override {
    pc_sampling::want(options.sampling);
    exact_counters::want(options.exact);
    sampled_sessions_ += is_sampled(options) ? 1 : 0;
    counted_sessions_ += is_counted(options) ? 1 : 0;
    cuda_backend::set_graph_level(options.whole_graphs);
    cuda_backend::start(options.library_candidates);
  }
  void collect(const Collecting& wanted) override {
    cuda_backend::set_collecting(wanted.is_on, wanted.api_level);
    pc_sampling::set_active(wanted.is_on);
  }
  void end_session(const SourceOptions& options) override {
    if (is_sampled(options) && --sampled_sessions_ == 0) pc_sampling::finish();
    if (is_counted(options) && --counted_sessions_ == 0) exact_counters::finish();
  }
  void stop() override {
    sampled_sessions_ = counted_sessions_ = 0;
    pc_sampling::finish();
    exact_counters::finish();
    cuda_backend::detach();
  }

  void poll(uint64_t launches) override {
    cuda_backend::poll();
    pc_sampling::step(launches);
    look();
  }
  // CUPTI's flush has no deadline. Forced, it also brings buffers that are not full yet.
  void drain(int64_t, bool is_last) override { cuda_backend::flush(is_last); }
  void drain_samples() override { pc_sampling::bring(); }
  [[nodiscard]] bool drains_in_background() override { return cuda_backend::may_flush_in_background(); }
  void look() override {
    cuda_backend::note_devices();
    cuda_backend::note_clock();
  }

  void gather() override {
    cuda_backend::gather();
    arrived_ = device_values::take_arrived();
  }
  bool take(EventSink& sink) override {
    const bool has_more = cuda_backend::take([&](const DeviceEvent& event) { sink.take(event); });
    for (const ArrivedValue& value : std::exchange(arrived_, {})) sink.take(value);
    for (const PcSample& sample : pc_sampling::take()) sink.take(sample);
    for (const InstructionCount& count : exact_counters::take_instructions()) sink.take(count);
    return has_more;
  }
  // The hardware samples each multiprocessor once in a period. So a kernel's samples grow with the multiprocessors that
  // it kept busy, and with the time that it ran while samples were taken.
  [[nodiscard]] double sample_weight(const DeviceEvent& kernel) override {
    if (multiprocessors_.empty())
      for (const CudaDevice& device : CudaDriver::mapped().devices())
        multiprocessors_.push_back(static_cast<uint64_t>(device.multiprocessors));
    const uint32_t* grid = &kernel.launch_config[4];
    const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
    const uint64_t busy =
        kernel.device < multiprocessors_.size() ? std::min(blocks, multiprocessors_[kernel.device]) : 1;
    const int64_t sampled_ns = SampledSpans::instance().overlap_ns(kernel.device, kernel.start_ns, kernel.end_ns);
    return static_cast<double>(sampled_ns) * static_cast<double>(busy);
  }
  void describe(JsonObject& meta, const SourceOptions& options) const override {
    meta.raw("cuda", cuda_backend::description_json());
    if (options.sampling.mode != SamplingMode::Off) meta.raw("sampling", pc_sampling::description_json());
    if (!options.exact.pattern.empty()) meta.raw("exact_counters", exact_counters::description_json());
    if (const std::string devices = cuda_backend::devices_json(); !devices.empty()) meta.raw("devices", devices);
  }

  [[nodiscard]] bool tells_records() const override { return cuda_backend::state() == cuda_backend::State::Attached; }
  [[nodiscard]] uint64_t dropped_records() const override { return cuda_backend::dropped_records(); }
  // The kernels of ours that read values have records, unless nobody names them.
  [[nodiscard]] uint64_t pending() const override { return tells_records() ? 0 : device_values::awaited(); }
  void on_initialized() override { cuda_backend::on_cuda_initialized(); }
  void reclaim() override { cuda_backend::reclaim_records(); }
  [[nodiscard]] uint32_t current_device() const override { return CudaDriver::mapped().current_device(); }
  [[nodiscard]] std::string add_value(MetricId metric, const DeviceArray& array, void* stream) noexcept override {
    return device_values::add(metric, array, static_cast<cuda::Stream>(stream));
  }
  [[nodiscard]] std::string probe(const std::string& library_candidates) override {
    return cuda_backend::probe_json(library_candidates);
  }

  void lock_for_fork() override {
    device_values::lock_for_fork();
    pc_sampling::lock_for_fork();
    FunctionCubins::instance().lock_for_fork();
    cuda_backend::lock_for_fork();  // last: CUPTI asks for buffers while others of these are held
  }
  void unlock_after_fork() override {
    cuda_backend::unlock_after_fork();
    FunctionCubins::instance().unlock_after_fork();
    pc_sampling::unlock_after_fork();
    device_values::unlock_after_fork();
  }
  void after_fork_in_child() override {
    cuda_backend::after_fork_in_child();
    device_values::after_fork_in_child();
    pc_sampling::after_fork_in_child();
    exact_counters::after_fork_in_child();
    LaunchGate::instance().after_fork_in_child();
    arrived_.clear();
    sampled_sessions_ = counted_sessions_ = 0;
  }

 private:
  [[nodiscard]] static bool is_sampled(const SourceOptions& options) {
    return options.sampling.mode != SamplingMode::Off;
  }
  [[nodiscard]] static bool is_counted(const SourceOptions& options) { return !options.exact.pattern.empty(); }

  size_t sampled_sessions_ = 0, counted_sessions_ = 0;
  std::vector<ArrivedValue> arrived_;      // gathered
  std::vector<uint64_t> multiprocessors_;  // by device
};

}  // namespace

EventSource& cuda_source() {
  static EventSource& source = *new CudaSource;  // CUPTI may call until the process is gone
  return source;
}

}  // namespace bragg
