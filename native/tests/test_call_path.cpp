// Native functions in the calling context tree: between entries, and without the functions around them.
#include <algorithm>
#include <array>
#include <vector>

#include "check.h"
#include "context/loaded_code.h"
#include "context/thread_context.h"

namespace {

using bragg::CallingContextTree;
using bragg::FrameId;
using bragg::FrameKind;
using bragg::NodeId;
using bragg::recording_state;
using bragg::Source;
using bragg::ThreadContext;

class WithNativeContext {
 public:
  WithNativeContext() { set(1); }
  ~WithNativeContext() { set(0); }
  WithNativeContext(const WithNativeContext&) = delete;
  WithNativeContext& operator=(const WithNativeContext&) = delete;

 private:
  static void set(bragg::SessionMask mask) {
    recording_state.python.store(mask);
    recording_state.native.store(mask);
  }
};

FrameId operator_frame(const char* name) { return bragg::intern_frame(FrameKind::Operator, name); }

template <class Function>
FrameId frame_of(Function* function) {
  return bragg::LoadedCode::instance().find(reinterpret_cast<uintptr_t>(function)).frame;
}

[[gnu::noinline]] void open(const char* name) {
  ThreadContext::current().push_operator(Source::Itt, operator_frame(name));
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] NodeId innermost() {
  const NodeId node = ThreadContext::current().here_in_native_code().python;
  asm volatile("" ::: "memory");
  return node;
}

[[gnu::noinline]] NodeId multiply() {
  open("mul");
  const NodeId node = innermost();
  ThreadContext::current().pop(Source::Itt);
  return node;
}

[[gnu::noinline]] NodeId add() {
  open("add");
  const NodeId node = multiply();
  ThreadContext::current().pop(Source::Itt);
  return node;
}

// Of the frames of a node's path those that are asked for, outermost first.
std::vector<FrameId> among(NodeId node, const std::vector<FrameId>& wanted) {
  auto& tree = CallingContextTree::instance();
  std::vector<FrameId> path;
  for (; node != bragg::kRootNode; node = tree.parent(node))
    if (std::ranges::find(wanted, tree.frame(node)) != wanted.end()) path.push_back(tree.frame(node));
  std::ranges::reverse(path);
  return path;
}

}  // namespace

TEST(functions_are_below_the_operator_that_they_run_in_and_those_around_it_are_not) {
  const WithNativeContext native;
  const std::vector<FrameId> all{operator_frame("add"), operator_frame("mul"), frame_of(add), frame_of(multiply),
                                 frame_of(innermost)};
  CHECK(among(add(), all) == (std::vector{all[0], all[1], all[4]}));
  CHECK(among(multiply(), all) == (std::vector{all[1], all[4]}));
}

TEST(a_thread_without_entries_has_all_of_its_functions) {
  const WithNativeContext native;
  const std::vector<FrameId> all{frame_of(innermost)};
  CHECK(among(innermost(), all) == all);
  CHECK_EQ(ThreadContext::current().cut_paths.load(), 0u);
}

TEST(the_same_path_is_the_same_node) {
  const WithNativeContext native;
  std::array<NodeId, 50> nodes;
  for (NodeId& node : nodes) node = add();
  CHECK(std::ranges::all_of(nodes, [&](NodeId node) { return node == nodes[0]; }));
}

TEST(without_the_native_context_there_are_no_functions) {
  const std::vector<FrameId> all{operator_frame("add"), operator_frame("mul"), frame_of(add), frame_of(multiply),
                                 frame_of(innermost)};
  CHECK(among(add(), all) == (std::vector{all[0], all[1]}));
}
