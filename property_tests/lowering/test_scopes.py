"""What is computed before a loop, what in it, and what is computed again: instructions of scoped expressions."""

from __future__ import annotations

from lowering.backends.scopes import ScopedCode, flat
from tilelayout.expr import Var

X, Y = Var("x", 0, 1000), Var("y", 0, 1000)
WIDE = Var("wide", -(1 << 40), 1 << 40)


def code() -> ScopedCode:
    found = ScopedCode({}, {32: "%r", 64: "%rd"})
    for v in (X, Y, WIDE):
        found.declare(v, f"%{v.name}")
    return found


def change(found: ScopedCode, name: str) -> None:
    found.forget(name)
    found.line(f"mov %{name};")


def test_an_invariant_is_computed_once_before_the_outermost_loop_that_hoists() -> None:
    c = code()
    c.enter(frozenset({"x"}), hoist=True)
    c.line("outer:")
    c.enter(frozenset({"x"}), hoist=True)
    c.line("inner:")
    first = c.value(Y * 3, 32)
    assert c.value(Y * 3, 32) == first
    c.leave()
    assert c.value(Y * 3, 32) == first
    c.leave()
    assert c.value(Y * 3, 32) == first  # behind the loops too
    assert flat(c.scopes[0].lines) == ["mul.lo.s32 %r0, %y, 3;", "    outer:", "        inner:"]


def test_what_changes_in_the_outer_loop_is_computed_before_the_inner_one() -> None:
    c = code()
    c.enter(frozenset({"x", "y"}), hoist=True)
    c.line("outer:")
    c.enter(frozenset({"x"}), hoist=True)
    c.line("inner:")
    c.value(Y * 3 + X, 32)
    c.leave()
    c.leave()
    assert flat(c.scopes[0].lines) == [
        "    outer:",
        "    mul.lo.s32 %r0, %y, 3;",
        "        inner:",
        "        add.s32 %r1, %r0, %x;",
    ]


def test_a_loop_that_does_not_hoist_keeps_what_is_its_own() -> None:
    c = code()
    c.enter(frozenset({"x"}), hoist=False)
    c.line("loop:")
    inside = c.value(Y * 3, 32)
    c.leave()
    assert c.value(Y * 3, 32) != inside
    assert flat(c.scopes[0].lines) == [
        "    loop:",
        "    mul.lo.s32 %r0, %y, 3;",
        "mul.lo.s32 %r1, %y, 3;",
    ]


def test_nothing_leaves_a_loop_that_does_not_hoist_from_one_inside_that_does() -> None:
    c = code()
    c.enter(frozenset({"x"}), hoist=False)
    c.line("outer:")
    c.enter(frozenset({"x"}), hoist=True)
    c.line("inner:")
    c.value(Y * 3, 32)
    c.leave()
    c.leave()
    assert flat(c.scopes[0].lines) == ["    outer:", "    mul.lo.s32 %r0, %y, 3;", "        inner:"]


def test_what_was_known_before_serves_in_a_loop_that_does_not_hoist() -> None:
    c = code()
    before = c.value(Y * 3, 32)
    c.enter(frozenset({"x"}), hoist=False)
    assert c.value(Y * 3, 32) == before


def test_what_a_branch_computes_is_not_known_beside_it_or_behind_it() -> None:
    c = code()
    c.enter()
    c.line("then:")
    then = c.value(Y * 3, 32)
    c.leave()
    c.enter()
    c.line("else:")
    other = c.value(Y * 3, 32)
    c.leave()
    behind = c.value(Y * 3, 32)
    assert len({then, other, behind}) == 3
    assert [x.strip() for x in flat(c.scopes[0].lines)] == [
        "then:",
        "mul.lo.s32 %r0, %y, 3;",
        "else:",
        "mul.lo.s32 %r1, %y, 3;",
        "mul.lo.s32 %r2, %y, 3;",
    ]


def test_a_loop_in_a_branch_hoists_no_further_than_the_branch() -> None:
    c = code()
    c.enter()
    c.line("then:")
    c.enter(frozenset({"x"}), hoist=True)
    c.line("loop:")
    inside = c.value(Y * 3, 32)
    c.leave()
    c.leave()
    assert c.value(Y * 3, 32) != inside
    assert flat(c.scopes[0].lines)[:3] == ["    then:", "    mul.lo.s32 %r0, %y, 3;", "        loop:"]


def test_what_an_assignment_in_a_branch_makes_stale_is_computed_again_behind_it() -> None:
    c = code()
    before = c.value(X * 3, 32)
    kept = c.value(Y * 3, 32)
    c.enter()
    assert c.value(X * 3, 32) == before  # the branch has not assigned it yet
    change(c, "x")
    changed = c.value(X * 3, 32)
    c.leave()
    behind = c.value(X * 3, 32)
    assert len({before, changed, behind}) == 3
    assert c.value(Y * 3, 32) == kept


def test_what_a_loop_assigns_is_stale_from_its_beginning_on() -> None:
    c = code()
    before = c.value(X * 3, 32)
    c.enter(frozenset({"x"}), hoist=True)
    inside = c.value(X * 3, 32)
    change(c, "x")
    c.leave()
    behind = c.value(X * 3, 32)
    assert len({before, inside, behind}) == 3


def test_what_is_computed_from_computed_values_is_stale_with_them() -> None:
    c = code()
    before = c.value((X * 3 + Y) // 7, 32)
    change(c, "x")
    assert c.value((X * 3 + Y) // 7, 32) != before
    behind = c.value((X * 3 + Y) // 7, 32)
    change(c, "y")
    assert c.value((X * 3 + Y) // 7, 32) != behind


def test_terms_that_change_least_are_added_first() -> None:
    c = code()
    c.enter(frozenset({"x"}), hoist=True)
    c.line("loop:")
    c.value(X * 64 + Y * 3 + 5 * WIDE, 64)
    c.leave()
    lines = flat(c.scopes[0].lines)
    inside = lines[lines.index("    loop:") + 1 :]
    assert [x.split()[0] for x in inside] == ["cvt.u64.u32", "shl.b64", "add.s64"]


def test_literals_fit_the_width_of_their_instruction() -> None:
    """A sum of 32 bits may have parts of more: they are taken modulo its width."""
    c = code()
    far = Var("far", -3_000_000_100, -2_999_999_000)
    c.declare(far, "%far")
    c.value(far + 3_000_000_100, 32)
    (line,) = flat(c.scopes[0].lines)[-1:]
    assert line.endswith(f", {3_000_000_100 - (1 << 32)};")


def test_a_wide_register_of_a_narrow_variable_is_used_as_it_is() -> None:
    c = code()
    narrow = Var("wide", 0, 100)
    assert c.value(narrow, 64) == "%wide"
    assert c.value(narrow * 4 + WIDE * 2, 64)
    assert not any(line.startswith("cvt.u64") for line in flat(c.scopes[0].lines))
