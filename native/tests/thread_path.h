// Where the thread of a test is.
#pragma once

#include <string>

#include "context/calling_context_tree.h"
#include "context/frame_table.h"
#include "context/thread_context.h"

namespace bragg::test {

// The path of this thread, outermost first.
inline std::string here() {
  auto& tree = CallingContextTree::instance();
  auto& frames = FrameTable::instance();
  std::string path;
  for (auto node = ThreadContext::current().here().shadow; node != kRootNode; node = tree.parent(node)) {
    const std::string name(frames.string(frames.frame(tree.frame(node)).name));
    path = path.empty() ? name : name + " > " + path;
  }
  return path;
}

}  // namespace bragg::test
