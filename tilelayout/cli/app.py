"""The group of commands: found and imported when they are asked for; errors become one line and an exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from .. import errors
from .command import BAD_INPUT, FAULT, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.metadata import EntryPoint
    from typing import Any, Final

NAME: Final = "tilelayout"
ENTRY_POINT_GROUP: Final = "tilelayout.commands"
TRACEBACK: Final = "TILELAYOUT_TRACEBACK"
"""Environment variable: set, a fault of the program shows where it happened."""

LONGEST: Final = 1000
"""Characters of an error's line: a number may have hundreds of digits."""

COMPLETE: Final = "_TILELAYOUT_COMPLETE"
"""Environment variable by which a shell asks for completions, as click names it."""

COMMANDS: Final = ("show", "query", "check", "convert", "banks", "swizzle", "explore", "completion")
"""The commands of this package; each is `command` in the module of its name.  No other package can replace one."""


class Program(click.Group):
    """The group: its own commands, then those that installed packages offer."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help."""
        return [*COMMANDS, *[name for name in sorted(offered()) if name not in COMMANDS]]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; one that does not load is there, and says why when it is called."""
        if cmd_name in COMMANDS:
            return import_module(f".{cmd_name}", __package__).command
        points = offered().get(cmd_name)
        return None if points is None else loaded(cmd_name, points)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown name is refused with the nearest."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not name.startswith("-"):
            hint = errors.nearest(name, self.list_commands(ctx))
            raise click.UsageError(f"there is no command {name!r}, {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Exit codes, and where to go on."""
        formatter.write(
            "\nExit codes: 0 yes or done, 1 no, 2 bad input, 3 a fault of the program.\n"
            f"`{NAME} COMMAND --help` shows examples; `{NAME} completion bash` completes names in a shell.\n"
        )


def offered() -> Mapping[str, list[EntryPoint]]:
    """Name -> the entry points that installed packages have for it; more than one is a conflict."""
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (p.name, p.value)):
        same = found.setdefault(point.name, [])
        if point.value not in [other.value for other in same]:
            same.append(point)
    return found


def loaded(name: str, points: Sequence[EntryPoint]) -> click.Command:
    """The command behind an entry point, or one that says why there is none."""
    if len(points) > 1:
        providers = " and ".join([point.value for point in points])
        return _broken(name, f"two packages have a command {name!r}: {providers}")
    try:
        command = points[0].load()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a plug-in, the others still work
        return _broken(name, f"{points[0].value} does not load: {type(error).__name__}: {one_line(error)}")
    if not isinstance(command, click.Command):
        return _broken(name, f"{points[0].value} is no click command but {type(command).__name__}")
    return command


def _broken(name: str, reason: str) -> click.Command:
    def refuse(**_: Any) -> None:
        raise click.ClickException(reason)

    settings = {"ignore_unknown_options": True}
    anything = click.Argument(["anything"], nargs=-1, type=click.UNPROCESSED)
    return Command(
        name,
        callback=refuse,
        short_help=f"(not available: {reason})",
        params=[anything],
        context_settings=settings,
    )


@click.group(
    NAME,
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name=NAME, message="%(prog)s %(version)s")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Layouts of tensors over named hardware axes: see them, ask them, compare them.

    A LAYOUT is written in the notation, e.g. "S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid",
    "Swizzle(3, 3, 3) o S[8, 64]", or in the form that TVM prints; "-" reads it from standard input.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run a command line and give its exit code; what goes wrong is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that lacks a character gets a "?"
    try:
        code = _invoke(list(arguments))
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _said(
            error.format_message(), _hint(error), error.exit_code if error.exit_code > 1 else BAD_INPUT
        )
    except (click.Abort, KeyboardInterrupt):
        return _said("interrupted", "", 130)
    except BrokenPipeError:  # `tilelayout ... | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (errors.LayoutError, OSError) as error:
        return _said(one_line(error), "", BAD_INPUT)
    except (MemoryError, RecursionError, OverflowError) as error:
        return _said(f"the input is too large ({type(error).__name__})", "", BAD_INPUT)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        fault = f"a fault of the program: {type(error).__name__}: {one_line(error)}"
        return _said(fault, f"{TRACEBACK}=1 shows where", FAULT)
    return code if isinstance(code, int) else 0


def _invoke(arguments: list[str]) -> Any:
    """What `click.Group.main` does, which would turn a closed pipe into the exit code for "no"."""
    completing = os.environ.get(COMPLETE)
    if completing:
        from click.shell_completion import shell_complete

        return shell_complete(program, {}, NAME, COMPLETE, completing)
    with program.make_context(NAME, arguments) as ctx:
        return program.invoke(ctx)


def _said(message: str, hint: str, code: int) -> int:
    text = " ".join(message.split())
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} ..."
    sys.stderr.write(f"{NAME}: {text}{f' ({hint})' if hint else ''}\n")
    return code


def _hint(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    return "" if ctx is None else f"{ctx.command_path} --help says more"


def one_line(error: BaseException) -> str:
    """An error's message on one line; where it points at a place in a text, the place is marked.

    >>> from tilelayout import TileLayout
    >>> try:
    ...     TileLayout.parse("S[8 : 4 @ lanid]")
    ... except ValueError as error:
    ...     print(one_line(error))
    parse: at position 10: expected an axis (...), found 'lanid', here: S[8 : 4 @ --> lanid]
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'file'}: {error.strerror}"
    lines = str(error).split("\n")
    if len(lines) == 3 and lines[2].strip() == "^":
        at = lines[2].index("^")
        lines = [f"{lines[0]}, here: {lines[1][:at].strip()} --> {lines[1][at:]}"]
    return " ".join(" ".join(lines).split()) or type(error).__name__
