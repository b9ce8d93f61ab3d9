#include "context/own_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace bragg {

int thread_id() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

namespace {

// Ids of threads, 0: free. A list that only grows: it is read while threads begin and end.
struct Places {
  std::array<std::atomic<int>, 32> ids{};
  std::atomic<Places*> next{nullptr};
};
constinit Places own_threads;

class OwnThread {
 public:
  OwnThread() : place_(take(own_threads)) {}
  ~OwnThread() { place_.store(0); }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

 private:
  static std::atomic<int>& take(Places& places) {
    for (auto& place : places.ids) {
      int free = 0;
      if (place.compare_exchange_strong(free, thread_id())) return place;
    }
    if (places.next.load() == nullptr) {
      auto more = std::make_unique<Places>();
      Places* none = nullptr;
      if (places.next.compare_exchange_strong(none, more.get())) (void)more.release();
    }
    return take(*places.next.load());
  }

  std::atomic<int>& place_;
};

// The beginning of a file of /proc/self/task/<id>.
template <size_t n>
std::string_view read_of_thread(int id, const char* name, std::array<char, n>& into) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", id, name);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, into.data(), n);
  close(file);
  return {into.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

// What stands behind a name in lines of `name:\tvalue`.
std::string_view value_of(std::string_view lines, std::string_view name) noexcept {
  const size_t at = lines.find(name);
  return at != std::string_view::npos ? lines.substr(at + name.size()) : std::string_view{};
}

}  // namespace

// Its state stands behind the name, which may itself contain parentheses.
char thread_state(int id) noexcept {
  std::array<char, 128> text;
  const std::string_view line = read_of_thread(id, "stat", text);
  const size_t name_end = line.rfind(") ");
  return name_end != std::string_view::npos && name_end + 2 < line.size() ? line[name_end + 2] : '\0';
}

int64_t waits_if_runnable(int id) noexcept {
  std::array<char, 4096> text;
  const std::string_view lines = read_of_thread(id, "status", text);
  const std::string_view count = value_of(lines, "\nvoluntary_ctxt_switches:\t");
  int64_t n_waits = -1;
  if (value_of(lines, "\nState:\t").starts_with('R'))
    std::from_chars(count.data(), count.data() + count.size(), n_waits);
  return n_waits;
}

void note_own_thread() { thread_local const OwnThread own; }

bool is_own_thread(int id) noexcept {
  for (const Places* places = &own_threads; places != nullptr; places = places->next.load())
    for (const auto& place : places->ids)
      if (place.load() == id) return true;
  return false;
}

void forget_own_threads() noexcept {
  for (Places* places = &own_threads; places != nullptr; places = places->next.load())
    for (auto& place : places->ids) place.store(0);
}

bool only_own_threads_are_left() noexcept {
  if (thread_state(getpid()) != 'Z') return false;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  bool has_others = false;
  while (const dirent* entry = readdir(tasks)) {
    const int id = std::atoi(entry->d_name);  // 0: `.` and `..`
    has_others |= id != 0 && id != getpid() && !is_own_thread(id);
  }
  closedir(tasks);
  return !has_others;
}

}  // namespace bragg
