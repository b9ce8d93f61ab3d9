// Ranges of XLA, from their texts to the frames that they stand for.
#include <string>
#include <vector>

#include "check.h"
#include "intake/xla_names.h"

namespace {

using bragg::FrameKind;
using bragg::xla::parse_range;

// As "layer1 > [backward] > transpose > gemm.1".
std::string path_of(const std::string& text) {
  std::string path;
  for (const auto& [kind, name] : parse_range(text).path) path += (path.empty() ? "" : " > ") + name;
  return path;
}

std::string thunk(const std::string& name, const std::string& operation = "fusion.1") {
  return path_of("Thunk:#name=" + name + ",hlo_op=" + operation + ",unique_hlo_op_id=12884901893#");
}

TEST(a_module_is_called_what_hlo_calls_it) {
  CHECK_EQ(path_of("XlaModule:#hlo_module=jit_f,program_id=1988#"), "jit_f");
  CHECK_EQ(path_of("XlaModule:#prefix=jit(f)/a,b,hlo_module=jit_f,program_id=1988#"), "jit_f");
}

TEST(a_thunk_is_its_scopes_its_phase_its_primitive_and_its_operation) {
  CHECK_EQ(thunk("jit(f)/transpose(jvp(jit(f)))/layer1/transpose", "gemm_fusion_dot.1"),
           "layer1 > [backward] > transpose > gemm_fusion_dot.1");
  CHECK_EQ(thunk("jit(loss)/jvp(my_layer)/dot_general"), "my_layer > dot_general > fusion.1");
  CHECK_EQ(thunk("jit(loss)/transpose(jvp(outer/inner))/select_n"), "outer > inner > [backward] > select_n > fusion.1");
  CHECK_EQ(thunk("jit(f)/vmap(jit(inner))/scan/while/body/add"), "inner > scan > while > body > add > fusion.1");
  const std::vector<bragg::xla::PathFrame> expected{{FrameKind::Scope, "layer1"},
                                                    {FrameKind::State, "[backward]"},
                                                    {FrameKind::Operator, "mul"},
                                                    {FrameKind::Operator, "fusion.2"}};
  CHECK(parse_range("Thunk:#name=jit(f)/transpose(jvp(layer1))/mul,hlo_op=fusion.2#").path == expected);
}

TEST(a_thunk_without_a_name_is_its_operation) {
  CHECK_EQ(path_of("Thunk:#hlo_op=command_buffer_1#"), "command_buffer_1");
  CHECK_EQ(thunk("jit(f)"), "fusion.1");
  CHECK_EQ(thunk(""), "fusion.1");
}

TEST(names_may_hold_what_the_format_is_made_of) {
  CHECK_EQ(thunk("jit(f)/a, b/x=1,2/add"), "a, b > x=1,2 > add > fusion.1");
  CHECK_EQ(thunk("jit(f)/unbalanced)/(/add"), "unbalanced) > (/add > fusion.1");
}

TEST(the_line_is_kept_where_xla_tells_it) {
  CHECK_EQ(parse_range("Thunk:#name=jit(f)/add,hlo_op=add.1,source_file=/home/me/f.py,source_line=12#").source,
           "/home/me/f.py:12");
  CHECK_EQ(parse_range("Thunk:#name=jit(f)/add,hlo_op=add.1#").source, "");
}

TEST(other_texts_are_none_of_these) {
  for (const std::string text : {"", "Thunk:#", "XlaModule:#", "Thunk:##", "XlaModule:#program_id=1#", "MemcpyH2D",
                                 "Thunk:#name=jit(f)/add,hlo_op=add.1", "thunk:#hlo_op=a#"})
    CHECK_EQ(path_of(text), "");
}

}  // namespace
