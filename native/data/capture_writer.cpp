#include "data/capture_writer.h"

#include <algorithm>
#include <ctime>
#include <new>

#include "context/blocked_signals.h"
#include "context/clock.h"

namespace bragg {
namespace {

constexpr timespec kWriteNap{.tv_sec = 0, .tv_nsec = 200'000};
constexpr uint64_t kFileHeaderBytes = 16;
constexpr uint64_t kChunkHeaderBytes = 24;

uint64_t put_bytes(const Outbox::Item& item) {
  const Chunk* chunk = std::get_if<Chunk>(&item);
  return chunk != nullptr ? kChunkHeaderBytes + chunk->payload().size() : 0;
}

}  // namespace

void Outbox::put(Item item) {
  waiting_bytes_.fetch_add(put_bytes(item), std::memory_order_relaxed);
  const std::lock_guard lock(items_mutex_);
  items_.push_back(std::move(item));
  waiting_items_.fetch_add(1, std::memory_order_relaxed);
  put_.fetch_add(1, std::memory_order_release);
}

bool Outbox::write_out() {
  const std::unique_lock file(file_mutex_, std::try_to_lock);
  if (!file) return false;
  std::vector<Item> items;
  {
    const std::lock_guard lock(items_mutex_);
    items.swap(items_);
  }
  for (const Item& item : items) {
    write(item);
    waiting_bytes_.fetch_sub(put_bytes(item), std::memory_order_relaxed);
    written_.fetch_add(1, std::memory_order_release);
    waiting_items_.fetch_sub(1, std::memory_order_release);
  }
  return true;
}

void Outbox::write(const Item& item) {
  if (const Chunk* chunk = std::get_if<Chunk>(&item)) {
    if (!skips_rewrite_) file_.write(*chunk);
  } else if (std::holds_alternative<Rewrite>(item)) {
    skips_rewrite_ = !file_.begin_rewrite();
  } else if (std::holds_alternative<Replace>(item)) {
    if (!std::exchange(skips_rewrite_, false)) file_.commit_rewrite();
  } else {
    file_.close();
    is_closed_.store(true, std::memory_order_release);
  }
  error_.store(file_.error(), std::memory_order_relaxed);
}

void Outbox::abandon() {
  new (&items_mutex_) std::mutex;
  new (&file_mutex_) std::mutex;
  file_.close();
  is_closed_.store(true);
}

Outboxes& Outboxes::instance() {
  static Outboxes& outboxes = *new Outboxes;
  return outboxes;
}

void Outboxes::add(std::shared_ptr<Outbox> outbox) {
  const BlockedSignals blocked;
  const std::lock_guard lock(mutex_);
  outboxes_.push_back(std::move(outbox));
}

std::vector<std::shared_ptr<Outbox>> Outboxes::all() {
  const BlockedSignals blocked;
  const std::lock_guard lock(mutex_);
  return outboxes_;
}

void Outboxes::write_out() {
  for (const auto& outbox : all()) (void)outbox->write_out();
  const BlockedSignals blocked;
  const std::lock_guard lock(mutex_);
  std::erase_if(outboxes_, [](const auto& outbox) { return outbox->is_closed(); });
}

bool Outboxes::wait_until_written(int64_t patience_ns) {
  for (const auto& outbox : all()) {
    const uint64_t wanted = outbox->put_count();
    uint64_t before = outbox->written_count();
    for (int64_t since_ns = monotonic_ns(); outbox->written_count() < wanted; nanosleep(&kWriteNap, nullptr)) {
      const uint64_t written = outbox->written_count();
      const int64_t now = monotonic_ns();
      if (std::exchange(before, written) != written) since_ns = now;
      if (now > since_ns + patience_ns) return false;
    }
  }
  return true;
}

// They are not destroyed: a thread of the parent may have been in the middle of one.
void Outboxes::forget_all() {
  new (&mutex_) std::mutex;
  new (&outboxes_) std::vector<std::shared_ptr<Outbox>>;
  Outbox::forget_all();
}

int CaptureWriter::open(const std::string& path) {
  path_ = path;
  size_bytes_ = kFileHeaderBytes;
  outbox_ = std::make_shared<Outbox>();
  if (const int error = outbox_->open(path)) return error;
  Outboxes::instance().add(outbox_);
  return 0;
}

void CaptureWriter::write(Chunk chunk) {
  size_bytes_ += kChunkHeaderBytes + (chunk.payload().size() + 7) / 8 * 8;
  outbox_->put(std::move(chunk));
}

int CaptureWriter::write_out() {
  (void)outbox_->write_out();
  return outbox_->error();
}

void CaptureWriter::begin_rewrite() {
  size_bytes_ = kFileHeaderBytes;
  outbox_->put(Outbox::Rewrite{});
}

}  // namespace bragg
