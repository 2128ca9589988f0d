"""The `unity` command. Imports nothing heavy: ``unity --help`` must be quick.

The commands and their options are in `commands`; the work of each is in the file of its name beside
this one and is imported when it runs.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from unity.cli.commands import change, execute, look, machine, tune
from unity.errors import InternalError, UnityError
from unity.version import VERSION

app = typer.Typer(
    name="unity",
    help="A machine-learning compiler: import a model, compile it, run it, look inside.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"unity {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A machine-learning compiler: import a model, compile it, run it, look inside."""


_COMMANDS: tuple[Callable[..., None], ...] = (
    execute.run, execute.compile_, execute.bench, look.inspect, look.explain, execute.check,
    change.migrate, change.quantize, look.bisect, tune.tune, tune.worker,
    machine.cache, machine.doctor, machine.demo,
)  # fmt: skip
"""In the order that ``unity --help`` lists them."""
for _command in _COMMANDS:
    app.command(_command.__name__.rstrip("_"))(_command)
script_app = typer.Typer(no_args_is_help=True, help="Programs as text: fmt.")
app.add_typer(script_app, name="script")
script_app.command("fmt")(change.script_fmt)
db_app = typer.Typer(no_args_is_help=True, help="Records of tuning: show, merge, prune.")
app.add_typer(db_app, name="db")
db_app.command("show")(tune.db_show)
db_app.command("merge")(tune.db_merge)
db_app.command("prune")(tune.db_prune)


def main() -> None:
    """The entry point: errors of ours are printed without a traceback, and exit with 1."""
    try:
        app()
    except UnityError as error:
        if isinstance(error, InternalError):  # a report needs to say where
            traceback.print_exception(error)
        _fail(error)
    except BrokenPipeError:  # who reads what is printed has seen enough
        sys.stderr.close()
        raise SystemExit(1) from None
    except OSError as error:  # a full disk, a file without rights
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    from rich.console import Console

    Console(stderr=True, highlight=False).print("[bold red]error:[/] ", end="")
    print(error, file=sys.stderr)
    raise SystemExit(1) from None


if __name__ == "__main__":
    main()
