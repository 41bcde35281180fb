"""The registry and the search: order, predicates, reasons, and what breaks the contract."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from lowering import (
    DispatchError,
    DispatchFail,
    PluginError,
    Tile,
    fail,
    gemm,
    lower,
    predicate,
    register_dispatch,
    registered,
    temporary_variants,
)
from lowering.dispatch import REGISTRY, Registry, Variant
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from lowering.program import Program

from ..conftest import ROOT

D = Tile("D", (16, 8), "float32", D_FRAG)
CALL = gemm(D, Tile("A", (16, 16), "float16", A_FRAG), Tile("B", (16, 8), "float16", B_FRAG), D)


@pytest.fixture(autouse=True)
def undone():
    with temporary_variants():
        yield


def go(call: Any = CALL, **more: Any) -> Any:
    return lower(call, target="sm_80", scope="warp", **more)


def refused(call: Any = CALL, **more: Any) -> str:
    with pytest.raises(DispatchError) as error:
        go(call, **more)
    return str(error.value)


def empty(name: str = "nothing") -> Program:
    return Program(name, 1, (), (), ())


def declining(name: str, priority: int, log: list[str] | None = None, reason: str = "not today") -> None:
    @register_dispatch("gemm", "cuda", variant=name, priority=priority)
    def variant(call: Any, context: Any) -> Program:
        if log is not None:
            log.append(name)
        fail(reason)


BUILT_IN = ["mma.m16n8k*", "mma.m8n8k*"]
"""By descending priority."""


# --- the order ----------------------------------------------------------------------------------


def test_higher_priority_first_then_by_name() -> None:
    log: list[str] = []
    for name, priority in (("b", 20), ("late", 5), ("a", 20), ("z", 30), ("mma.m16n8k", 10), ("zz", 10)):
        declining(name, priority, log)
    lowered = go()
    assert log == ["z", "a", "b", "mma.m16n8k"]
    assert lowered.variant == "mma.m16n8k*"
    assert [d.variant for d in lowered.declined] == log
    assert [v.name for v in registered("gemm")] == [
        "z",
        "a",
        "b",
        "mma.m16n8k",
        *BUILT_IN[:1],
        "zz",
        *BUILT_IN[1:],
        "late",
    ]


def test_what_was_tried_before_is_explained() -> None:
    declining("first", 20, reason="too early in the day")
    text = go().explain()
    assert "chosen: mma.m16n8k* (priority 10)" in text
    assert text.splitlines()[2].split() == ["variant", "priority", "reason"]
    assert text.splitlines()[3].split() == ["first", "20", "too", "early", "in", "the", "day"]


def test_a_variant_of_higher_priority_wins() -> None:
    @register_dispatch("gemm", "cuda", variant="mine", priority=11)
    def variant(call: Any, context: Any) -> Program:
        assert call is CALL
        assert (context.scope, context.target.name, context.warps) == ("warp", "sm_80", 1)
        return empty("mine")

    assert variant.__name__ == "variant"  # the decorator hands the function back
    lowered = go()
    assert (lowered.variant, lowered.program.name) == ("mine", "mine")


def test_the_config_reaches_the_variant() -> None:
    seen = {}

    @register_dispatch("gemm", "cuda", variant="configured", priority=11)
    def variant(call: Any, context: Any) -> Program:
        seen.update(context.config)
        return empty()

    go(config={"stages": 3})
    assert seen == {"stages": 3}


# --- predicates ---------------------------------------------------------------------------------


def test_all_failing_predicates_are_collected_and_the_function_is_not_called() -> None:
    def never(call: Any, context: Any) -> Program:
        raise AssertionError("called")

    def stumbles(call: Any, context: Any) -> bool:
        raise KeyError("oops")

    register_dispatch(
        "gemm",
        "cuda",
        variant="picky",
        priority=20,
        when=[
            predicate("big", lambda call, context: "the tile is small"),
            predicate("holds", lambda call, context: True),
            predicate("plain", lambda call, context: False),
            predicate("pair", lambda call, context: (False, "a pair's reason")),
            predicate("fails", lambda call, context: fail("by fail")),
            predicate("stumbles", stumbles),
            predicate("forgot", lambda call, context: None),
        ],
    )(never)
    (declined,) = go().declined
    assert declined.reasons == (
        "big: the tile is small",
        "plain does not hold",
        "pair: a pair's reason",
        "fails: by fail",
        "stumbles: unexpected KeyError: 'oops'",
        "forgot does not hold",
    )


@pytest.mark.parametrize("verdict", [True, np.True_, (True, None), (True, "so it is"), (np.bool_(True), "")])
def test_a_predicate_that_holds(verdict: object) -> None:
    when = [predicate("holds", lambda call, context: verdict)]
    register_dispatch("gemm", "cuda", variant="first", priority=20, when=when)(lambda call, context: empty())
    assert go().variant == "first"


@pytest.mark.parametrize(
    "verdict", [False, np.False_, None, "", "why", 1, [], (False, ""), (False, None), "True"]
)
def test_only_true_holds(verdict: object) -> None:
    when = [predicate("holds", lambda call, context: verdict)]
    register_dispatch("gemm", "cuda", variant="first", priority=20, when=when)(lambda call, context: empty())
    lowered = go()
    assert lowered.variant == "mma.m16n8k*"
    assert lowered.declined[0].reasons[0].startswith("holds")


def test_the_built_in_predicates_are_collected_too() -> None:
    from tilelayout import R, TileLayout, warpid

    twice = Tile("D", (16, 8), "float32", TileLayout.from_iters(D_FRAG.shard, (R[2 : 1 @ warpid]).replica))
    text = refused(gemm(twice, CALL.A, CALL.B, twice), active={"laneid": (0, 16)})
    assert "full_active_lanes: active lanes" in text
    assert "no_replica: D (D) has a replica" in text


# --- declining and stumbling --------------------------------------------------------------------


def test_a_variant_declines_with_fail_or_its_exception() -> None:
    assert issubclass(DispatchFail, Exception)
    with pytest.raises(DispatchFail, match="because"):
        fail("because")

    @register_dispatch("gemm", "cuda", variant="raises", priority=20)
    def variant(call: Any, context: Any) -> Program:
        raise DispatchFail("by hand")

    assert go().declined[0].reasons == ("by hand",)


def test_a_variant_without_a_reason_still_has_its_line() -> None:
    declining("silent", 20, reason="")
    assert go().explain().splitlines()[-1].split() == ["silent", "20", "declined", "without", "a", "reason"]


def test_an_unexpected_exception_is_recorded_and_the_search_goes_on() -> None:
    @register_dispatch("gemm", "cuda", variant="broken", priority=20)
    def variant(call: Any, context: Any) -> Program:
        raise ZeroDivisionError("of all things")

    lowered = go()
    assert lowered.variant == "mma.m16n8k*"
    (reason,) = lowered.declined[0].reasons
    assert reason.startswith("unexpected ZeroDivisionError in ")
    assert "test_an_unexpected_exception_is_recorded" in reason
    assert reason.endswith(": of all things")


def test_the_end_of_the_process_is_not_swallowed() -> None:
    @register_dispatch("gemm", "cuda", variant="stops", priority=20)
    def variant(call: Any, context: Any) -> Program:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go()


@pytest.mark.parametrize("result", [None, "text", 0, True, 3.5, (), NotImplemented], ids=repr)
def test_anything_but_a_program_is_an_error_that_names_the_variant(result: object) -> None:
    register_dispatch("gemm", "cuda", variant="forgetful", priority=20)(lambda call, context: result)
    text = refused()
    assert "variant 'forgetful' of gemm" in text
    assert "test_dispatch" in text
    assert f"returned {result!r}" in text
    assert "a variant returns a Program or declines with fail(reason)" in text


def test_all_reasons_stand_in_the_table() -> None:
    declining("first", 20, reason="one")
    register_dispatch(
        "gemm",
        "cuda",
        variant="a long name of a variant",
        priority=-5,
        when=[predicate("p", lambda c, x: "two"), predicate("q", lambda c, x: "three " * 40)],
    )(lambda call, context: empty())
    lines = refused(gemm(D, CALL.A, CALL.B, D, alpha=2)).splitlines()
    assert lines[0] == "no variant lowers gemm (D = 2 * A @ B + 0.0 * D) for sm_80 at warp scope:"
    assert lines[1].split() == ["variant", "priority", "reason"]
    assert lines[2].split() == ["first", "20", "one"]
    assert lines[3].split()[:4] == ["mma.m16n8k*", "10", "alpha", "is"]
    column = lines[1].index("reason")
    where = next(i for i, x in enumerate(lines) if "a long name" in x)
    assert lines[where][:column].split() == ["a", "long", "name", "of", "a", "variant", "-5"]
    assert lines[where][column:] == "p: two"
    assert lines[where + 1][column:].startswith("q: three")
    assert all(not x[:column].strip() for x in lines[where + 1 :])
    assert max(len(x) for x in lines) <= 100


# --- forced, unknown, duplicate -----------------------------------------------------------------


def test_a_forced_variant_is_the_only_one_tried() -> None:
    log: list[str] = []
    declining("first", 20, log)
    lowered = go(dispatch="mma.m16n8k*")
    assert (lowered.variant, lowered.declined, log) == ("mma.m16n8k*", (), [])
    text = refused(dispatch="first")
    assert "first" in text
    assert "not today" in text
    assert "mma.m16n8k*" not in text


@pytest.mark.parametrize("name", ["mma.m16n8k", "mma", "", 5])
def test_an_unknown_forced_name_suggests(name: object) -> None:
    text = refused(dispatch=name)
    assert f"no variant {name!r} of gemm" in text
    assert "mma.m16n8k*" in text


@dataclass(frozen=True)
class Transpose:
    """A primitive that nobody has."""

    primitive: ClassVar[str] = "transpose"
    tiles: ClassVar[dict[str, Tile]] = {}

    def operands(self) -> list[Any]:
        return []


def test_an_unknown_primitive_names_the_known_ones() -> None:
    text = refused(Transpose())
    assert "no variant is registered for primitive 'transpose'" in text
    assert "gemm" in text


def test_a_new_primitive_needs_only_a_registration() -> None:
    register_dispatch("transpose", "cuda", variant="identity")(lambda call, context: empty("identity"))
    assert go(Transpose()).program.name == "identity"
    assert [v.name for v in registered("transpose")] == ["identity"]
    assert {v.primitive for v in registered()} >= {"gemm", "transpose"}


def test_another_platform_is_not_asked() -> None:
    register_dispatch("gemm", "rocm", variant="mfma", priority=99)(lambda call, context: empty())
    assert go().variant == "mma.m16n8k*"
    assert "mfma" in [v.name for v in registered("gemm")]


def test_a_duplicate_names_both_providers() -> None:
    def mine(call: Any, context: Any) -> Program:
        return empty()

    with pytest.raises(PluginError) as error:
        register_dispatch("gemm", "cuda", variant="mma.m16n8k*", priority=3)(mine)
    text = str(error.value)
    assert "'mma.m16n8k*' of gemm on cuda is registered twice" in text
    assert "lowering.variants.gemm_mma_sync.gemm_m16n8" in text
    assert f"{mine.__module__}.{mine.__qualname__}" in text
    (kept,) = [v for v in registered("gemm") if v.name == "mma.m16n8k*"]
    assert kept.priority == 10
    register_dispatch("gemm", "rocm", variant="mma.m16n8k*")(mine)
    register_dispatch("copy", "cuda", variant="mma.m16n8k*")(mine)


def test_registered_lists_what_a_person_wants_to_know() -> None:
    for variant, name, priority, function in zip(
        registered("gemm"), BUILT_IN, (10, 9), ("gemm_m16n8", "gemm_m8n8"), strict=True
    ):
        assert (variant.primitive, variant.platform) == ("gemm", "cuda")
        assert (variant.name, variant.priority) == (name, priority)
        assert [p.name for p in variant.when] == ["full_active_lanes", "no_replica"]
        assert variant.provider == f"lowering.variants.gemm_mma_sync.{function}"
    assert registered("nothing") == ()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("gemm", "cuda"), {"variant": ""}),
        (("gemm", "cuda"), {"variant": None}),
        (("", "cuda"), {"variant": "v"}),
        (("gemm", None), {"variant": "v"}),
        (("gemm", "cuda"), {"variant": "v", "priority": 1.5}),
        (("gemm", "cuda"), {"variant": "v", "priority": "high"}),
        (("gemm", "cuda"), {"variant": "v", "when": [lambda call, context: True]}),
        (("gemm", "cuda"), {"variant": "v", "when": [("name", lambda call, context: True)]}),
    ],
)
def test_a_malformed_registration_is_refused(arguments: tuple, named: dict) -> None:
    with pytest.raises(TypeError):
        register_dispatch(*arguments, **named)
    assert [v.name for v in registered("gemm")] == BUILT_IN


@pytest.mark.parametrize("function", [5, "gemm", None, empty()], ids=repr)
def test_a_variant_that_cannot_be_called_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=r"variant 'v' must be a function \(call, context\) -> Program, got"):
        register_dispatch("gemm", "cuda", variant="v")(function)
    assert [v.name for v in registered("gemm")] == BUILT_IN


@pytest.mark.parametrize(
    ("name", "check"), [(None, lambda c, x: True), ("p", None), ("p", "text"), (lambda c, x: True, "p")]
)
def test_a_malformed_predicate_is_refused(name: Any, check: Any) -> None:
    with pytest.raises(TypeError):
        predicate(name, check)


# --- undoing ------------------------------------------------------------------------------------


def test_temporary_variants_are_undone_also_after_an_error() -> None:
    with contextlib.suppress(ZeroDivisionError), temporary_variants():
        declining("brief", 50)
        raise ZeroDivisionError
    assert "brief" not in [v.name for v in registered("gemm")]
    assert go().variant == "mma.m16n8k*"


def test_a_registry_takes_away_what_it_was_given() -> None:
    registry = Registry()
    variant = Variant("gemm", "cuda", "v", 0, (), lambda call, context: empty(), "here")
    registry.add(variant)
    assert registry.variants("gemm", "cuda") == [variant]
    registry.remove(variant)
    assert registry.variants() == []
    assert REGISTRY.variants("gemm")


@pytest.mark.parametrize("first", ["lower", "registered", "temporary_variants"])
def test_built_in_variants_are_there_whatever_is_imported_first(first: str) -> None:
    """A temporary block that is entered before anything was lowered must not take the built-in ones with it."""
    code = f"""
from lowering import {first}, temporary_variants, register_dispatch, fail
with temporary_variants():
    register_dispatch("gemm", "cuda", variant="brief")(lambda call, context: fail("no"))
    from lowering import registered
    assert [v.name for v in registered("gemm")] == [*{BUILT_IN}, "brief"], registered()
assert [v.name for v in registered("gemm")] == {BUILT_IN}, registered()
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
