from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.grouping.hlo_program import PROGRAM_KEY, HloOperation, HloPlace, HloState, program_text
from bragg.grouping.hlo_tree import place_operations
from bragg.model import CallTree, FrameKind, Profile
from bragg.model.idle import IdleTable
from bragg.model.regroup import regroup
from bragg.model.transform import has_data, with_ancestors
from tests.support.profiles import profile_from_text, tree_to_text

MODULE, OP = {"hlo_module": "yes"}, {"hlo_op": "yes"}


def attributes_of(profile: Profile) -> dict[str, dict[str, str]]:
    """As the recorder describes the operators of these tests."""
    found = {}
    for kind, name in zip(profile.tree.frames.kind, profile.tree.frames.name, strict=True):
        if kind == FrameKind.OPERATOR:
            found[name] = MODULE if name.startswith("jit_") else {"hlo_op_name": "yes"} if ")/" in name else OP
            found[name] = {"hlo_prefix": "yes"} if name.startswith("prefix=") else found[name]
    return found


def placed(text: str, **attributes: dict[str, str]) -> str:
    profile = profile_from_text(text)
    found = place_operations(profile.tree, {**attributes_of(profile), **attributes})
    assert found is not None
    found.tree.check()
    after = regroup(found.tree, folded=found.folded).apply(found.apply(profile))
    for name in after.metrics.keys() - {"host_count"}:
        assert after.metrics[name].own.sum() == profile.metrics[name].own.sum()
    shown = regroup(after.tree, dropped=~with_ancestors(after.tree, has_data(after))).apply(after)
    return tree_to_text(with_places(shown))


def with_places(profile: Profile) -> Profile:
    """Lines of operators as parts of their names, which texts of trees show."""
    frames = profile.tree.frames
    rows = zip(frames.kind, frames.name, frames.file, frames.line, strict=True)
    names = [
        f"{name} {file}:{line}" if kind == FrameKind.OPERATOR and file else name for kind, name, file, line in rows
    ]
    tree = CallTree(profile.tree.parent, profile.tree.frame, frames.replace(name=names))
    return replace(profile, tree=tree)


def same(found: str, expected: str) -> None:
    assert found.strip() == expected.strip()


def test_what_an_operation_need_not_do_stands_above_its_path() -> None:
    state = HloState("[both branches]", HloPlace("train.py", 7))
    sine = HloOperation("jit(loss)/vmap(batched_cond)/layer/sin", HloPlace("train.py", 4), "", state)
    found = placed(
        """
root
  train.py:20@train
    jit_loss #operator
      jit(loss)/vmap(batched_cond)/layer/sin #operator
        fusion.3 #operator
          fusion_3 12us
""",
        jit_loss={**MODULE, f"{PROGRAM_KEY} 1": program_text({"fusion.3": sine})},
    )
    same(
        found,
        """
root
  train.py:20@train
    jit_loss
      [both branches]
        layer
          sin train.py:4
            fusion_3 12us
""",
    )


def test_an_operation_that_is_called_like_its_kernel_is_shown_once() -> None:
    found = placed("""
root
  train.py:20@train
    jit_loss #operator
      jit(loss)/jvp(block0)/layer/dot_general #operator
        gemm_fusion_dot.3 #operator
          gemm_fusion_dot_3 12us
      copy.1 #operator
        copy_DtoD 1us
""")
    same(
        found,
        """
root
  train.py:20@train
    jit_loss
      block0
        layer
          dot_general
            gemm_fusion_dot_3 12us
      copy.1
        copy_DtoD 1us
""",
    )


def test_operations_of_loops_stand_under_their_own_path() -> None:
    found = placed("""
root
  jit_loss #operator
    jit(loss)/jvp(scan)/while #operator
      while.10 #operator host=5us hostx3
        jit(loss)/jvp(scan)/while/body/closed_call/mul #operator
          loop_fusion #operator
            loop_fusion 3us x4
    while.15 #operator host=2us
      jit(loss)/transpose(jvp(scan))/while/body/closed_call/mul #operator
        loop_fusion.2 #operator
          loop_fusion_1 6us x4
""")
    same(
        found,
        """
root
  jit_loss host=2us
    scan
      while host=5us
        mul
          loop_fusion 3us x4
        [backward]
          mul
            loop_fusion.2
              loop_fusion_1 6us x4
""",
    )


def test_kernels_of_command_buffers_belong_to_the_operations_that_were_captured() -> None:
    found = placed("""
root
  train.py:20@train
    jit_loss #operator
      jit(loss)/jvp(block0)/dot_general #operator
        gemm.3 #operator
          cutlass 12us
      command_buffer_1 #operator host=8us
        <captured_at> #state
          train.py:21@train
            jit_loss #operator
              jit(loss)/jvp(block0)/dot_general #operator
                gemm.3 #operator
                  cutlass 100us x9
              gemm.4 #operator
                cutlass 10us x9
        <captured before recording> #state
          copy_DtoD 2us
""")
    same(
        found,
        """
root
  train.py:20@train
    jit_loss
      block0
        dot_general
          gemm.3
            cutlass 112us x10
      command_buffer_1 host=8us
        copy_DtoD 2us
      gemm.4
        cutlass 10us x9
""",
    )


def test_graphs_that_a_call_launches_before_its_module_belong_to_it() -> None:
    found = placed("""
root
  jit(zoo) #operator
    pjit.py:3@cache_miss
      <captured_at> #state
        train.py:69@train
          jit(zoo) #operator
            jit_zoo #operator
              jit(zoo)/jvp(choice)/cond/branch_1_fun/dot_general #operator
                gemm.4 #operator
                  gemm_4 5us
""")
    same(
        found,
        """
root
  jit(zoo)
    choice
      cond
        branch_1_fun
          dot_general
            gemm_4 5us
""",
    )


def test_calls_of_what_a_program_calls_back_are_below_its_operation() -> None:
    found = placed(
        """
root
  jit(outer) #operator
    jit_outer #operator
      jit(outer)/pure_callback #operator
        custom-call.1 #operator
          [callback] host
            train.py:7@host
              jit(inner) #operator
                jit_inner #operator
                  jit(inner)/add #operator
                    loop_add_fusion.3 #operator
                      loop_add_fusion 5us
""",
        **{"jit(outer)": {}, "jit(inner)": {}},
    )
    same(
        found,
        """
root
  jit(outer)
    pure_callback
      custom-call.1
        [callback] host
          train.py:7@host
            jit(inner)
              add
                loop_add_fusion.3
                  loop_add_fusion 5us
""",
    )


def test_candidates_of_autotuning_are_their_kernels() -> None:
    found = placed(
        """
root
  [compile] jit_loss host=1ms
    compiler.py:3@compile
      [compile] jit_loss host=7ms
        compiler.py:5@wait host=2ms
      autotune
        gemm.3 #operator
          Delay 5us
          gemm.3 #operator
            gemm_3 10us x2
            cutlass 4us
        copy_HtoH 5us
""",
        **{"gemm.3": {**MODULE, **OP}},
    )
    same(
        found,
        """
root
  [compile] jit_loss host=10ms
    autotune
      gemm.3
        Delay 5us
        gemm_3 10us x2
        cutlass 4us
      copy_HtoH 5us
""",
    )


def test_a_call_has_its_module_and_its_compilation() -> None:
    found = placed("""
root
  train.py:20@train
    jit(<lambda>) #operator host=9us hostx4
      pjit.py:3@cache_miss
        [compile] jit__lambda host=7us hostx2
          [compile] jit__lambda host=7us hostx2
        jit__lambda #operator host=2us hostx4
          copy.1 #operator
            copy_DtoD 1us
        [compile] jit_other host=1us
        jit_other #operator
          copy.1 #operator
            copy_DtoD 2us
""")
    same(
        found,
        """
root
  train.py:20@train
    jit(<lambda>) host=11us hostx4
      pjit.py:3@cache_miss
        [compile] jit_other host=1us
        jit_other
          copy.1
            copy_DtoD 2us
      [compile] jit__lambda host=14us hostx2
      copy.1
        copy_DtoD 1us
""",
    )


def test_programs_give_lines_and_the_paths_that_ranges_lack() -> None:
    program = program_text(
        {
            "gemm.3": HloOperation("jit(loss)/jvp(block0)/dot_general", HloPlace("train.py", 7)),
            "copy.1": HloOperation("", HloPlace("train.py", 9)),
        }
    )
    found = placed(
        """
root
  jit_loss #operator
    jit(loss)/jvp(block0)/dot_general #operator
      gemm.3 #operator
        gemm_3 12us
    command_buffer_1 #operator
      <captured_at> #state
        jit_loss #operator
          gemm.3 #operator
            gemm_3 10us
    copy.1 #operator
      copy_DtoD 1us
""",
        jit_loss={**MODULE, f"{PROGRAM_KEY} 1": program},
    )
    same(
        found,
        """
root
  jit_loss
    block0
      dot_general train.py:7
        gemm_3 22us x2
    copy.1 train.py:9
      copy_DtoD 1us
""",
    )


def test_kernels_of_collectives_stand_below_what_their_operation_does() -> None:
    told = "collective all-reduce[1024 f32 in groups of 2]"
    program = program_text({"all-reduce-start.1": HloOperation("jit(f)/psum", HloPlace("train.py", 7), told)})
    found = placed(
        """
root
  jit_f #operator
    jit(f)/psum #operator
      all-reduce-start.1 #operator
        ncclDevKernel_AllReduce_Sum_f32_RING_LL 12us
""",
        jit_f={**MODULE, f"{PROGRAM_KEY} 1": program},
    )
    same(
        found,
        """
root
  jit_f
    psum train.py:7
      all-reduce-start.1
        collective all-reduce[1024 f32 in groups of 2]
          ncclDevKernel_AllReduce_Sum_f32_RING_LL 12us
""",
    )


def test_names_get_back_what_all_names_of_a_module_begin_with() -> None:
    name = "jit(init)/block0/attention/dot_general"
    program = program_text({"gemm.3": HloOperation(name, HloPlace("train.py", 7))})
    found = placed(
        """
root
  jit(init) #operator
    prefix=jit(init)/block0 #operator
      jit_init #operator
        attention/dot_general #operator
          gemm.3 #operator
            gemm_3 12us
        command_buffer_1 #operator
          <captured_at> #state
            prefix=jit(init)/block0 #operator
              jit_init #operator
                attention/dot_general #operator
                  gemm.3 #operator
                    gemm_3 10us
            jit_other #operator
              attention/dot_general #operator
                gemm.3 #operator
                  gemm_3 1us
""",
        jit_init={**MODULE, f"{PROGRAM_KEY} 1": program},
        **{"prefix=jit(init)/block0": {"hlo_prefix": "yes"}, "attention/dot_general": {"hlo_op_name": "yes"}},
    )
    same(
        found,
        """
root
  jit(init)
    block0
      attention
        dot_general train.py:7
          gemm_3 22us x2
    command_buffer_1
      gemm_3 1us
""",
    )


def test_fused_operations_stand_under_the_scope_that_their_names_have_in_common() -> None:
    found = placed("""
root
  jit_loss #operator
    jit(loss)/transpose(jvp(block0))/attention #operator
      gemm.85 #operator
        cutlass 5us
    jit(loss)/transpose(jvp(block0))/attention/dot_general #operator
      gemm.76 #operator
        cutlass 6us
""")
    same(
        found,
        """
root
  jit_loss
    block0
      attention
        [backward]
          gemm.85
            cutlass 5us
          dot_general
            gemm.76
              cutlass 6us
""",
    )


def test_trees_without_xla_stay_as_they_are() -> None:
    assert place_operations(profile_from_text("root\n  jit_loss\n    autotune 3us").tree, {}) is None


def test_what_was_read_is_no_attribute_of_the_profile() -> None:
    attributes = {"jit_f": {"hlo_module": "yes", f"{PROGRAM_KEY} 1": "{}"}, "range": {"color": "#ff0000"}}
    profile = replace(profile_from_text("root\n  jit_f #operator\n    range 1us"), meta={"attributes": attributes})
    found = place_operations(profile.tree, attributes)
    assert found is not None
    assert found.apply(profile).meta == {"attributes": {"range": {"color": "#ff0000"}}}


def test_any_nesting_of_ranges_keeps_every_kernel() -> None:
    """Whatever stands below whatever: a tree that fulfils the laws, and all of the time."""
    random = np.random.default_rng(7)
    labels = [
        "jit_f #operator",
        "fusion.1 #operator",
        "jit(f)/jvp(a)/mul #operator",
        "<captured_at> #state",
        "autotune",
    ]
    labels += ["prefix=jit(f)/a #operator"]
    labels += ["f.py:1@f", "[compile] jit_f", "while.1 #operator", "kernel 5us", "jit_g #operator", "jit(f) #operator"]
    for _ in range(50):
        depth, lines = 1, ["root"]
        for label in random.choice(labels, 25):
            lines.append("  " * depth + str(label))
            depth = int(random.integers(1, depth + 2)) if "5us" not in label else max(1, depth - 1)
        if profile_from_text("\n".join([*lines, "  kernel 5us", "  jit_f #operator"])).metrics:
            placed("\n".join([*lines, "  kernel 5us", "  jit_f #operator"]))


def test_idle_time_goes_with_the_nodes_that_it_was_waited_for() -> None:
    profile = profile_from_text("""
root
  train.py:20@train
    jit_loss #operator
      jit(loss)/jvp(block0)/layer/dot_general #operator
        gemm_fusion_dot.3 #operator
          gemm_fusion_dot_3 #kernel  gpu_time=9
""")
    n_nodes = len(profile.tree)
    ones = dict.fromkeys(IdleTable.empty().columns(), np.ones(n_nodes, np.int64))
    idle = IdleTable(**{**ones, "node": np.arange(n_nodes, dtype=np.int32)})
    found = place_operations(profile.tree, attributes_of(profile))
    assert found is not None
    after = found.apply(replace(profile, idle=idle))
    assert after.idle.node.tolist() == found.target.tolist()
    assert after.idle.node.max() < len(after.tree)
