// What NCCL tells of its collectives, as a source of events.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "backends/event_source.h"
#include "backends/nccl/nccl_calls.h"

namespace bragg {

class NcclSource final : public EventSource {
 public:
  void start(const SourceOptions&) override {}
  void collect(const Collecting&) override {}
  void begin_phase(const SourceOptions& options) override;
  void end_phase(const SourceOptions& options) override;
  void stop() override {}
  void poll(uint64_t) override { look(); }
  void drain(int64_t, bool) override {}
  void look() override;
  bool take(EventSink&) override { return false; }
  void describe(JsonObject& meta, const SourceOptions& options) const override;

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  void after_fork_in_child() override;

  // Threads: those of NCCL -------------------------------------------------------------------------------------------

  [[nodiscard]] bool is_wanted() const noexcept { return is_wanted_.load(std::memory_order_relaxed); }
  [[nodiscard]] NcclCommunicator* add_communicator(int interface, NcclCommunicator communicator);
  // As of `NcclCalls`. `torch_group`: of PyTorch's process group; empty: not known.
  [[nodiscard]] uint64_t begin(NcclCommunicator& communicator, const NcclOperation& operation,
                               std::string_view torch_group);
  void begin_channel(uint64_t number, uint64_t gpu_ns);
  void end_channel(uint64_t number, uint64_t gpu_ns);

 private:
  std::atomic<bool> is_wanted_{false};
  std::atomic<bool> was_wanted_{false};
  std::mutex look_mutex_;
  uint64_t looked_at_ = 0;  // so many libraries had been loaded when NCCL was looked for
  std::atomic<int> version_{0};
  mutable std::mutex mutex_;  // of the two below; held for less than a microsecond
  NcclCalls calls_;
  int interface_ = 0;
};

[[nodiscard]] NcclSource& nccl_source();

}  // namespace bragg
