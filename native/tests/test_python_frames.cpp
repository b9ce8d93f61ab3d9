// The walk over frames of three shapes that CPython has had, built here by hand.
#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include "check.h"
#include "context/python_frames.h"
#include "python_objects.h"

namespace {

using bragg::PythonFrameIterator;
using bragg::PythonLayout;
using bragg::RawFrame;
using bragg::test::IndexFrame;
using bragg::test::Interpreter;
using bragg::test::none;
using bragg::test::PointerFrame;
using bragg::test::tagged;

// All instructions are in the first line.
struct LineTable {
  int64_t size = 2;
  std::array<uint8_t, 2> data{254, 0};
};
constinit LineTable one_line;

struct Code {
  int32_t first_line = 10;
  const void* line_table = &one_line;
  std::array<uint16_t, 64> instructions{};
};

struct ControlFrame {
  uint64_t other = 0;
  void* current = nullptr;
};

PythonLayout index_layout() { return bragg::test::index_layout<Code, LineTable>(); }

PythonLayout pointer_layout() { return bragg::test::pointer_layout<Code, LineTable>(); }

std::vector<RawFrame> walk() {
  std::vector<RawFrame> frames;
  PythonFrameIterator iterator;
  for (RawFrame frame{}; iterator.next(frame);) frames.push_back(frame);
  return frames;
}

TEST(frames_with_an_instruction_index_are_walked_innermost_first) {
  const Code outer_code, inner_code;
  IndexFrame outer{1, nullptr, &outer_code, 7};
  IndexFrame inner{1, &outer, &inner_code, -1};
  const Interpreter interpreter(index_layout(), &inner);
  const auto frames = walk();
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].frame == &inner && frames[0].code == &inner_code);
  CHECK_EQ(frames[0].instruction_offset, 0u);  // not begun
  CHECK(frames[1].frame == &outer && frames[1].code == &outer_code);
  CHECK_EQ(frames[1].instruction_offset, 14u);
}

TEST(frames_with_tagged_references_are_walked_without_the_interpreters_own) {
  alignas(16) const Code outer_code, inner_code;
  PointerFrame outer{tagged(&outer_code), nullptr, 8, &outer_code.instructions[5], 0};
  PointerFrame around_constructor{tagged(&outer_code), &outer, tagged(&none), &outer_code.instructions[0], 0};
  PointerFrame generator{tagged(&inner_code), &around_constructor, 8, &inner_code.instructions[3], 1};
  PointerFrame entry{tagged(&none), &generator, 0, nullptr, 3};
  const Interpreter interpreter(pointer_layout(), &entry);
  const auto frames = walk();
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].frame == &generator && frames[0].code == &inner_code);
  CHECK_EQ(frames[0].instruction_offset, 6u);
  CHECK(frames[1].frame == &outer && frames[1].code == &outer_code);
  CHECK_EQ(frames[1].instruction_offset, 10u);
}

TEST(the_innermost_frame_may_be_behind_a_record_on_the_c_stack) {
  alignas(16) const Code code;
  PointerFrame frame{tagged(&code), nullptr, 8, code.instructions.data() - 1, 0};  // 3.11: one before the first
  ControlFrame control{0, &frame};
  PythonLayout layout = pointer_layout();
  layout.has_cframe = 1;
  layout.cframe_frame = offsetof(ControlFrame, current);
  const Interpreter interpreter(layout, &control);
  CHECK(bragg::current_python_frame() == &frame);
  const auto frames = walk();
  REQUIRE(frames.size() == 1);
  CHECK_EQ(frames[0].instruction_offset, 0u);
}

TEST(a_thread_without_python_has_no_frames) {
  const Code code;
  IndexFrame frame{1, nullptr, &code, 0};
  const Interpreter interpreter(index_layout(), &frame);
  CHECK(bragg::python_walk_available());
  const void* other_threads_frame = &frame;
  std::thread([&] { other_threads_frame = bragg::current_python_frame(); }).join();
  CHECK(other_threads_frame == nullptr);
  CHECK(bragg::current_python_frame() == &frame);
}

TEST(a_thread_state_without_frames_is_empty_in_both_shapes) {
  ControlFrame control;
  PythonLayout layout = index_layout();
  const Interpreter direct(layout, nullptr);
  CHECK_EQ(walk().size(), 0u);
  layout.has_cframe = 1;
  layout.cframe_frame = offsetof(ControlFrame, current);
  const Interpreter through_control(layout, &control);
  CHECK_EQ(walk().size(), 0u);
}

TEST(a_walk_from_frames_that_were_seen_has_those_that_have_returned_since_above_the_first_that_still_runs) {
  const Code outer_code, caller_code, place_code, next_code;
  IndexFrame outer{1, nullptr, &outer_code, 7};
  IndexFrame caller{1, &outer, &caller_code, 9};
  IndexFrame next{1, &caller, &next_code, 2}, inner;
  const Interpreter interpreter(index_layout(), &next);
  const RawFrame called_at{&caller_code, 4, &caller};
  // The frame of the next call may lie where the one that has returned lay.
  const RawFrame returned{&place_code, 6, &next};
  const auto walk_from = [](const std::vector<RawFrame>& seen) {
    std::vector<RawFrame> frames;
    PythonFrameIterator iterator(PythonFrameIterator(), seen);
    uint32_t n_frames = 0;
    iterator.for_each([&](const RawFrame&, uint64_t) { return ++n_frames > 0; });
    for (RawFrame frame{}; iterator.next(frame);) frames.push_back(frame);
    CHECK_EQ(n_frames, frames.size());
    return frames;
  };
  const RawFrame outermost{&outer_code, 14, &outer};
  const RawFrame inner_returned{&next_code, 2, &inner};
  const std::vector now{RawFrame{&next_code, 4, &next}, {&caller_code, 18, &caller}, outermost};
  CHECK((walk_from({inner_returned, returned, called_at, outermost}) ==
         std::vector{inner_returned, returned, called_at, outermost}));
  CHECK((walk_from({inner_returned, returned, called_at}) ==
         std::vector{inner_returned, returned, called_at, outermost}));
  CHECK((walk_from({called_at, outermost}) == std::vector{called_at, outermost}));
  CHECK((walk_from({inner_returned, returned}) == now));  // by whom they were called is not known
  CHECK((walk_from({returned, {&place_code, 0, &caller}}) == now));
  CHECK((walk_from({}) == now));
  // A call that has returned, and then one of the same function at the same address, from another line.
  const RawFrame called_before{&outer_code, 6, &outer};
  CHECK((walk_from({returned, called_at, called_before}) == std::vector{returned, called_at, called_before}));
}

TEST(a_walk_matches_only_the_very_frames_and_lines) {
  const Code outer_code, inner_code;
  IndexFrame outer{1, nullptr, &outer_code, 7};
  IndexFrame inner{1, &outer, &inner_code, 3};
  const Interpreter interpreter(index_layout(), &inner);
  const auto matches = [](std::vector<bragg::ExpectedFrame> expected) {
    return bragg::python_walk_matches(expected.data(), expected.size());
  };
  CHECK(matches({{&inner_code, 10}, {&outer_code, 10}}));
  CHECK(!matches({{&inner_code, 10}, {&outer_code, 11}}));
  CHECK(!matches({{&outer_code, 10}, {&inner_code, 10}}));
  CHECK(!matches({{&inner_code, 10}}));
  CHECK(!matches({{&inner_code, 10}, {&outer_code, 10}, {&outer_code, 10}}));
}

TEST(an_invalid_layout_switches_the_walk_off) {
  const Code code;
  IndexFrame frame{1, nullptr, &code, 0};
  const Interpreter interpreter(index_layout(), &frame);
  PythonLayout invalid = index_layout();
  invalid.is_valid = 0;
  bragg::set_python_layout(invalid);
  CHECK(!bragg::python_walk_available());
  CHECK_EQ(walk().size(), 0u);
}

}  // namespace
