// Usage: fake_selftest [--list | name of a scenario]. With none: all of them, each in a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "selftest/scenario.h"

namespace bragg::test {

static std::atomic<int> failed_checks{0};

void fail(const char* file, int line, const std::string& what) {
  failed_checks.fetch_add(1, std::memory_order_relaxed);
  std::printf("  %s:%d: %s\n", file, line, what.c_str());
}

}  // namespace bragg::test

namespace bragg::fake::selftest {

std::vector<Scenario>& scenarios() {
  static std::vector<Scenario> all;
  return all;
}

static int run_here(const Scenario& scenario) {
  for (const auto& [name, value] : scenario.settings)
    setenv((std::string("BRAGG_FAKE_") + name).c_str(), value.c_str(), 1);
  scenario.run();
  std::fflush(stdout);
  return test::failed_checks.load() == 0 ? 0 : 1;
}

// The process is a fresh image: sanitizers and libraries start anew.
static bool run_apart(const char* program, const Scenario& scenario) {
  std::printf("%s\n", scenario.name.c_str());
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, scenario.name.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int run_all(const char* program) {
  int failed = 0;
  for (const Scenario& scenario : scenarios()) failed += run_apart(program, scenario) ? 0 : 1;
  std::printf("%zu passed, %d failed\n", scenarios().size() - static_cast<size_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace bragg::fake::selftest

int main(int argc, char** argv) {
  using namespace bragg::fake::selftest;
  if (argc == 1) return run_all("/proc/self/exe");
  if (std::strcmp(argv[1], "--list") == 0) {
    for (const Scenario& scenario : scenarios()) std::printf("%s\n", scenario.name.c_str());
    return 0;
  }
  const auto found = std::find_if(scenarios().begin(), scenarios().end(),
                                  [&](const Scenario& scenario) { return scenario.name == argv[1]; });
  return found == scenarios().end() ? 2 : run_here(*found);
}
