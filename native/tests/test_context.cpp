// The calling context tree, the thread stacks and the rings.
#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "context/calling_context_tree.h"
#include "context/event_ring.h"
#include "context/frame_table.h"
#include "context/kernel_names.h"
#include "context/thread_context.h"
#include "context/thread_registry.h"

namespace {

using bragg::CallingContextTree;
using bragg::Event;
using bragg::EventKind;
using bragg::FrameId;
using bragg::FrameKind;
using bragg::kRootNode;
using bragg::NodeId;
using bragg::Source;
using bragg::ThreadContext;

bragg::FrameId scope(const char* name) { return bragg::intern_frame(FrameKind::Scope, name); }

NodeId path(std::initializer_list<const char*> names) {
  NodeId node = kRootNode;
  for (const char* name : names) node = CallingContextTree::instance().child(node, scope(name));
  return node;
}

TEST(a_frame_has_one_id_however_often_it_is_interned) {
  CHECK_EQ(scope("once"), scope("once"));
  CHECK(scope("once") != bragg::intern_frame(FrameKind::Operator, "once"));
  auto& table = bragg::FrameTable::instance();
  CHECK(table.intern(FrameKind::Kernel, "k", 0) != table.intern(FrameKind::Kernel, "k", 1));
  CHECK_EQ(table.string(table.frame(scope("once")).name), std::string_view("once"));
}

TEST(children_of_the_tree_are_stable_and_parents_precede_them) {
  CallingContextTree tree;
  std::vector<NodeId> nodes;
  for (uint32_t frame = 1; frame <= 20000; ++frame)
    nodes.push_back(tree.child(NodeId{frame % 7 == 0 ? frame / 7 : 0}, FrameId{frame}));
  CHECK_EQ(tree.size(), 20001);
  for (uint32_t frame = 1; frame <= 20000; ++frame) {
    const NodeId node = nodes[frame - 1];
    if (tree.child(NodeId{frame % 7 == 0 ? frame / 7 : 0}, FrameId{frame}) != node)
      bragg::test::fail(__FILE__, __LINE__, "another node");
    if (tree.parent(node) >= node) bragg::test::fail(__FILE__, __LINE__, "parent after child");
  }
  CHECK_EQ(tree.refused(), 0);
}

TEST(threads_that_add_the_same_children_get_the_same_nodes) {
  CallingContextTree tree;
  std::vector<std::vector<NodeId>> seen(4);
  std::vector<std::thread> threads;
  for (auto& nodes : seen)
    threads.emplace_back([&] {
      for (uint32_t frame = 1; frame <= 3000; ++frame) nodes.push_back(tree.child(NodeId{frame / 2}, FrameId{frame}));
    });
  for (auto& thread : threads) thread.join();
  CHECK_EQ(tree.size(), 3001);
  for (const auto& nodes : seen) CHECK(nodes == seen[0]);
}

TEST(a_ring_gives_events_in_order_and_refuses_when_full) {
  auto ring = std::make_unique<bragg::Ring>();
  Event event{};
  for (uint32_t i = 0; i < bragg::Ring::kCapacity; ++i) {
    event.correlation = bragg::CorrelationId{i};
    if (!ring->push(event)) bragg::test::fail(__FILE__, __LINE__, "refused too early");
  }
  CHECK(!ring->push(event));
  uint32_t expected = 0;
  CHECK_EQ(ring->drain([&](const Event& taken) { CHECK_EQ(number_of(taken.correlation), expected++); }),
           bragg::Ring::kCapacity);
  CHECK(ring->empty());
  CHECK(ring->push(event));
}

TEST(a_ring_loses_nothing_between_two_threads) {
  auto ring = std::make_unique<bragg::Ring>();
  constexpr uint32_t kEvents = 200'000;
  std::thread producer([&] {
    Event event{};
    for (uint32_t i = 1; i <= kEvents; ++i) {
      event.correlation = bragg::CorrelationId{i};
      while (!ring->push(event)) std::this_thread::yield();
    }
  });
  uint32_t next = 1;
  while (next <= kEvents)
    ring->drain([&](const Event& event) {
      if (number_of(event.correlation) != next++) bragg::test::fail(__FILE__, __LINE__, "out of order");
    });
  producer.join();
}

// A thread of its own has an empty stack.
template <class Body>
void on_a_fresh_thread(Body&& body) {
  std::thread([&] { body(ThreadContext::current()); }).join();
}

TEST(kernel_names_are_found_while_others_are_set) {
  auto& names = bragg::KernelNames::instance();
  const auto handle = [](uintptr_t i) { return reinterpret_cast<const void*>(0x10000 + i * 64); };
  constexpr uintptr_t kNames = 2000;  // the table grows several times
  std::atomic<uintptr_t> set{0};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (set.load() < kNames) {
      const uintptr_t known = set.load();
      for (uintptr_t i = 0; i < known; i += 97) wrong += names.find(handle(i)) == bragg::StringId::None;
    }
  });
  for (uintptr_t i = 0; i < kNames; ++i) {
    names.set(handle(i), "kernel<" + std::to_string(i) + ">", "kernel", {});
    set.store(i + 1);
  }
  reader.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(names.find(handle(kNames)), bragg::StringId::None);
  const auto name = names.find(handle(7));
  CHECK_EQ(bragg::FrameTable::instance().string(name), "kernel<7>");
  CHECK(names.fits(name, "kernel"));
  CHECK(!names.fits(name, "another"));
  names.forget(handle(7));
  CHECK_EQ(names.find(handle(7)), bragg::StringId::None);
}

TEST(scopes_nest) {
  on_a_fresh_thread([](ThreadContext& thread) {
    thread.push(Source::Api, scope("outer"));
    thread.push(Source::Api, scope("inner"));
    CHECK_EQ(thread.here().shadow, path({"outer", "inner"}));
    thread.pop(Source::Api);
    CHECK_EQ(thread.here().shadow, path({"outer"}));
    thread.pop(Source::Api);
    CHECK_EQ(thread.here().shadow, kRootNode);
    thread.pop(Source::Api);
    CHECK_EQ(thread.depth(), 0);
  });
}

TEST(a_pop_removes_the_innermost_entry_of_its_own_source) {
  on_a_fresh_thread([](ThreadContext& thread) {
    thread.push(Source::Api, scope("a"));
    thread.push(Source::Nvtx, scope("n"));
    thread.push(Source::Api, scope("b"));
    thread.pop(Source::Nvtx);
    CHECK_EQ(thread.depth(), 2);
    CHECK_EQ(thread.here().shadow, path({"a", "n", "b"}));
    thread.pop(Source::Itt);
    CHECK_EQ(thread.depth(), 2);
    thread.pop(Source::Api);
    CHECK_EQ(thread.here().shadow, path({"a"}));
    thread.pop(Source::Api);
  });
}

TEST(a_kernel_that_the_host_executes_is_a_leaf_among_the_other_entries) {
  on_a_fresh_thread([](ThreadContext& thread) {
    thread.push(Source::Api, scope("a"));
    thread.push(Source::HostKernel, intern_frame(FrameKind::Kernel, "k"));
    CHECK_EQ(thread.here().shadow, thread.innermost_entry().shadow);
    CHECK_EQ(thread.here().python, thread.innermost_entry().python);
    thread.pop(Source::Api);
    CHECK_EQ(thread.depth(), 1);
    thread.pop(Source::HostKernel);
    CHECK_EQ(thread.depth(), 0);
  });
}

TEST(deep_stacks_grow) {
  on_a_fresh_thread([](ThreadContext& thread) {
    for (int i = 0; i < 1000; ++i) thread.push(Source::Api, scope("again"));
    CHECK_EQ(thread.depth(), 1000);
    for (int i = 0; i < 1000; ++i) thread.pop(Source::Api);
    CHECK_EQ(thread.here().shadow, kRootNode);
  });
}

TEST(a_thread_without_context_is_in_the_lenders) {
  on_a_fresh_thread([](ThreadContext& lender) {
    lender.push(Source::Api, scope("backward"));
    lender.lend();
    on_a_fresh_thread([](ThreadContext& worker) {
      CHECK_EQ(worker.here().shadow, path({"backward"}));
      worker.push(Source::Itt, scope("MmBackward0"));
      CHECK_EQ(worker.here().shadow, path({"backward", "MmBackward0"}));
      worker.pop(Source::Itt);
    });
    lender.take_back();
    lender.pop(Source::Api);
  });
}

TEST(the_last_lender_counts_itself_in_the_one_before_which_comes_back) {
  on_a_fresh_thread([](ThreadContext& first) {
    first.push(Source::Api, scope("first"));
    first.lend();
    on_a_fresh_thread([](ThreadContext& second) {
      second.push(Source::Api, scope("second"));
      second.lend();
      on_a_fresh_thread([](ThreadContext& worker) { CHECK_EQ(worker.here().shadow, path({"first", "second"})); });
      second.take_back();
      second.pop(Source::Api);
    });
    on_a_fresh_thread([](ThreadContext& worker) { CHECK_EQ(worker.here().shadow, path({"first"})); });
    first.take_back();
    first.pop(Source::Api);
  });
}

// Its context may be another thread's by then.
TEST(what_a_thread_does_behind_its_end_is_in_another_context) {
  (void)ThreadContext::current();  // keys of threads end in the order they were made: the context's is before this one
  static ThreadContext* behind_the_end = nullptr;
  pthread_key_t key{};
  REQUIRE(pthread_key_create(&key, [](void*) { behind_the_end = &ThreadContext::current(); }) == 0);
  const ThreadContext* own = nullptr;
  on_a_fresh_thread([&](ThreadContext& thread) {
    own = &thread;
    pthread_setspecific(key, &key);
  });
  pthread_key_delete(key);
  CHECK(behind_the_end != nullptr && behind_the_end != own);
}

TEST(a_thread_that_ends_lends_no_more) {
  ThreadContext* ended = nullptr;
  on_a_fresh_thread([&](ThreadContext& lender) {
    lender.push(Source::Itt, scope("lent"));
    lender.lend();
    ended = &lender;
  });
  bragg::ThreadRegistry::instance().release(ended);
  on_a_fresh_thread([&](ThreadContext& next) {
    CHECK_EQ(&next, ended);
    next.push(Source::Itt, scope("its own"));
    on_a_fresh_thread([](ThreadContext& worker) { CHECK_EQ(worker.here().shadow, kRootNode); });
    next.pop(Source::Itt);
  });
}

}  // namespace
