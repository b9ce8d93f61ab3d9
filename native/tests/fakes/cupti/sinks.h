// What a tool collects, and where its records are put: one buffer of the tool's for each thread, or one for all
// threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cupti/delivery.h"
#include "cupti/pending.h"
#include "cupti/records.h"

namespace bragg::fake {

// Threads: any; usually its own.
class Sink {
 public:
  explicit Sink(Sinks& owner) : owner_(owner) {}
  void put(const RecordBytes& record, uint64_t now_ns);
  // The partly filled buffer, if it holds only complete records or `everything` is wanted.
  void collect(std::vector<Buffer>& buffers, bool everything, uint64_t now_ns);
  [[nodiscard]] size_t take_dropped();

 private:
  void put_with_faults(const RecordBytes& record);
  void append(const RecordBytes& record);
  void append_complete(uint64_t now_ns);
  void append_held();
  [[nodiscard]] bool make_room(size_t record_bytes);

  Sinks& owner_;
  std::mutex mutex_;
  Buffer buffer_;
  Pending pending_;
  std::unique_ptr<RecordBytes> held_;  // waits for the record it changes places with
  size_t dropped_ = 0;
};

// Of all tools that use version 1, or of one subscriber of version 2.
class Sinks {
 public:
  static constexpr size_t kMax = 8;
  explicit Sinks(size_t number) : number_(number) {}

  [[nodiscard]] Sink& of_this_thread();
  [[nodiscard]] std::vector<Buffer> collect(bool everything);
  [[nodiscard]] size_t take_dropped();

  std::atomic<bool> per_thread{false};
  std::atomic<bool> in_launch_order{false};
  std::atomic<bool> buffers_come_zeroed{false};
  std::atomic<cupti::BufferRequested*> requested{nullptr};
  std::atomic<cupti::BufferCompleted*> completed{nullptr};
  std::atomic<cupti::BufferRequested_v2*> requested_v2{nullptr};
  std::atomic<cupti::BufferCompleted_v2*> completed_v2{nullptr};
  std::atomic<uint64_t> kinds{0};  // bit i: Kind i is enabled

  [[nodiscard]] bool is_enabled(cupti::Kind kind) const {
    return (kinds.load(std::memory_order_relaxed) >> static_cast<uint32_t>(kind) & 1) != 0;
  }
  [[nodiscard]] bool has_callbacks() const { return requested.load() != nullptr || requested_v2.load() != nullptr; }
  [[nodiscard]] Buffer request();
  void complete(const Buffer& buffer) const;

  // True inside the tool's buffer request.
  [[nodiscard]] static bool is_requesting() noexcept;

 private:
  const size_t number_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Sink>> sinks_;  // never removed; the first serves all threads when none has its own
};

}  // namespace bragg::fake
