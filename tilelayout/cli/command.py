"""What every command of the command line is: a click command whose help ends with examples that the tests run."""

from __future__ import annotations

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

YES: Final = 0
NO: Final = 1
BAD_INPUT: Final = 2
FAULT: Final = 3


class Command(click.Command):
    """A command with examples.

    Attributes:
        examples: (command line, what it shows) pairs.
    """

    def __init__(self, *arguments: Any, examples: tuple[tuple[str, str], ...] = (), **options: Any) -> None:
        options.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*arguments, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, unwrapped, so that they can be pasted."""
        if self.examples:
            formatter.write("\nExamples:\n")
            for line, shows in self.examples:
                formatter.write(f"  # {shows}\n  {line}\n")
        super().format_epilog(ctx, formatter)


def answer_code(yes: bool) -> int:
    """0 for yes, 1 for no."""
    return YES if yes else NO
