"""What the commands share: element types and targets as they are written, errors of lowering on one line."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import click

from tilelayout.errors import nearest

TARGET_HELP = "The architecture, e.g. sm_90a."


@contextmanager
def refusals() -> Generator[None]:
    """Errors of lowering as click's, so that they are one line and not a traceback."""
    from ..errors import DispatchError, MachineError, PluginError

    try:
        yield
    except (DispatchError, MachineError, PluginError, ImportError) as error:
        raise click.UsageError(" ".join(str(error).split())) from None


def type_name(text: str) -> str:
    """The element type of a name, ours or PTX's.

    >>> type_name("bf16"), type_name("float16"), type_name("e4m3")
    ('bfloat16', 'float16', 'float8_e4m3fn')

    Errors: BadParameter for another one, naming the nearest.
    """
    from ..dtypes import DTYPES

    by_name = {d.ptx: d.name for d in DTYPES.values()} | {name: name for name in DTYPES}
    if text not in by_name:
        raise click.BadParameter(f"there is no element type {text!r}, {nearest(text, list(by_name))}")
    return by_name[text]


def target_name(text: str) -> str:
    """The target of that name.  Errors: BadParameter for an unknown one, naming the nearest."""
    from ..target import target

    try:
        return target(text).name
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--target") from None
