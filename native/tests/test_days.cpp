// A program that runs for days: what grows with time, and what must not.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/bragg_core.h"
#include "check.h"
#include "context/calling_context_tree.h"
#include "context/name_quota.h"
#include "context/thread_context.h"
#include "data/capture_writer.h"
#include "data/captured_paths.h"
#include "data/clock_steps.h"
#include "scratch.h"

namespace {

using bragg::CallingContextTree;
using bragg::ChunkType;
using bragg::FrameId;
using bragg::FrameKind;
using bragg::NameQuota;
using bragg::NodeId;

// A session without a GPU that flushes when it is told to.
class Session {
 public:
  explicit Session(bool trace = false, uint32_t flush_interval_ms = 1u << 30, uint32_t tree_limit_mb = 0) {
    bragg_session_options options{};
    options.part_path = path_.c_str();
    options.meta_json = "{}";
    options.cupti_candidates = "";
    options.backend = BRAGG_CPU;
    options.trace = trace;
    options.flush_interval_ms = flush_interval_ms;
    options.tree_limit_mb = tree_limit_mb;
    int error = 0;
    char reason[256] = "";
    id_ = bragg_session_start(&options, &error, reason, sizeof reason);
    REQUIRE(id_ >= 0);
  }
  ~Session() { stop(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void flush() const { bragg_session_flush(id_); }
  // To a second capture.
  void advance() {
    int error = 0;
    char reason[256] = "";
    const std::string next = directory_.file("next.part");
    REQUIRE(bragg_session_advance(id_, next.c_str(), "{}", "{}", &error, reason, sizeof reason) == id_);
    ended_ = std::exchange(path_, next);
  }
  void stop() {
    if (id_ >= 0) bragg_session_stop(std::exchange(id_, -1), "{}");
  }
  [[nodiscard]] uint64_t size_bytes() const { return std::filesystem::file_size(path_); }
  [[nodiscard]] uint64_t ended_bytes() const { return std::filesystem::file_size(ended_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t count(const char* name) const {
    std::vector<char> json(1 << 16);
    (void)bragg_session_statistics(id_, json.data(), static_cast<uint32_t>(json.size()));
    const std::string key = std::string("\"") + name + "\":";
    const char* found = std::strstr(json.data(), key.c_str());
    if (found == nullptr) return ~uint64_t{0};
    return std::strtoull(found + key.size(), nullptr, 10);
  }

 private:
  bragg::test::ScratchDirectory directory_;
  std::string path_ = directory_.file("first.part");
  std::string ended_;
  int id_ = -1;
};

void enter(const std::string& name) {
  bragg_scope_enter(bragg_scope_frame(name.data(), static_cast<uint32_t>(name.size())));
}
void run_scope(const std::string& name) {
  enter(name);
  bragg_scope_exit();
}

// Rows of all chunks of a type.
uint64_t rows_of(const std::string& path, ChunkType type) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  uint64_t rows = 0;
  for (size_t at = 16; at + 24 <= bytes.size();) {
    uint16_t found = 0;
    uint32_t count = 0, payload_bytes = 0;
    std::memcpy(&found, &bytes[at + 4], sizeof found);
    std::memcpy(&count, &bytes[at + 8], sizeof count);
    std::memcpy(&payload_bytes, &bytes[at + 12], sizeof payload_bytes);
    if (found == static_cast<uint16_t>(type)) rows += count;
    at += 24 + (payload_bytes + 7) / 8 * 8;
  }
  return rows;
}

TEST(a_phase_writes_only_what_it_refers_to) {
  Session session;
  for (int i = 0; i < 5'000; ++i) run_scope("of the first phase " + std::to_string(i));
  session.flush();
  session.advance();
  enter("outer");
  run_scope("one");
  bragg_scope_exit();
  session.stop();
  CHECK(session.ended_bytes() > 200'000);
  CHECK(session.size_bytes() < 3'000);
  CHECK_EQ(rows_of(session.path(), ChunkType::Nodes), 3);
  CHECK_EQ(rows_of(session.path(), ChunkType::Frames), 3);
  CHECK(rows_of(session.path(), ChunkType::Strings) < 20);  // names of metrics are the process's
  CHECK_EQ(rows_of(session.path(), ChunkType::Metrics), 2);
}

TEST(an_idle_session_writes_nothing) {
  for (const bool trace : {false, true}) {
    const Session session(trace);
    run_scope("before");
    const auto writes_nothing = [&session] {
      session.flush();
      const uint64_t size_bytes = session.size_bytes();
      for (int i = 0; i < 100; ++i) session.flush();
      return session.size_bytes() == size_bytes;
    };
    // What another test has left behind may still come, and its end is told once a minute.
    CHECK(bragg::test::comes_true(writes_nothing));
  }
}

TEST(names_that_differ_in_their_numbers_have_a_quota) {
  NameQuota quota;
  for (uint32_t i = 0; i < NameQuota::kMaxAlike; ++i) CHECK(quota.admit("request " + std::to_string(i)));
  CHECK(quota.admit("request 4711 again"));
  CHECK(!quota.admit("request 99999999"));
  CHECK(quota.admit("layer 1"));
  CHECK(!quota.admit(std::string(NameQuota::kMaxNameBytes, 'x')));
}

TEST(names_beyond_the_quota_are_one_node_and_counted) {
  Session session;
  const uint32_t nodes = CallingContextTree::instance().size();
  constexpr int kNames = 50'000;
  for (int i = 0; i < kNames; ++i) run_scope("quota of requests " + std::to_string(i));
  CHECK_EQ(CallingContextTree::instance().size(), nodes + NameQuota::kMaxAlike + 1);
  CHECK_EQ(session.count("other_names"), kNames - NameQuota::kMaxAlike);
  CHECK_EQ(session.count("scopes"), kNames);
  run_scope("an ordinary name");
  CHECK_EQ(CallingContextTree::instance().size(), nodes + NameQuota::kMaxAlike + 2);
}

TEST(a_path_has_a_greatest_depth) {
  CallingContextTree tree;
  NodeId node = bragg::kRootNode;
  for (uint32_t i = 0; i < CallingContextTree::kMaxDepth + 100; ++i) node = tree.child(node, FrameId{1});
  CHECK_EQ(tree.size(), CallingContextTree::kMaxDepth + 1);
  CHECK_EQ(tree.too_deep(), 100);
}

// As ranges that a program begins and never ends.
TEST(entries_without_end_take_no_memory_without_end) {
  std::thread([] {
    constexpr int kEntries = 100'000;
    Session session;
    auto& thread = bragg::ThreadContext::current();
    for (int i = 0; i < kEntries; ++i) enter("never ends");
    const uint32_t depth = thread.depth();
    CHECK(depth < 10'000);
    CHECK_EQ(session.count("too_deep"), kEntries - CallingContextTree::kMaxDepth);
    for (int i = 0; i < kEntries; ++i) bragg_scope_exit();
    CHECK_EQ(thread.depth(), 0);
    CHECK_EQ(session.count("scopes"), depth);
    run_scope("after");
    CHECK_EQ(session.count("scopes"), depth + 1);
  }).join();
}

TEST(a_deep_captured_path_is_placed_on_a_small_stack) {
  auto& tree = CallingContextTree::instance();
  NodeId deep = bragg::kRootNode;
  for (uint32_t i = 0; i + 10 < CallingContextTree::kMaxDepth; ++i)
    deep = tree.child(deep, bragg::intern_frame(FrameKind::Scope, "captured"));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  pthread_t small;
  NodeId placed = deep;
  std::pair<NodeId, NodeId*> work{deep, &placed};
  REQUIRE(pthread_create(
              &small, &attributes,
              [](void* given) -> void* {
                const auto& [captured, result] = *static_cast<std::pair<NodeId, NodeId*>*>(given);
                *result = bragg::captured_below(bragg::kRootNode, captured);
                return nullptr;
              },
              &work) == 0);
  pthread_join(small, nullptr);
  uint32_t depth = 0;
  for (; placed != bragg::kRootNode; placed = tree.parent(placed)) ++depth;
  CHECK_EQ(depth, CallingContextTree::kMaxDepth - 10 + 1);
}

TEST(the_tree_has_a_limit_in_bytes) {
  CallingContextTree tree;
  tree.set_limit(1000 * CallingContextTree::kNodeBytes);
  for (uint32_t frame = 1; frame <= 1500; ++frame) (void)tree.child(bragg::kRootNode, FrameId{frame});
  CHECK_EQ(tree.size(), 1000);
  CHECK_EQ(tree.refused(), 501);
  CHECK_EQ(tree.child(bragg::kRootNode, FrameId{1500}), bragg::kRootNode);
  CHECK_EQ(tree.child(bragg::kRootNode, FrameId{7}), NodeId{7});  // known ones stay
}

TEST(a_session_sets_the_limit_of_the_tree) {
  const uint32_t limit = (1u << 20) / CallingContextTree::kNodeBytes;
  {
    const Session session(false, 1u << 30, 1);
    const uint32_t before = CallingContextTree::instance().size();
    for (uint32_t i = 0; i < limit; ++i) run_scope("limited " + std::to_string(i));
    CHECK_EQ(CallingContextTree::instance().size(), std::max(before, limit));
    CHECK(session.count("refused_nodes") > 0);
  }
  const Session larger(false, 1u << 30, 64);
  const uint32_t size = CallingContextTree::instance().size();
  run_scope("there is room again");
  CHECK_EQ(CallingContextTree::instance().size(), size + 1);
}

}  // namespace

// The system's clocks, as tests set them: the core and the fakes ask these functions.
namespace {
std::atomic<int64_t> realtime_set_ns{0};
std::atomic<int64_t> passed_ns{0};
}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const int64_t added_ns = passed_ns.load() + (clock == CLOCK_REALTIME ? realtime_set_ns.load() : 0);
  if (added_ns == 0) return result;
  const int64_t ns = int64_t{time->tv_sec} * 1'000'000'000 + time->tv_nsec + added_ns;
  *time = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  return result;
}

// What std::condition_variable waits by. The kernel's clock is the real one.
extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const struct timespec* until) {
  static auto* const wait =
      reinterpret_cast<decltype(&pthread_cond_clockwait)>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  const int64_t ns = int64_t{until->tv_sec} * 1'000'000'000 + until->tv_nsec - passed_ns.load();
  const timespec real{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  return wait(condition, mutex, clock, &real);
}

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kHourNs = 3600 * kSecondNs;

TEST(records_meet_the_recorders_clock_on_either_side_of_a_step) {
  for (const int64_t by_ns : {-kHourNs, kHourNs}) {
    bragg::ClockSteps steps;
    steps.note(0, 10'000 * kSecondNs);
    steps.note(by_ns, 10'001 * kSecondNs);
    int64_t start_ns = 10'000 * kSecondNs + 1, end_ns = 10'000 * kSecondNs + 6;  // ran before the step
    steps.correct(start_ns, end_ns, 10'001 * kSecondNs);
    CHECK_EQ(start_ns, 10'000 * kSecondNs + 1);
    CHECK_EQ(end_ns, 10'000 * kSecondNs + 6);
    start_ns = 10'002 * kSecondNs + by_ns, end_ns = start_ns + 5;  // and after it
    steps.correct(start_ns, end_ns, 10'002 * kSecondNs + 10);
    CHECK_EQ(start_ns, 10'002 * kSecondNs);
    CHECK_EQ(end_ns, 10'002 * kSecondNs + 5);
    CHECK_EQ(steps.json(0), "[{\"at_ns\":10001000000000,\"by_ns\":" + std::to_string(by_ns) + "}]");
    CHECK(steps.json(10'002 * kSecondNs).empty());
  }
}

TEST(the_pace_of_the_system_clock_is_followed_and_no_step) {
  bragg::ClockSteps steps;
  for (int64_t poll = 1; poll <= 1000; ++poll) steps.note(poll * 10'000, poll * 20'000'000);
  CHECK(steps.empty());
  int64_t start_ns = 50 * kSecondNs, end_ns = start_ns + 5;
  steps.correct(start_ns, end_ns, 0);
  CHECK_EQ(start_ns, 50 * kSecondNs - 10'000'000);
  int64_t unknown_ns = 0;
  steps.correct(unknown_ns, end_ns, 0);
  CHECK_EQ(unknown_ns, 0);
}

TEST(a_clock_that_is_set_back_stops_no_flush_and_changes_no_duration) {
  Session session(true, 20);
  const auto grows = [&] {
    const uint64_t before = session.size_bytes();
    for (int tries = 0; tries < 1000 && session.size_bytes() == before; ++tries) {
      run_scope("while the clock is set");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return session.size_bytes() > before;
  };
  CHECK(grows());
  enter("across the step");
  const int64_t before_ns = bragg::now_ns();
  realtime_set_ns.store(-kHourNs);
  CHECK(bragg::now_ns() - before_ns < 60 * kSecondNs);
  CHECK(bragg::now_ns() >= before_ns);
  bragg_scope_exit();
  CHECK(grows());
  CHECK(grows());
  session.flush();
  std::ifstream file(session.path(), std::ios::binary);
  const std::string capture{std::istreambuf_iterator<char>(file), {}};
  CHECK(capture.find("\"clock_steps\":[{") != std::string::npos);
  realtime_set_ns.store(0);
}

TEST(a_wait_for_a_condition_ends_by_the_clock_that_tests_set) {
  passed_ns.fetch_add(kHourNs);
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  CHECK(condition.wait_for(lock, std::chrono::milliseconds(1)) == std::cv_status::timeout);
}

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// 24 h in steps of 20 s.
template <class EachStep>
void let_a_day_pass(const Session& session, const EachStep& each_step) {
  for (int step = 0; step < 24 * 180; ++step) {
    each_step(step);
    passed_ns.fetch_add(20 * kSecondNs);
    session.flush();
  }
}

TEST(a_day_of_doing_nothing_adds_little_to_a_capture) {
  for (const bool trace : {false, true}) {
    const Session session(trace, 1000);
    run_scope("before the day");
    session.flush();
    const uint64_t before = session.size_bytes();
    let_a_day_pass(session, [](int) {});
    CHECK(session.size_bytes() > before);  // how long it has run
    CHECK(session.size_bytes() - before < 1'000'000);
  }
}

TEST(a_day_of_requests_takes_no_more_memory_than_an_hour) {
  const Session session(false, 1000);
  uint64_t hour_bytes = 0;
  uint32_t hour_nodes = 0;
  let_a_day_pass(session, [&](int step) {
    std::thread([&] {
      for (int i = 0; i < 100; ++i) {
        enter("request of the day " + std::to_string(step * 100 + i));
        run_scope("handle");
        bragg_scope_exit();
      }
      enter("never ends");
    }).join();
    if (step != 180) return;
    hour_bytes = resident_bytes();
    hour_nodes = CallingContextTree::instance().size();
  });
  CHECK_EQ(CallingContextTree::instance().size(), hour_nodes);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which keep what was freed
  CHECK(resident_bytes() < hour_bytes + (16u << 20));                // what the allocator keeps
#endif
  CHECK(session.size_bytes() < (16u << 20));
}

}  // namespace
