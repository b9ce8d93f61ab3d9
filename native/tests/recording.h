// A program on the fake GPU, and a recording of it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/bragg_core.h"
#include "backends/cuda/driver/cuda_abi.h"
#include "check.h"
#include "data/capture_writer.h"
#include "scratch.h"

namespace bragg::test {

class Device {
 public:
  Device() : library_(dlopen(BRAGG_FAKES_DIR "/libcuda.so.1", RTLD_NOW)) { must("cuInit", 0u); }

  void use(int32_t ordinal = 0) const {  // on every thread
    cuda::Context context = nullptr;
    must("cuDevicePrimaryCtxRetain", &context, ordinal);
    must("cuCtxSetCurrent", context);
  }
  [[nodiscard]] cuda::Stream stream() const {
    cuda::Stream stream = nullptr;
    must("cuStreamCreate", &stream, 1u);
    return stream;
  }
  [[nodiscard]] cuda::Function kernel(const char* name) const {
    cuda::Function function = nullptr;
    must("cuModuleGetFunction", &function, cuda::Module{}, name);
    return function;
  }
  void launch(cuda::Function kernel, cuda::Stream stream) const {
    must("cuLaunchKernel", kernel, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, static_cast<void**>(nullptr),
         static_cast<void**>(nullptr));
  }

  template <class... Args>
  void must(const char* symbol, Args... args) const {
    auto* function = reinterpret_cast<cuda::Result (*)(Args...)>(dlsym(library_, symbol));
    if (function == nullptr || function(args...) != cuda::Result::Success) std::abort();
  }

 private:
  void* library_;
};

inline const Device& device() {
  static const Device instance;
  return instance;
}

// The second GPU is this thread's, until the end of a scope: a process with contexts of two GPUs is recorded otherwise.
class SecondGpu {
 public:
  SecondGpu() { device().use(1); }
  SecondGpu(const SecondGpu&) = delete;
  SecondGpu& operator=(const SecondGpu&) = delete;
  ~SecondGpu() {
    device().use(0);
    device().must("cuDevicePrimaryCtxRelease_v2", 1);
  }
};

// A function of a fake library.
template <class Function>
Function* in_fake(const char* symbol, const char* library = "/libcuda.so.1") {
  (void)device();  // loads both
  const std::string path = std::string(BRAGG_FAKES_DIR) + library;
  return reinterpret_cast<Function*>(dlsym(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), symbol));
}
inline void set_knob(const char* knob, int64_t value) {
  CHECK(in_fake<bool(const char*, int64_t)>("bragg_fake_set")(knob, value));
}
inline void set_kernel_ns(const char* name, uint64_t ns) {
  in_fake<void(const char*, uint64_t)>("bragg_fake_set_kernel_ns")(name, ns);
}
inline void fail_calls(const char* call, uint32_t result) {  // result 0: no longer
  in_fake<void(const char*, uint32_t)>("bragg_fake_fail")(call, result);
}

// Threads that launch while a test controls a recording: so many batches at each of its steps. However the threads are
// scheduled, no more is launched than is read in time.
class Launchers {
 public:
  Launchers(size_t count, const std::function<void()>& launch_batch) {
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this, launch_batch] { run(launch_batch); });
  }
  ~Launchers() {
    stop_.store(true);
    for (auto& thread : threads_) thread.join();
  }
  Launchers(const Launchers&) = delete;
  Launchers& operator=(const Launchers&) = delete;

  // Returns when one of them is at it.
  void go_on(uint64_t batches) {
    const uint64_t before = begun_.load();
    allowed_.fetch_add(batches);
    CHECK(comes_true([&] { return begun_.load() > before; }));
  }

 private:
  void run(const std::function<void()>& launch_batch) {
    for (uint64_t begun = 0; !stop_.load();) {
      if (begun == allowed_.load()) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        continue;
      }
      ++begun;
      begun_.fetch_add(1);
      launch_batch();
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> allowed_{0};  // of each
  std::atomic<uint64_t> begun_{0};    // of all
  std::vector<std::thread> threads_;
};

class Recording {
 public:
  struct Wishes {
    bool trace = false;
    int gpu_api = BRAGG_GPU_API_OFF;
    double telemetry_hz = 0;
    const char* counters = "";
    const char* exact_kernels = "";
    const char* exact_metrics = "";
  };
  Recording(const char* name, const Wishes& wishes) : path_(directory_.file(std::string(name) + ".part")) {
    bragg_session_options options = usual_options();
    options.trace = wishes.trace;
    options.gpu_api = wishes.gpu_api;
    options.telemetry_hz = wishes.telemetry_hz;
    std::snprintf(options.counters, sizeof options.counters, "%s", wishes.counters);
    std::snprintf(options.exact_kernels, sizeof options.exact_kernels, "%s", wishes.exact_kernels);
    std::snprintf(options.exact_metrics, sizeof options.exact_metrics, "%s", wishes.exact_metrics);
    options.exact_launches = std::numeric_limits<uint32_t>::max();
    start(options);
  }
  explicit Recording(const char* name, bool trace = false, uint32_t rotate_interval_ms = 0,
                     int sampling = BRAGG_SAMPLE_OFF, uint32_t sample_period = 0)
      : path_(directory_.file(std::string(name) + ".part")) {
    bragg_session_options options = usual_options();
    options.trace = trace;
    options.rotate_interval_ms = rotate_interval_ms;
    options.sampling = sampling;
    options.sample_period = sample_period;
    start(options);
  }
  ~Recording() {
    if (session_ >= 0) bragg_session_stop(session_, "{}");
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void activate() const { bragg_session_activate(session_); }
  void deactivate() const { bragg_session_deactivate(session_, 0); }
  void deactivate_and_flush() const { bragg_session_deactivate(session_, 1); }
  void flush() const { bragg_session_flush(session_); }
  void advance() {
    ended_.push_back(path_ + std::to_string(ended_.size()));
    std::filesystem::rename(path_, ended_.back());  // the writer keeps the file, under any name
    int os_error = 0;
    char reason[256] = "";
    session_ = bragg_session_advance(session_, path_.c_str(), "{}", "{}", &os_error, reason, sizeof reason);
    if (session_ < 0) fail(__FILE__, __LINE__, reason);
  }

  struct Value {
    uint64_t count = 0;
    uint64_t bits = 0;
  };
  // What the capture says of a metric's element, over all nodes: int64 sums.
  [[nodiscard]] Value value(uint32_t metric, uint32_t index = 0) const {
    std::ifstream file(path_, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const auto at = [&]<class T>(size_t offset, T& number) { std::memcpy(&number, &bytes[offset], sizeof number); };
    std::map<uint32_t, Value> by_node;
    uint32_t rows = 0, payload_bytes = 0;
    for (size_t chunk = 16; chunk + 24 <= bytes.size(); chunk += 24 + (payload_bytes + 7) / 8 * 8) {
      uint16_t type = 0;
      at(chunk + 4, type);
      at(chunk + 8, rows);
      at(chunk + 12, payload_bytes);
      if (type != static_cast<uint16_t>(ChunkType::Values)) continue;
      const size_t narrow_bytes = (rows * sizeof(uint32_t) + 7) / 8 * 8;
      const size_t columns = chunk + 24 + sizeof(uint64_t), counts = columns + 4 * narrow_bytes;
      for (uint32_t row = 0; row < rows; ++row) {
        uint32_t node = 0, row_metric = 0, row_index = 0;
        at(columns + 4 * row, node);
        at(columns + narrow_bytes + 4 * row, row_metric);
        at(columns + 2 * narrow_bytes + 4 * row, row_index);
        if (row_metric != metric || row_index != index) continue;
        at(counts + 8 * row, by_node[node].count);
        at(counts + 8 * rows + 8 * row, by_node[node].bits);
      }
    }
    Value all;
    for (const auto& [node, value] : by_node) all = {all.count + value.count, all.bits + value.bits};
    return all;
  }

  [[nodiscard]] uint64_t count(const char* statistic) const {
    std::string json(8192, '\0');
    (void)bragg_session_statistics(session_, json.data(), static_cast<uint32_t>(json.size()));
    const size_t at = json.find(std::string("\"").append(statistic).append("\":"));
    return at == std::string::npos ? ~0ull : std::strtoull(json.c_str() + json.find(':', at) + 1, nullptr, 10);
  }
  // Of the phases that have ended, as their captures say.
  [[nodiscard]] uint64_t count_of_ended(const std::string& statistic) const { return sum_of(ended_, statistic); }
  // Waits until phases have begun by themselves: up to 60 s.
  void wait_for_phase(int phase) const {
    for (int i = 0; i < 6000 && !std::filesystem::exists(phase_path(phase)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // Of phases that began by themselves: ends the recording.
  [[nodiscard]] uint64_t stop_and_count_all(const std::string& statistic) {
    bragg_session_stop(std::exchange(session_, -1), "{}");
    std::vector<std::string> paths{path_};
    for (int phase = 1; std::filesystem::exists(phase_path(phase)); ++phase) paths.push_back(phase_path(phase));
    return sum_of(paths, statistic);
  }
  // Ends the recording: numbers of its last META, wherever they stand in it; 0: it has none.
  [[nodiscard]] std::vector<uint64_t> stop_and_find(const std::vector<std::string>& names) {
    const std::string bytes = stop_and_read();
    std::vector<uint64_t> numbers;
    for (const std::string& name : names) {
      const std::string key = "\"" + name + "\":";
      const size_t at = bytes.rfind(key);
      numbers.push_back(at != std::string::npos ? std::strtoull(&bytes[at + key.size()], nullptr, 10) : 0);
    }
    return numbers;
  }
  // All of its capture.
  [[nodiscard]] std::string stop_and_read() {
    bragg_session_stop(std::exchange(session_, -1), "{}");
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  [[nodiscard]] bragg_session_options usual_options() const {
    bragg_session_options options{};
    options.part_path = path_.c_str();
    options.meta_json = "{}";
    options.cupti_candidates = BRAGG_FAKES_DIR "/libcupti.so.13";
    options.backend = BRAGG_CUDA;
    options.flush_interval_ms = 20;
    options.sample_budget = 0.5;
    return options;
  }
  void start(const bragg_session_options& options) {
    (void)device();
    int os_error = 0;
    char reason[256] = "";
    session_ = bragg_session_start(&options, &os_error, reason, sizeof reason);
    if (session_ < 0) fail(__FILE__, __LINE__, reason);
  }
  [[nodiscard]] std::string phase_path(int phase) const {
    return path_.substr(0, path_.size() - 5) + ".part_" + std::to_string(phase) + ".part";
  }
  // The last META of a capture has the statistics of its phase.
  static uint64_t sum_of(const std::vector<std::string>& paths, const std::string& statistic) {
    uint64_t sum = 0;
    for (const std::string& path : paths) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      const size_t last = bytes.rfind("\"statistics\":");
      const size_t at = last == std::string::npos ? last : bytes.find("\"" + statistic + "\":", last);
      if (at != std::string::npos) sum += std::strtoull(bytes.c_str() + bytes.find(':', at) + 1, nullptr, 10);
    }
    return sum;
  }

  ScratchDirectory directory_;
  std::vector<std::string> ended_;
  std::string path_;
  int session_ = -1;
};

}  // namespace bragg::test
