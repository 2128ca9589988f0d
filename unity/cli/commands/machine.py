"""Commands about the machine and this installation: cache, doctor, demo."""

from __future__ import annotations

from typing import Annotated

import typer


def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove all compiled code; measurements stay.")
    ] = False,
    clear_measurements: Annotated[
        bool, typer.Option("--clear-measurements", help="Remove the times that were measured.")
    ] = False,
) -> None:
    """Tell what the disk cache of compiled kernels holds; UNITY_CACHE_DIR=off turns it off."""
    from ..cache import show_cache

    show_cache(clear, clear_measurements)


def doctor() -> None:
    """Tell what this machine has: cpu features, caches, libraries, the state of the cache."""
    from ..doctor import examine

    examine()


def demo(
    show: Annotated[
        bool, typer.Option("--show", help="Print the program in both levels of the IR.")
    ] = False,
) -> None:
    """Compile the digits model that ships with Unity and classify images it has never seen."""
    from unity.demo.digits import run_demo

    run_demo(show)
