// Runs the registered tests. Usage: <executable> [substring of the test names to run]
#include <atomic>
#include <cstdio>
#include <cstring>

#include "check.h"

namespace bragg::test {

namespace {
std::atomic<int> failed_checks{0};
}

std::vector<Test>& registry() {
  static std::vector<Test> tests;
  return tests;
}

void fail(const char* file, int line, const std::string& what) {
  failed_checks.fetch_add(1, std::memory_order_relaxed);
  std::printf("  %s:%d: %s\n", file, line, what.c_str());
}

static bool run(const Test& test) {
  std::printf("%s\n", test.name);
  std::fflush(stdout);  // a crash leaves the name of its test as the last line
  const int before = failed_checks.load();
  test.run();
  return failed_checks.load() == before;
}

}  // namespace bragg::test

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const auto& test : bragg::test::registry()) {
    if (argc > 1 && std::strstr(test.name, argv[1]) == nullptr) continue;
    ++(bragg::test::run(test) ? passed : failed);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
