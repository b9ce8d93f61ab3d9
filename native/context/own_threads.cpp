#include "context/own_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace bragg {
namespace {

constexpr int kMaxThreads = 32;  // beyond it, a thread counts as the program's
constinit std::array<std::atomic<int>, kMaxThreads> own_threads{};

int thread_id() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

class OwnThread {
 public:
  OwnThread() noexcept {
    const int id = thread_id();
    for (auto& place : own_threads) {
      int free = 0;
      if (place_ == nullptr && place.compare_exchange_strong(free, id)) place_ = &place;
    }
  }
  ~OwnThread() {
    if (place_ != nullptr) place_->store(0);
  }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

 private:
  std::atomic<int>* place_ = nullptr;
};

bool is_own(int id) noexcept {
  for (const auto& place : own_threads)
    if (place.load() == id) return true;
  return false;
}

// `/proc/self/task/<id>/stat`: its state stands behind the name, which may itself contain parentheses.
bool main_thread_has_ended() noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(getpid()));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[128];
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  const std::string_view line(text, size > 0 ? static_cast<size_t>(size) : 0);
  const size_t name_end = line.rfind(") ");
  return name_end != std::string_view::npos && line.substr(name_end + 2).starts_with('Z');
}

}  // namespace

void note_own_thread() noexcept { thread_local const OwnThread own; }

void forget_own_threads() noexcept {
  for (auto& place : own_threads) place.store(0);
}

bool only_own_threads_are_left() noexcept {
  if (!main_thread_has_ended()) return false;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  bool has_others = false;
  while (const dirent* entry = readdir(tasks)) {
    const int id = std::atoi(entry->d_name);  // 0: `.` and `..`
    has_others |= id != 0 && id != getpid() && !is_own(id);
  }
  closedir(tasks);
  return !has_others;
}

}  // namespace bragg
