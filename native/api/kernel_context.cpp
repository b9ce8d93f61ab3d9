#include "api/kernel_context.h"

#include <string>

#include "backends/sources.h"
#include "context/frame_table.h"
#include "context/kernel_names.h"
#include "context/thread_context.h"

extern "C" void bragg_kernel_enter(const void* function, const char* name, const char* symbol) {
  auto& frames = bragg::FrameTable::instance();
  const bragg::StringId known = name == nullptr ? bragg::KernelNames::instance().find(function) : bragg::StringId::None;
  const std::string text(known != bragg::StringId::None ? frames.string(known) : name != nullptr ? name : symbol);
  bragg::push_context(bragg::Source::State,
                      frames.intern(bragg::FrameKind::Kernel, text, bragg::EventSources::instance().current_device()));
}
