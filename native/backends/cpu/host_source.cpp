#include "backends/cpu/host_source.h"

#include "context/context_lenders.h"
#include "context/thread_registry.h"

namespace bragg {
namespace {

// Threads write whenever something records: there is nothing to start.
class HostSource final : public EventSource {
 public:
  void start(const SourceOptions&) override {}
  void collect(const Collecting&) override {}
  void stop() override {}
  void poll(uint64_t) override {}
  void drain(int64_t, bool) override {}  // what a thread wrote is here
  void describe(JsonObject&, const SourceOptions&) const override {}
  [[nodiscard]] bool is_of_host() const override { return true; }

  bool take(EventSink& sink) override {
    ThreadRegistry::instance().for_each([&](ThreadContext& thread) {
      const bool exited = thread.exited.load(std::memory_order_acquire);
      thread.ring.drain([&](const Event& event) { sink.take(thread, event); });
      if (exited) ThreadRegistry::instance().release(&thread);
    });
    return false;
  }

  void lock_for_fork() override {
    ThreadRegistry::instance().lock_for_fork();
    context_lenders.lock_for_fork();
  }
  void unlock_after_fork() override {
    context_lenders.unlock_after_fork();
    ThreadRegistry::instance().unlock_after_fork();
  }
  void after_fork_in_child() override {
    ThreadRegistry::instance().keep_only(ThreadContext::current_if_any());
    context_lenders.keep_only(ThreadContext::current_if_any());
  }
};

}  // namespace

EventSource& host_source() {
  static EventSource& source = *new HostSource;  // threads may outlive static destruction
  return source;
}

}  // namespace bragg
