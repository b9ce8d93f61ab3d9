#include "backends/cuda/samples/launch_gate.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "context/thread_registry.h"

namespace bragg {
namespace {

constexpr auto kNap = std::chrono::microseconds(20);
// A launch waits for the GPU when the driver's queue is full. The others are not held up longer than this.
constexpr auto kPatience = std::chrono::milliseconds(20);
// The first start takes 0.3 to 0.7 s. A call that does not return must not keep the program.
constexpr auto kClosedAtMost = std::chrono::seconds(5);

std::atomic<bool> is_closed{false};

}  // namespace

LaunchGate& LaunchGate::instance() {
  static LaunchGate gate;
  return gate;
}

// Either this thread sees that the gate is closed, or who closes it sees this thread: both store before they load.
void LaunchGate::enter(ThreadContext& thread) noexcept {
  if (thread.gated_calls++ > 0) return;
  thread.is_in_gated_call.store(true);
  if (!is_closed.load()) return;
  const auto until = std::chrono::steady_clock::now() + kClosedAtMost;
  const auto must_wait = [&] { return is_closed.load() && std::chrono::steady_clock::now() < until; };
  do {
    thread.is_in_gated_call.store(false);
    while (must_wait()) std::this_thread::sleep_for(kNap);
    thread.is_in_gated_call.store(true);
  } while (must_wait());
}

void LaunchGate::leave(ThreadContext& thread) noexcept {
  if (thread.gated_calls == 0 || --thread.gated_calls > 0) return;  // it began before the callbacks
  thread.is_in_gated_call.store(false, std::memory_order_release);
}

bool LaunchGate::close() {
  is_closed.store(true);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  bool all_out = true;
  ThreadRegistry::instance().for_each([&](const ThreadContext& thread) {
    while (thread.is_in_gated_call.load() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(kNap);
    all_out &= !thread.is_in_gated_call.load();
  });
  if (!all_out) open();
  return all_out;
}

void LaunchGate::open() { is_closed.store(false); }

LaunchGate::Closed::Closed() : is_closed_(instance().close()) {}
LaunchGate::Closed::~Closed() {
  if (is_closed_) instance().open();
}

void LaunchGate::after_fork_in_child() { open(); }

}  // namespace bragg
