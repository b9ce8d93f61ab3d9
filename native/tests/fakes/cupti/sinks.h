// Where records are put: one buffer of the tool's for each thread, or one for all threads.
#pragma once

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

  std::mutex mutex_;
  Buffer buffer_;
  Pending pending_;
  std::unique_ptr<RecordBytes> held_;  // waits for the record it changes places with
  size_t dropped_ = 0;
};

class Sinks {
 public:
  [[nodiscard]] Sink& of_this_thread();
  [[nodiscard]] std::vector<Buffer> collect(bool everything);
  [[nodiscard]] size_t take_dropped();

  std::atomic<bool> per_thread{false};
  std::atomic<bool> in_launch_order{false};
  std::atomic<bool> buffers_come_zeroed{false};
  std::atomic<cupti::BufferRequested*> requested{nullptr};

  // True inside the tool's buffer request.
  [[nodiscard]] static bool is_requesting() noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Sink>> sinks_;  // never removed; the first serves all threads when none has its own
};

}  // namespace bragg::fake
