// Runs the registered tests. Usage: <executable> [substring of the test names to run]
#include <cstdio>
#include <cstring>
#include <mutex>

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

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const auto& test : bragg::test::registry()) {
    if (argc > 1 && std::strstr(test.name, argv[1]) == nullptr) continue;
    ++(bragg::test::run(test) ? passed : failed);
  }
  for (const std::string& failure : bragg::test::failures) std::printf("%s\n", failure.c_str());
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
