"""The names of `triton.profiler`, of all its versions since 3.4."""

from __future__ import annotations

import importlib
import inspect

import pytest

import bragg.proton as proton

NAMES = {
    "DEFAULT_PROFILE_NAME": "proton",
    "activate": "session=None",
    "deactivate": "session=None, flushing=False",
    "enter_scope": "name, *, metrics=None",
    "enter_state": "name",
    "exit_scope": "name=None, *, metrics=None",
    "exit_state": "",
    "finalize": "session=None, output_format=''",
    "start": "name=None, *, context='shadow', data='tree', backend=None, mode=None, hook=None",
    "scope": "name, metrics=None",
    "cpu_timed_scope": "name, metrics=None",
    "state": "name",
    "metadata_state": "kernel_name=None",
    "context.depth": "session=0",
    "data.get": "session=0, phase=0",
    "data.get_msgpack": "session=0, phase=0",
    "data.advance_phase": "session=0",
    "data.is_phase_complete": "session=0, phase=0",
    "data.clear": "session=0, phase=0, clear_up_to_phase=False",
    "specs.max_flops": "device_type, arch, width, num_sms, clock_rate",
    "specs.max_bps": "device_type, arch, bus_width, memory_clock_rate",
    "mode.PCSampling": "interval=1000",
    "profile": "func=None, *, name=None, context='shadow', data='tree', backend=None, mode=None, hook=None",
    "hooks.InstrumentationHook": "mode_obj",
    "hooks.LaunchHook.configure": "self, *, include=None, exclude=None",
}


@pytest.mark.parametrize("name", NAMES)
def test_name_has_proton_s_parameters_and_defaults(name: str) -> None:
    found: object = proton
    for part in name.split("."):
        found = getattr(found, part)
    if callable(found):
        parameters = inspect.signature(found).parameters.values()
        plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
        assert str(inspect.Signature(plain)) == f"({NAMES[name]})"
    else:
        assert found == NAMES[name]


def test_every_public_name_exists() -> None:
    assert all(hasattr(proton, name) for name in proton.__all__)


@pytest.mark.parametrize(
    "module",
    [
        *(
            "context",
            "data",
            "flags",
            "hook",
            "hooks",
            "hooks.hook",
            "hooks.instrumentation",
            "hooks.launch",
            "libproton",
        ),
        *("metric", "mode", "profile", "proton", "scope", "specs", "state", "viewer"),
    ],
)
def test_module_exists_and_needs_no_triton(module: str) -> None:
    importlib.import_module(f"bragg.proton.{module}")


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("init_function_metadata", (0, "kernel", [(0, "load")], [(0, -1)], "kernel.json")),
        ("destroy_function_metadata", (0,)),
        ("enter_instrumented_op", (0, 0, 0, 0)),
        ("exit_instrumented_op", (0, 0, 0, 0)),
        ("set_metric_kernels", (0, 0, 0)),
    ],
)
def test_what_measures_inside_kernels_can_be_called_without_a_session(call: str, arguments: tuple[object, ...]) -> None:
    assert getattr(proton.libproton, call)(*arguments) is None


def test_hook_of_triton_3_4_is_the_launch_hook() -> None:
    before = list(proton.hooks.HookManager.active_hooks)
    proton.hook.register_triton_hook()
    assert proton.hooks.HookManager.active_hooks == [*before, proton.hooks.LaunchHook()]
    proton.hook.unregister_triton_hook()
    assert proton.hooks.HookManager.active_hooks == before


def test_submodule_does_not_take_the_place_of_a_function() -> None:
    importlib.import_module("bragg.proton.scope")
    assert inspect.isclass(proton.scope)
    assert inspect.isclass(proton.state)
    assert inspect.isfunction(proton.profile)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scoop'"):
        proton.scoop  # noqa: B018
