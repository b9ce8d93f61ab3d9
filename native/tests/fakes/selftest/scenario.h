// Scenarios of the fakes' own test: each runs in a process of its own, under the settings it names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "check.h"

namespace bragg::fake::selftest {

using Settings = std::vector<std::pair<const char*, std::string>>;  // BRAGG_FAKE_<first>=<second>

struct Scenario {
  std::string name;
  Settings settings;
  void (*run)();
};

std::vector<Scenario>& scenarios();

// The same scenario for several releases of CUPTI.
inline bool add_for_releases(const char* name, const std::vector<std::string>& releases, void (*run)()) {
  for (const std::string& release : releases)
    scenarios().push_back({name + ("_" + release), {{"CUPTI_VERSION", release}}, run});
  return true;
}

}  // namespace bragg::fake::selftest

#define SCENARIO(name, ...)                                                               \
  static void name();                                                                     \
  [[maybe_unused]] static const bool name##_is_added =                                    \
      (bragg::fake::selftest::scenarios().push_back({#name, {__VA_ARGS__}, name}), true); \
  static void name()

#define SCENARIO_FOR(name, ...)                                            \
  static void name();                                                      \
  [[maybe_unused]] static const bool name##_is_added =                     \
      bragg::fake::selftest::add_for_releases(#name, {__VA_ARGS__}, name); \
  static void name()
