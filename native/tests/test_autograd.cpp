// Operators of a backward pass below the ones they belong to, on a stand-in for PyTorch's engine.
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/autograd.h"
#include "thread_path.h"

namespace {

using bragg::FrameKind;
using bragg::Source;
using bragg::autograd::TaskKind;
using bragg::test::here;

// A node of autograd as of PyTorch 2.13, with references that the engine holds.
struct Node {
  const void* virtual_table = nullptr;
  uint64_t references = 2;
  uint64_t number = 0;
  uint64_t topological_number = 0;
  uint64_t has_parent = 0;
  uint64_t thread = 0;
};

thread_local uint64_t next_number = 0;
thread_local uint64_t thread_number = 0;
thread_local Node* evaluated = nullptr;

struct Reference {
  Node* node;
  ~Reference() {}  // so that it is returned as the real one is
};
Reference current_node() {
  if (evaluated != nullptr) ++evaluated->references;
  return {evaluated};
}

Node new_node() { return {.number = next_number++, .thread = thread_number}; }

class ExistingSession {
 public:
  ExistingSession() {
    bragg::autograd::follow({.next_number = [] { return next_number; },
                             .thread_number = [] { return thread_number; },
                             .current_node = reinterpret_cast<void*>(current_node),
                             .counts_references_itself = true,
                             .number_offset = offsetof(Node, number),
                             .thread_offset = offsetof(Node, thread)});
    static std::atomic<uint64_t> threads{0};
    thread_number = ++threads;  // as for a new thread: what earlier tests have left is not this one's
    bragg::recording_state.existing.store(1);
  }
  ~ExistingSession() { bragg::recording_state.existing.store(0); }
};

class Operator {
 public:
  explicit Operator(const std::string& name) {
    bragg::autograd::begin_range(Source::Itt, bragg::intern_frame(FrameKind::Operator, name),
                                 bragg::autograd::kind_of(name));
  }
  ~Operator() { bragg::autograd::end_range(Source::Itt); }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
};

// The engine, while it evaluates a node.
class Evaluation {
 public:
  explicit Evaluation(Node& node, const std::string& name = "MmBackward0")
      : outer_(std::exchange(evaluated, &node)), range_("autograd::engine::evaluate_function: " + name) {}
  ~Evaluation() { evaluated = outer_; }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Node* outer_;
  Operator range_;
};

Node node_of(const std::string& name) {
  const Operator scope(name);
  return new_node();
}

std::string path_in(Node& node) {
  const Evaluation evaluation(node);
  return here();
}

TEST(the_engine_is_told_from_operators_by_the_names_of_its_ranges) {
  CHECK_EQ(bragg::autograd::kind_of("aten::mm"), TaskKind::Operator);
  CHECK_EQ(bragg::autograd::kind_of("autograd::engine::evaluate_function: MmBackward0"), TaskKind::Node);
  CHECK_EQ(bragg::autograd::kind_of("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"),
           TaskKind::Gradient);
  CHECK_EQ(bragg::autograd::kind_of("autograd::engine::evaluate_function: torch::autograd::GraphRoot"),
           TaskKind::NodeWithoutForward);
}

TEST(a_node_is_evaluated_below_the_operator_that_made_it) {
  const ExistingSession session;
  Node node;
  {
    const Operator outer("aten::matmul");
    node = node_of("aten::mm");
  }
  const Operator backward("run_backward");
  CHECK_EQ(path_in(node), "aten::matmul > aten::mm > [backward]");
  CHECK_EQ(path_in(node), "aten::matmul > aten::mm > [backward]");  // a graph that is retained
  CHECK_EQ(here(), "run_backward");
  CHECK_EQ(node.references, uint64_t{2});
}

TEST(nodes_that_operators_make_and_that_the_engine_runs_are_counted) {
  const ExistingSession session;
  const auto& thread = bragg::ThreadContext::current();
  const uint64_t made = thread.autograd_nodes.load(), ran = thread.evaluated_nodes.load();
  Node first = node_of("aten::mm");
  node_of("aten::add");
  CHECK_EQ(thread.autograd_nodes.load() - made, uint64_t{2});
  CHECK_EQ(thread.evaluated_nodes.load() - ran, uint64_t{0});
  path_in(first);
  CHECK_EQ(thread.evaluated_nodes.load() - ran, uint64_t{1});
}

TEST(a_node_belongs_to_the_operator_that_ran_when_it_was_made_not_to_those_inside) {
  const ExistingSession session;
  Node first, second, third;
  {
    const Operator outer("outer");
    first = new_node();
    {
      const Operator inner("makes none");
    }
    second = new_node();
    third = node_of("inner");
  }
  CHECK_EQ(path_in(first), "outer > [backward]");
  CHECK_EQ(path_in(second), "outer > [backward]");
  CHECK_EQ(path_in(third), "outer > inner > [backward]");
}

TEST(a_node_that_no_operator_made_says_so) {
  const ExistingSession session;
  {
    const Operator before("aten::ones_like");
  }
  Node root = new_node();
  {
    const Operator after("aten::add_");
  }
  const Operator backward("run_backward");
  CHECK_EQ(path_in(root), "run_backward > [backward of an unknown operator]");
  Node of_no_thread{.number = ~uint64_t{0}, .thread = 0};
  CHECK_EQ(path_in(of_no_thread), "run_backward > [backward of an unknown operator]");
}

TEST(the_gradient_of_a_parameter_belongs_to_the_operator_whose_node_ran_before) {
  const ExistingSession session;
  Node parameter{.number = ~uint64_t{0}, .thread = 0};
  const auto path_of = [&](const std::string& name) {
    const Evaluation evaluation(parameter, "torch::autograd::" + name);
    return here();
  };
  Node node = node_of("aten::mm");
  const Operator backward("run_backward");
  const std::string engine = "run_backward > autograd::engine::evaluate_function: torch::autograd::";
  CHECK_EQ(path_of("AccumulateGrad"), engine + "AccumulateGrad");  // no node has run
  path_in(node);
  CHECK_EQ(path_of("AccumulateGrad"), "aten::mm > [backward]");
  CHECK_EQ(path_of("GraphRoot"), engine + "GraphRoot");  // another pass begins
  CHECK_EQ(path_of("AccumulateGrad"), engine + "AccumulateGrad");
  Node unknown{.number = ~uint64_t{0}, .thread = 0};
  path_in(node);
  path_in(unknown);
  CHECK_EQ(path_of("AccumulateGrad"), engine + "AccumulateGrad");
}

TEST(the_backward_of_a_backward_stands_below_it) {
  const ExistingSession session;
  Node node = node_of("aten::sin");
  Node second;
  {
    const Evaluation evaluation(node);
    second = node_of("aten::cos");
  }
  CHECK_EQ(path_in(second), "aten::sin > [backward] > aten::cos > [backward]");
}

TEST(threads_number_their_nodes_alike_and_are_told_apart) {
  std::vector<Node> nodes(4);
  for (size_t i = 0; i < nodes.size(); ++i)
    std::thread([&, i] {
      const ExistingSession session;
      nodes[i] = node_of("operator " + std::to_string(i));
    }).join();
  const ExistingSession session;
  for (size_t i = 0; i < nodes.size(); ++i) {
    CHECK_EQ(nodes[i].number, uint64_t{0});
    CHECK_EQ(path_in(nodes[i]), "operator " + std::to_string(i) + " > [backward]");
  }
}

TEST(a_node_that_waits_too_long_is_unknown_and_never_at_a_wrong_place) {
  const ExistingSession session;
  Node node = node_of("first");
  for (int i = 0; i < (1 << 19) - 1; ++i) {
    const Operator one("other");
    (void)new_node();
  }
  CHECK_EQ(path_in(node), "first > [backward]");
  (void)node_of("one too many");
  CHECK_EQ(path_in(node), "[backward of an unknown operator]");
}

TEST(nodes_may_be_made_and_evaluated_at_once) {
  std::atomic<int> wrong{0};
  std::atomic<const Node*> latest{nullptr};
  std::vector<Node> made(20'000);
  const auto evaluate = [&] {
    for (const Node* seen = nullptr; seen != &made.back();) {
      seen = latest.load(std::memory_order_acquire);
      if (seen == nullptr) continue;
      Node copy = *seen;
      if (path_in(copy) != "made > [backward]") ++wrong;
    }
  };
  const ExistingSession session;
  std::thread first(evaluate), second(evaluate);
  for (Node& node : made) {
    node = node_of("made");
    latest.store(&node, std::memory_order_release);
  }
  first.join();
  second.join();
  CHECK_EQ(wrong.load(), 0);
}

}  // namespace
