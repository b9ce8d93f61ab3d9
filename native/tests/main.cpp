// Runs the registered tests. Usage: <executable> [substring of the test names to run]
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <thread>

#include "check.h"

namespace bragg::test {

namespace {
std::mutex mutex;
std::vector<std::string> failures;  // said again at the end, where a long log is read first
const char* running = "";

size_t count_failures() {
  const std::lock_guard lock(mutex);
  return failures.size();
}
}  // namespace

std::vector<Test>& registry() {
  static std::vector<Test> tests;
  return tests;
}

void fail(const char* file, int line, const std::string& what) {
  const std::lock_guard lock(mutex);
  failures.push_back(std::string(running) + "\n  " + file + ":" + std::to_string(line) + ": " + what);
  std::printf("  %s:%d: %s\n", file, line, what.c_str());
}

static bool run(const Test& test) {
  std::printf("%s\n", test.name);
  std::fflush(stdout);  // a crash leaves the name of its test as the last line
  running = test.name;
  const size_t before = count_failures();
  test.run();
  return count_failures() == before;
}

}  // namespace bragg::test

namespace {

size_t count_threads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

// LeakSanitizer, which looks when the process ends, crashes now and then on a thread that is just ending, too.
void await_ending_threads() {
  constexpr int kQuietNaps = 10, kNaps = 200;
  size_t last = count_threads();
  for (int nap = 0, quiet = 0; nap < kNaps && quiet < kQuietNaps; ++nap) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const size_t now = count_threads();
    quiet = now == last ? quiet + 1 : 0;
    last = now;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const auto& test : bragg::test::registry()) {
    if (argc > 1 && std::strstr(test.name, argv[1]) == nullptr) continue;
    ++(bragg::test::run(test) ? passed : failed);
  }
  for (const std::string& failure : bragg::test::failures) std::printf("%s\n", failure.c_str());
  std::printf("%d passed, %d failed\n", passed, failed);
  std::fflush(stdout);
  await_ending_threads();
  return failed == 0 && passed > 0 ? 0 : 1;
}
