// What a session has written, on its way to the file: sessions put chunks here and never wait for a disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/capture_file.h"

namespace bragg {

// Chunks of one capture that are not in its file yet. Threads: `put` under the recorder's work lock; `write_out` any.
class Outbox {
 public:
  struct Rewrite {};  // what follows goes to a file that replaces the old one ...
  struct Replace {};  // ... from here on
  struct Close {};
  using Item = std::variant<Chunk, Rewrite, Replace, Close>;

  [[nodiscard]] int open(const std::string& path) { return file_.open(path); }  // 0 or errno
  void put(Item item);
  // Writes what is there to the file, one thread at a time. False: another thread is at it.
  [[nodiscard]] bool write_out();
  // In a forked child, which has no writing thread: that of the parent may have been anywhere at the fork.
  void abandon();

  [[nodiscard]] uint64_t put_count() const { return put_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t written_count() const { return written_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t waiting_bytes() const { return waiting_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }
  [[nodiscard]] int error() const { return error_.load(std::memory_order_relaxed); }

  // Whether a file lacks anything, of all captures: for a signal handler, which takes no lock.
  [[nodiscard]] static bool any_waits() { return waiting_items_.load(std::memory_order_acquire) != 0; }
  static void forget_all() { waiting_items_.store(0, std::memory_order_relaxed); }  // in a forked child

 private:
  void write(const Item& item);

  static inline std::atomic<uint64_t> waiting_items_{0};
  std::mutex items_mutex_;
  std::vector<Item> items_;
  std::atomic<uint64_t> put_{0};
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> waiting_bytes_{0};
  std::atomic<bool> is_closed_{false};
  std::atomic<int> error_{0};
  std::mutex file_mutex_;
  CaptureFile file_;
  bool skips_rewrite_ = false;  // its file could not be made: the old one continues
};

// All captures of the process, for the thread that writes. Threads: any.
class Outboxes {
 public:
  static Outboxes& instance();
  void add(std::shared_ptr<Outbox> outbox);
  void write_out();  // what is there, as far as no other thread is at it; forgets those that were closed
  // Until everything that was put so far is in the files; false: nothing has been written for `patience_ns`.
  [[nodiscard]] bool wait_until_written(int64_t patience_ns);
  void forget_all();  // in a forked child

 private:
  [[nodiscard]] std::vector<std::shared_ptr<Outbox>> all();
  std::mutex mutex_;
  std::vector<std::shared_ptr<Outbox>> outboxes_;
};

// Threads: one at a time.
class CaptureWriter {
 public:
  [[nodiscard]] int open(const std::string& path);  // 0 or errno
  void write(Chunk chunk);
  void close() { outbox_->put(Outbox::Close{}); }
  void abandon() { outbox_->abandon(); }
  [[nodiscard]] int write_out();  // at once: 0 or errno

  // Starts a new file that replaces the old one at `commit_rewrite`.
  void begin_rewrite();
  void commit_rewrite() { outbox_->put(Outbox::Replace{}); }

  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }  // with what waits
  [[nodiscard]] uint64_t waiting_bytes() const { return outbox_->waiting_bytes(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  uint64_t size_bytes_ = 0;
  std::shared_ptr<Outbox> outbox_;
};

}  // namespace bragg
