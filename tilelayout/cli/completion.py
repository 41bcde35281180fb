"""``tilelayout completion``: the line that teaches a shell to complete commands, options and names."""

from __future__ import annotations

import click

from .command import Command


@click.command(
    "completion",
    cls=Command,
    short_help="Completion for bash, zsh and fish.",
    examples=(("tilelayout completion zsh", 'put `eval "$(tilelayout completion zsh)"` into ~/.zshrc'),),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Write what SHELL has to run so that it completes names: `eval "$(tilelayout completion bash)"`."""
    from click.shell_completion import get_completion_class

    from .app import COMPLETE, NAME, program

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    # The script asks `tilelayout` itself; click would first look for bash's version, which is not needed to write it.
    complete = kind(program, {}, NAME, COMPLETE)
    click.echo(complete.source_template % complete.source_vars())
