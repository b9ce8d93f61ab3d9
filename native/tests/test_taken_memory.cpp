// What a program takes from CUDA itself, beside the segments of PyTorch's allocator.
#include <cstdint>
#include <map>

#include "backends/gpu_memory/mapped_memory.h"
#include "backends/gpu_memory/taken_memory.h"
#include "check.h"

namespace {

using bragg::ContextNodes;
using bragg::HeldMemory;
using bragg::MemoryMetric;
using bragg::NodeId;
using bragg::TakenMemory;

constexpr uint32_t kPhase = 3;

struct Program {
  Program() { held.begin_phase(kPhase, 1); }

  void take(uint64_t thread, uint64_t address, uint64_t bytes, uint32_t node) {
    taken.take({thread, 0, address, bytes, {NodeId{node}, NodeId{node}}, ++time_ns});
  }
  // By node, of all threads.
  std::map<uint32_t, int64_t> told(MemoryMetric metric) {
    for (const bragg::MemoryChange& change : held.take_changes())
      told_[change.metric][number_of(change.nodes.shadow)] += change.delta;
    return told_[metric];
  }

  HeldMemory held{ContextNodes{NodeId{99}, NodeId{99}}};
  TakenMemory taken{held};
  int64_t time_ns = 1;

 private:
  std::map<MemoryMetric, std::map<uint32_t, int64_t>> told_;
};

using ByNode = std::map<uint32_t, int64_t>;

TEST(what_was_taken_is_held_until_it_is_given_back) {
  Program program;
  program.take(1, 0x1000, 100, 10);
  program.take(1, 0x2000, 50, 20);
  program.taken.give_back(1, 0x1000, 5);
  program.take(1, 0x1000, 30, 30);
  program.taken.settle(INT64_MAX);
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{10, 100}, {20, 50}}));
  CHECK(program.told(MemoryMetric::End) == (ByNode{{20, 50}, {30, 30}}));
  CHECK(program.told(MemoryMetric::Reserved) == (ByNode{{10, 100}, {20, 50}, {30, 30}}));
  CHECK(program.told(MemoryMetric::Reservations) == (ByNode{{10, 1}, {20, 1}, {30, 1}}));
}

TEST(segments_of_pytorch_are_not_held) {
  Program program;
  program.take(1, 0x10000, 0x1000, 10);  // a segment
  program.take(2, 0x20000, 0x1000, 20);  // by another thread at the same time
  program.taken.note_block({0x10200, 0x200});
  program.taken.settle(1);
  CHECK(program.taken.has_open());  // of the other thread, taken later than that
  program.taken.give_back(1, 0x10000, 6);
  program.taken.note_block({0x30000, 0x200});
  program.taken.settle(INT64_MAX);
  CHECK(!program.taken.has_open());
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{20, 0x1000}}));
  CHECK(program.told(MemoryMetric::End) == (ByNode{{20, 0x1000}}));
}

TEST(what_was_taken_before_the_recording_is_not_known_when_it_is_given_back) {
  Program program;
  program.taken.give_back(1, 0x1000, 2);
  program.take(1, 0x1000, 100, 10);
  program.taken.give_back(1, 0x1000, 4);
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{10, 100}}));
  CHECK(program.told(MemoryMetric::End).empty());
}

// Each handle has a call path of its own number.
struct MappedProgram : Program {
  bragg::MappedMemory mapped{taken};

  void create(uint64_t handle, uint64_t bytes) {
    const NodeId node{static_cast<uint32_t>(handle)};
    mapped.create(handle, {1, 0, 0, bytes, {node, node}, ++time_ns});
  }
};

TEST(memory_that_is_mapped_is_held_as_long_as_anything_refers_to_it) {
  MappedProgram program;
  program.create(10, 0x1000);  // released at once, held by its two addresses
  program.mapped.map(10, {0x100000, 0x1000});
  program.mapped.map(10, {0x200000, 0x1000});
  program.mapped.release(10, 1, ++program.time_ns);
  program.mapped.unmap({0x100000, 0x1000}, 1, ++program.time_ns);
  program.create(20, 0x2000);  // released and unmapped
  program.mapped.map(20, {0x300000, 0x2000});
  CHECK(program.mapped.retain(20));
  program.mapped.release(20, 1, ++program.time_ns);
  program.mapped.unmap({0x2F0000, 0x20000}, 1, ++program.time_ns);
  program.taken.settle(INT64_MAX);
  CHECK(program.told(MemoryMetric::End) == (ByNode{{10, 0x1000}, {20, 0x2000}}));
  program.mapped.unmap({0x200000, 0x1000}, 1, ++program.time_ns);
  program.mapped.release(20, 1, ++program.time_ns);
  CHECK(program.told(MemoryMetric::End) == (ByNode{{10, 0}, {20, 0}}));
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{10, 0x1000}, {20, 0x2000}}));
  CHECK(!program.mapped.retain(10) && !program.mapped.retain(77));
}

TEST(pieces_of_expandable_segments_are_not_held) {
  MappedProgram program;
  for (const uint64_t piece : {0, 1, 2}) program.create(10 + piece, 0x1000);
  for (const uint64_t piece : {0, 1, 2}) program.mapped.map(10 + piece, {0x100000 + piece * 0x1000, 0x1000});
  program.create(20, 0x1000);
  program.mapped.map(20, {0x900000, 0x1000});
  program.taken.note_block({0x100800, 0x1000});  // begins in the first piece and ends in the second
  program.taken.note_block({0x102000, 0x200});
  program.taken.settle(INT64_MAX);
  program.mapped.unmap({0x100000, 0x3000}, 1, ++program.time_ns);
  for (const uint64_t piece : {0, 1, 2}) program.mapped.release(10 + piece, 1, ++program.time_ns);
  CHECK(program.told(MemoryMetric::Peak) == (ByNode{{20, 0x1000}}));
  CHECK(program.told(MemoryMetric::End) == (ByNode{{20, 0x1000}}));
}

}  // namespace
