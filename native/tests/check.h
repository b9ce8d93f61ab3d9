#pragma once
// The native test harness: TEST registers, CHECK and CHECK_EQ report and go on, REQUIRE reports and leaves the test.
// Every test executable is its own sources plus main.cpp.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace bragg::test {

struct Test {
  const char* name;
  void (*run)();
};

// All registered tests, in the order of their translation units.
std::vector<Test>& registry();

// Counts and prints one failed check of the running test. Thread-safe.
void fail(const char* file, int line, const std::string& what);

inline bool add(const char* name, void (*run)()) {
  registry().push_back({name, run});
  return true;
}

template <typename T>
std::string show(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return show(static_cast<long long>(value));
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (requires(std::ostream& stream) { stream << value; }) {
    std::ostringstream stream;
    stream << value;
    return stream.str();
  } else {
    return "<" + std::to_string(sizeof(T)) + " bytes>";
  }
}

inline bool check(bool holds, const char* condition, const char* file, int line) {
  if (!holds) fail(file, line, condition);
  return holds;
}

template <typename A, typename B>
bool check_equal(const A& a, const B& b, const char* expression, const char* file, int line) {
  bool equal;
  if constexpr (std::integral<A> && std::integral<B> && !std::same_as<A, bool> && !std::same_as<B, bool>) {
    equal = std::cmp_equal(a, b);
  } else {
    equal = a == b;
  }
  if (!equal) fail(file, line, std::string(expression) + ": " + show(a) + " != " + show(b));
  return equal;
}

// Within a minute, however busy the machine is.
template <class Condition>
[[nodiscard]] bool comes_true(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (auto nap = std::chrono::microseconds(50); !condition(); nap = std::min(2 * nap, decltype(nap)(10'000))) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(nap);
  }
  return true;
}

}  // namespace bragg::test

#define TEST(name)                                                                         \
  static void name();                                                                      \
  [[maybe_unused]] static const bool name##_is_registered = bragg::test::add(#name, name); \
  static void name()

#define CHECK(condition) bragg::test::check(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(a, b) bragg::test::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define REQUIRE(condition)         \
  do {                             \
    if (!CHECK(condition)) return; \
  } while (false)
