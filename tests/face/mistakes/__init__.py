"""The catalogue of mistakes: what is said of each, why, and how the program is right.

A test runs every row both ways; the documentation's page of errors is made of the same rows.
"""

from __future__ import annotations

from .command_line import COMMANDS
from .graphs import GRAPHS
from .importing import IMPORTING
from .kernels import KERNELS
from .mistake import Mistake
from .running import RUNNING
from .schedules import SCHEDULES

CATALOGUE: dict[str, tuple[Mistake, ...]] = {
    "Kernels": KERNELS,
    "Graph functions": GRAPHS,
    "Compiling, calling, saving": RUNNING,
    "Models": IMPORTING,
    "Schedules, builders, tuning": SCHEDULES,
    "The command line": COMMANDS,
}
"""All mistakes, by what the user was at."""
