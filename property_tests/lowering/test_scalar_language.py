"""What a Python function may not do in a kernel is said in our own words, with its line and what to write instead."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowering.backends.numba_cuda.scalar import scalar_instruction
from tilelayout import LayoutError

LIST, DICT, SET, TUPLE, ARRAY = [1.0, 2.0], {"a": 2.0}, {1.0}, (1.0, 2.0), np.ones(3)
NUMBER = 2.0


def raising(x: float) -> float:
    if x > 1:
        raise ValueError(x)  # here
    return x


def asserting(x: float) -> float:
    assert x > 0  # here
    return x


def trying(x: float) -> float:
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


def entering(x: float) -> float:
    with np.errstate():  # here
        return x


def importing(x: float) -> float:
    import cmath  # here

    return x * cmath.pi


def setting(x: float) -> float:
    global NUMBER
    NUMBER = x  # here
    return x


def printing(x: float) -> float:
    print(x)  # noqa: T201  # here
    return x


def of_a_list(x: float) -> float:
    return x * LIST[0]  # here


def of_a_dict(x: float) -> float:
    return x * DICT["a"]  # here


def of_a_tuple(x: float) -> float:
    return x * TUPLE[0]  # here


def in_a_set(x: float) -> float:
    return x if x in SET else 0.0  # here


def calling(x: float) -> float:
    return raising(x) + 1  # here


def undefined(x: float) -> float:
    return x * nowhere  # type: ignore[name-defined]  # noqa: F821  # here


def listing(x: float) -> float:
    return max([x, 2 * x])  # here


def of_numpy(x: float) -> float:
    return np.exp(x)  # here


def absolute(x: float) -> float:
    return np.abs(x) if x > 3 else np.sqrt(x)


def combining(x: float) -> float:
    return math.comb(3, x)  # type: ignore[arg-type]  # here


def of_torch(x: Any) -> float:
    return x.clamp(0.0)  # here


def pair(x: float) -> Any:
    return (x, x)


def text(x: float) -> Any:
    return "x"


def nothing(x: float) -> Any:
    pass


async def later(x: float) -> float:
    return x


def generating(x: float) -> Any:
    yield x


async def both(x: float) -> Any:
    yield x


REFUSED: dict[Callable[..., Any], tuple[str, ...]] = {
    raising: ("`raise`", "a conditional expression", "NaN"),
    asserting: ("`assert`", "a conditional expression"),
    trying: ("`try`", "math.isinf"),
    entering: ("`with`", "arithmetic"),
    importing: ("`import`", "outside the function"),
    setting: ("global variable", "return the number"),
    printing: ("`print`", "simulate"),
    of_a_list: ("`LIST` is a list", "outside of the function"),
    of_a_dict: ("`DICT` is a dict", "outside of the function"),
    of_a_tuple: ("`TUPLE` is a tuple", "outside of the function"),
    in_a_set: ("`SET` is a set", "outside of the function"),
    calling: ("`raising` is another Python function", "write its body"),
    undefined: ("`nowhere` is not defined", "define it"),
    listing: ("it makes a list", "a variable for each number"),
    of_numpy: ("`np.exp`", "(remedy: math.exp)"),
    combining: ("`math.comb`", "other functions of math"),
    of_torch: ("no `.clamp`", "min, max"),
    pair: ("returns a tuple", "one number"),
    text: ("returns a string", "one number"),
    nothing: ("returns None", "one number on every way"),
    later: ("asynchronous", "a plain def"),
    generating: ("a generator", "a plain def"),
    both: ("asynchronous", "a plain def"),
}
PASSES_OF_NUMBA = (
    "numba",
    "IR",
    "opcode",
    "Untyped",
    "UniTuple",
    "signature",
    "exception_match",
    "OverloadSelector",
)


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_the_words_are_ours(function: Callable[..., Any]) -> None:
    with pytest.raises(LayoutError) as error:
        scalar_instruction(function, "sm_90a")
    said = str(error.value)
    assert said.startswith(f"function {function.__name__}: ")
    assert not [w for w in REFUSED[function] if w not in said], said
    assert not [w for w in PASSES_OF_NUMBA if w in said], said


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_the_line_is_where_it_stands(function: Callable[..., Any]) -> None:
    with pytest.raises(LayoutError) as error:
        scalar_instruction(function, "sm_90a")
    lines, first = inspect.getsourcelines(function)
    marked = [first + i for i, x in enumerate(lines) if x.rstrip().endswith("# here")]
    wanted = marked or range(first, first + len(lines))
    assert any(f"(test_scalar_language.py, line {n})" in str(error.value) for n in wanted), str(error.value)


def test_numbers_from_around_and_arrays_of_them_are_fine() -> None:
    local = 0.5

    def inside(x: float) -> float:
        def twice(y: float) -> float:
            return 2 * y

        return twice(x) * NUMBER + ARRAY[0] * local

    for function in (inside, lambda x: max(x, 0.0), lambda x: math.exp(-x), lambda x: np.maximum(x, 0.0)):
        assert scalar_instruction(function, "sm_90a").template


def test_an_unknown_reason_keeps_the_words_of_numba() -> None:
    """With the rule, and the error that they are from."""

    def shifted(x: float) -> Any:
        return x << 1  # type: ignore[operator]

    with pytest.raises(LayoutError, match="numba does not compile it") as error:
        scalar_instruction(shifted, "sm_90a")
    assert "functions of math" in str(error.value)
    assert error.value.__cause__ is not None
