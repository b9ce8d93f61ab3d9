// The fake CUPTI as a tool uses it: subscribes, collects callbacks and records.
#pragma once

#include <dlfcn.h>
#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "backends/cuda/driver/cupti_abi.h"
#include "check.h"

namespace bragg::fake::selftest {

struct SeenRecord {
  cupti::Kind kind{};
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t device = 0, context = 0, stream = 0, correlation = 0, graph = 0;
  uint64_t graph_node = 0;
  uint64_t size_bytes = 0;  // copies and sets
  uint32_t grid_x = 0, cbid = 0;
  std::string name{};
  size_t buffer = 0;  // number of its buffer
};

struct SeenCallback {
  cupti::Domain domain{};
  uint32_t cbid = 0;
  cupti::CallbackSite site{};
  uint32_t correlation = 0;
  std::string symbol{};
  bool data_kept = false;  // the word written at Enter was there at Exit
};

// What the tool does when CUPTI asks for a buffer.
struct BufferPolicy {
  size_t size_bytes = 1 << 16;
  size_t max_records = 0;
  bool refuse = false;
};

// One per process, since CUPTI's buffer callbacks carry no user data.
class Profiler {
 public:
  explicit Profiler(const char* library = "libcupti.so.13");

  template <class Function>
  [[nodiscard]] Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(dlsym(library_, symbol));
  }
  template <class Function, class... Args>
  cupti::Result call(const char* symbol, Args... args) const {
    auto* function = find<Function>(symbol);
    return CHECK(function != nullptr) ? function(args...) : cupti::Result::NotSupported;
  }

  // Subscribes with callbacks for all driver calls and resources, and enables the kinds. Everything must succeed.
  void start(std::initializer_list<cupti::Kind> kinds);
  void disable(cupti::Kind kind) const {
    CHECK_EQ(call<cupti::CuptiActivityDisable>("cuptiActivityDisable", kind), kOk);
  }
  void flush(uint32_t flags = 0) const {
    CHECK_EQ(call<cupti::CuptiActivityFlushAll>("cuptiActivityFlushAll", flags), kOk);
  }
  [[nodiscard]] size_t dropped() const;
  [[nodiscard]] uint32_t version() const;

  [[nodiscard]] static std::vector<SeenRecord> records();
  [[nodiscard]] static std::vector<SeenRecord> records(cupti::Kind kind);
  [[nodiscard]] static std::vector<SeenCallback> callbacks();
  [[nodiscard]] static std::vector<pid_t> delivering_threads();
  [[nodiscard]] static std::vector<pid_t> requesting_threads();
  static void set_policy(const BufferPolicy& policy);
  // Called for resource callbacks, inside them.
  static void on_resource(void (*function)(uint32_t cbid, const cupti::GraphData& data));

  static constexpr cupti::Result kOk = cupti::Result::Success;
  cupti::Subscriber subscriber = nullptr;

 private:
  void* library_;
};

void on_callback(void* user_data, cupti::Domain domain, uint32_t cbid, const void* data);

}  // namespace bragg::fake::selftest
