"""The command line with only the named command built: the others are names with a line of help.

Typer builds every option of every command before it looks at what was typed, and that takes longer than --help may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer
from typer.main import get_command_name


def app_for(whole: typer.Typer, arguments: Sequence[str]) -> typer.Typer:
    """An app that does with these arguments what the whole one does."""
    named = next((argument for argument in arguments if not argument.startswith("-")), None)
    small = typer.Typer()
    small.info, small.registered_callback = whole.info, whole.registered_callback
    small.pretty_exceptions_enable, small._add_completion = whole.pretty_exceptions_enable, whole._add_completion
    small.rich_markup_mode = whole.rich_markup_mode
    for command in whole.registered_commands:
        if command.callback is None:
            continue
        name = command.name or get_command_name(command.callback.__name__)
        if name == named:
            small.registered_commands.append(command)
        else:
            small.command(name)(_with_help_of(command.callback.__doc__))
    for group in whole.registered_groups:
        if group.name == named:
            small.registered_groups.append(group)
        else:
            help_text = group.typer_instance.info.help if group.typer_instance is not None else None
            small.command(group.name)(_with_help_of(help_text if isinstance(help_text, str) else None))
    return small


def _with_help_of(text: str | None) -> Callable[[], None]:
    def nothing() -> None:
        raise RuntimeError("only the named command is ever run")

    nothing.__doc__ = text
    return nothing
