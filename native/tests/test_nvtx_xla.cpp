// Ranges of XLA among those of NVTX.
#include <string>

#include "check.h"
#include "intake/xla_names.h"
#include "nvtx_copy.h"

namespace {

using bragg::FrameKind;
using bragg::nvtx::Domain;
using bragg::nvtx::EventAttributes;
using bragg::test::context;
using bragg::test::Copy;
using bragg::test::ExistingSession;
using bragg::test::Open;
using bragg::test::Path;
using bragg::test::registered;
using bragg::test::text;

TEST(ranges_of_xla_are_modules_scopes_and_operations_when_they_are_wanted) {
  const ExistingSession session;
  const Copy copy;
  Domain* domain = copy.create_domain("TSL");
  const char* const module = "XlaModule:#hlo_module=jit_f,program_id=1#";
  copy.push(domain, text(module));
  CHECK(context() == (Path{{FrameKind::Scope, std::string("TSL: ") + module}}));
  copy.pop(domain);
  const EventAttributes early = registered(copy.register_string(domain, "XlaModule:#hlo_module=jit_g,program_id=2#"));
  const EventAttributes early_detail = registered(copy.register_string(domain, "XlaPass:#name=cse,module=jit_g#"));

  bragg::xla::is_wanted.store(true);
  copy.push(domain, early_detail);
  CHECK(context().empty());
  copy.pop(domain);
  copy.push(domain, early);
  copy.push(domain, registered(copy.register_string(
                        domain, "Thunk:#name=jit(g)/transpose(jvp(layer))/dot,hlo_op=gemm.1,unique_hlo_op_id=7#")));
  CHECK(context() == (Path{{FrameKind::Operator, "jit_g"},
                           {FrameKind::Operator, "jit(g)/transpose(jvp(layer))/dot"},
                           {FrameKind::Operator, "gemm.1"}}));
  CHECK_EQ(bragg::ThreadContext::current().depth(), 2u);
  CHECK_EQ(copy.pop(domain), 1);
  copy.push(domain, text("something else"));
  CHECK(context().back() == (Open{FrameKind::Scope, "TSL: something else"}));
  copy.pop(domain);
  const Path before = context();
  for (const int number : {1, 2, 3}) {
    copy.push(domain, text(("XlaPass:#name=dce,module=jit_g,program_id=" + std::to_string(number) + "#").c_str()));
    CHECK(context() == before);
  }
  copy.push(domain, text("in a detail"));
  CHECK(context().back() == (Open{FrameKind::Scope, "TSL: in a detail"}));
  for (int pops = 0; pops < 4; ++pops) copy.pop(domain);
  CHECK(context() == before);
  copy.pop(domain);
  CHECK(context().empty());
  bragg::xla::is_wanted.store(false);
}

}  // namespace
