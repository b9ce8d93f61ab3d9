// Marks and started ranges of NVTX.
#include <thread>
#include <vector>

#include "check.h"
#include "nvtx_copy.h"

namespace {

using bragg::Event;
using bragg::EventKind;
using bragg::FrameKind;
using bragg::nvtx::Domain;
using bragg::test::ActiveSession;
using bragg::test::Copy;
using bragg::test::Path;
using bragg::test::path_of;
using bragg::test::text;

TEST(marks_and_started_ranges_are_markers_where_they_were_made) {
  const ActiveSession session;
  const Copy copy;
  Domain* domain = copy.create_domain("requests");
  copy.push("serve");
  copy.mark("tick");
  const uint64_t first = copy.start("first");
  const uint64_t second = copy.start(domain, text("second"));
  copy.pop();
  copy.end(first);  // while the second, started later, is still open
  copy.end(domain, second);
  const std::vector<Event> events = ActiveSession::events();
  REQUIRE(events.size() == 4);
  CHECK_EQ(events[0].kind, EventKind::Mark);
  CHECK(path_of(events[0].shadow) == (Path{{FrameKind::Scope, "serve"}, {FrameKind::Marker, "tick"}}));
  CHECK_EQ(events[0].interval.start_ns, events[0].interval.end_ns);
  CHECK_EQ(events[1].kind, EventKind::Scope);
  CHECK_EQ(events[2].kind, EventKind::Range);
  CHECK(path_of(events[2].shadow) == (Path{{FrameKind::Scope, "serve"}, {FrameKind::Marker, "first"}}));
  CHECK(path_of(events[3].shadow) == (Path{{FrameKind::Scope, "serve"}, {FrameKind::Marker, "requests: second"}}));
  CHECK(events[2].interval.start_ns < events[1].interval.end_ns &&
        events[1].interval.end_ns <= events[2].interval.end_ns);
  CHECK_EQ(events[2].mask, 1);
}

TEST(a_range_ends_once_and_on_any_thread) {
  const ActiveSession session;
  const Copy copy;
  const uint64_t range = copy.start("handed over");
  std::vector<Event> elsewhere;
  std::thread([&] {
    copy.end(range);
    elsewhere = ActiveSession::events();
  }).join();
  REQUIRE(elsewhere.size() == 1);
  CHECK_EQ(elsewhere[0].kind, EventKind::Range);
  for (const uint64_t id : {range, uint64_t{0}, uint64_t{1}, range + 1, ~uint64_t{0}}) copy.end(id);
  CHECK(ActiveSession::events().empty());
}

TEST(a_range_stays_open_while_any_number_of_others_come_and_go) {
  const ActiveSession session;
  const Copy copy;
  const uint64_t kept = copy.start("whole run");
  size_t ended = 0;
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 1000; ++j) copy.end(copy.start("short"));
    ended += ActiveSession::events().size();
  }
  CHECK_EQ(ended, 50'000);
  copy.end(kept);
  const std::vector<Event> events = ActiveSession::events();
  REQUIRE(events.size() == 1);
  CHECK(path_of(events[0].shadow) == (Path{{FrameKind::Marker, "whole run"}}));
}

TEST(a_full_table_of_open_ranges_drops_and_counts) {
  const ActiveSession session;
  const Copy copy;
  auto& dropped = bragg::ThreadContext::current().dropped;
  const uint64_t before = dropped.load();
  std::vector<uint64_t> open;
  while (dropped.load() == before) open.push_back(copy.start("leaked"));
  CHECK_EQ(open.back(), 0);
  CHECK(open.size() > 10'000);
  for (const uint64_t range : open) {
    copy.end(range);
    (void)ActiveSession::events();
  }
  CHECK(copy.start("again") != 0);
}

}  // namespace
