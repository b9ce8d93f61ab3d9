// Ranges of XLA, from their texts to the frames that they stand for.
#include <fstream>
#include <string>
#include <vector>

#include "check.h"
#include "intake/xla_names.h"

namespace {

using bragg::FrameKind;
using bragg::xla::parse_range;

// As "jit(f)/add > gemm.1"; "(detail)": it is not shown.
std::string path_of(const std::string& text) {
  const bragg::xla::Range range = parse_range(text);
  std::string path = range.is_detail ? "(detail)" : "";
  for (const auto& frame : range.path) path += (path.empty() ? "" : " > ") + frame.name;
  return path;
}

TEST(a_module_is_called_what_hlo_calls_it) {
  CHECK_EQ(path_of("XlaModule:#hlo_module=jit_f,program_id=1988#"), "jit_f");
  CHECK_EQ(path_of("XlaModule:#prefix=jit(f)/a,b=c,hlo_module=jit_f,program_id=1988#"), "prefix=jit(f)/a,b=c > jit_f");
  CHECK_EQ(path_of("XlaModule:#prefix=,hlo_module=jit_f,program_id=1988#"), "jit_f");
}

TEST(a_thunk_is_the_path_of_its_names_and_its_operation) {
  const std::vector<bragg::xla::PathFrame> expected{
      {FrameKind::Operator, "jit(f)/transpose(jvp(layer1))/mul", "hlo_op_name"},
      {FrameKind::Operator, "fusion.2", "hlo_op"}};
  CHECK(parse_range("Thunk:#name=jit(f)/transpose(jvp(layer1))/mul,hlo_op=fusion.2,unique_hlo_op_id=12#").path ==
        expected);
}

TEST(a_thunk_without_a_name_is_its_operation) {
  CHECK_EQ(path_of("Thunk:#hlo_op=command_buffer_1#"), "command_buffer_1");
  CHECK_EQ(path_of("Thunk:#name=,hlo_op=fusion.1#"), "fusion.1");
}

TEST(names_may_hold_what_the_format_is_made_of) {
  CHECK_EQ(path_of("Thunk:#name=jit(f)/a, b/x=1,2/#add#,hlo_op=fusion.1#"), "jit(f)/a, b/x=1,2/#add# > fusion.1");
  CHECK_EQ(path_of("Thunk:#name=jit(f)/a,b=c/hlo_op=d/add,hlo_op=fusion.1,unique_hlo_op_id=7#"),
           "jit(f)/a,b=c/hlo_op=d/add > fusion.1");
}

TEST(the_line_is_kept_where_xla_tells_it) {
  CHECK_EQ(parse_range("Thunk:#name=jit(f)/add,hlo_op=add.1,source_file=/home/me/f.py,source_line=12#").source,
           "/home/me/f.py:12");
  CHECK_EQ(parse_range("Thunk:#name=jit(f)/add,hlo_op=add.1#").source, "");
}

TEST(of_a_compilation_there_are_the_whole_autotuning_and_code_generation) {
  CHECK_EQ(path_of("XlaCompile:#module=jit_loss#"), "[compile] jit_loss");
  for (const std::string pass : {"config-assigner", "gemm-fusion-autotuner", "triton-autotuner", "autotuner",
                                 "gemm-algorithm-picker", "gpu-conv-algorithm-picker"})
    CHECK_EQ(path_of("XlaPass:#name=" + pass + ",module=jit_loss,program_id=3976#"), "autotune");
  CHECK_EQ(path_of("XlaCompileBackend:#module=jit_loss,program_id=3976#"), "generate code");
  for (const std::string step :
       {"XlaPassPipeline:#name=config-assigner,module=jit_loss,program_id=3976#",
        "XlaPassPipeline:#name=layout assignment,module=jit_loss,program_id=3976#",
        "XlaPass:#name=fusion,module=jit_loss,program_id=3976#", "XlaCompileGpuAsm:#module=jit_loss#",
        "XlaEmitLlvmIr:#module=jit_loss,program_id=3976#"})
    CHECK_EQ(path_of(step), "(detail)");
}

TEST(what_jax_pushed_on_a_gpu_is_known) {
  std::ifstream rows(BRAGG_GOLDEN_DIR "/xla_ranges.tsv");
  size_t count = 0;
  for (std::string row; std::getline(rows, row); ++count) {
    const std::string range = row.substr(0, row.find('\t')), shown = row.substr(row.find('\t') + 1);
    const bragg::xla::Range found = parse_range(range);
    CHECK_EQ(found.is_detail, shown.empty());
    CHECK(shown.empty() || shown.ends_with(found.path.back().name));
  }
  CHECK(count > 100);
}

TEST(other_texts_are_none_of_these) {
  for (const std::string text : {"", "Thunk:#", "XlaModule:#", "Thunk:##", "XlaModule:#program_id=1#", "MemcpyH2D",
                                 "Thunk:#name=jit(f)/add,hlo_op=add.1", "thunk:#hlo_op=a#", "Xla:#a=b#",
                                 "XlaPass:#=,=#", ":##", "XlaCompile:#module=#"})
    CHECK_EQ(path_of(text), "");
}

TEST(what_ranges_carry_is_not_kept) {
  for (const std::string text : {"\n- train.py:7[step]\n", "\nfused_computation.1 {\n}", "add.1 = f32[2] add(a, b)"})
    CHECK_EQ(path_of(text), "(detail)");
}

// Whatever is cut off or put in: it is read to its end, and never past it.
TEST(damaged_texts_are_read_without_harm) {
  const std::string whole = "Thunk:#name=jit(f)/a,b/c=d,hlo_op=fusion.1,unique_hlo_op_id=7#";
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char put : {'#', ',', '=', '(', ')', '/', '\n', '\0', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = put;
      CHECK(path_of(damaged).size() <= damaged.size() + 3);
      CHECK(path_of(damaged.substr(0, at) + "#").size() <= at + 4);
    }
  }
  CHECK_EQ(path_of("Thunk:#hlo_op=" + std::string(1 << 20, ',') + "#").size(), size_t{1} << 20);
}

}  // namespace
