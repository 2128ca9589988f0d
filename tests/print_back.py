"""Programs that tests build print to a text that parses back to them.

Most tests build programs much like those of others, and reading one costs more than compiling it.
So a program is read back if its text has something new: two words in a row that no text had since
the process began, whatever names and numbers are. The slow run reads back more of them, new or not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from keyword import iskeyword

from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.graph import CallPython
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.script import constants_of, parse, print_module

EACH_END = 3  # of a test that builds many: the first and the last ones, if all are read back
LONGEST = 15_000  # characters, of which reading takes half a second; more repeats what is shorter
WORD = re.compile(
    r"(?P<value>(?<![\w.])[A-Za-z_]\w*(?![\w(.=\"]))|(?P<number>\d[\w.]*)|\w+|[^\w\s]"
)
"""A value's name, a number, or anything else."""


@dataclass
class PrintBack:
    """Which programs were read back.

    Attributes:
        every: Whether each is, new or not.
    """

    every: bool = False
    seen: set[tuple[str, ...]] = field(default_factory=set)

    def check(self, built: Sequence[IRModule]) -> None:
        """Read back some of the programs that a test built."""
        ends = EACH_END if self.every else 1
        for module in {id(m): m for m in (*built[:ends], *built[-ends:])}.values():
            if not is_program(module):
                continue
            text = print_module(module)
            if self.every or (len(text) <= LONGEST and self.has_new(text)):
                back = parse(text, constants_of(module))
                assert first_difference(module, back) is None, text

    def has_new(self, text: str) -> bool:
        """Whether two words stand in a row as never before; they are known from now on.

        >>> known = PrintBack()
        >>> known.has_new("a = R.exp(b)"), known.has_new("c1 = R.exp(d)")
        (True, False)
        >>> known.has_new("c1 = R.tanh(d)")
        True
        """
        words = [_shape(w) for w in WORD.finditer(text)]
        found = set(pairwise(words)) - self.seen
        self.seen |= found
        return bool(found)


def _shape(word: re.Match[str]) -> str:
    if word["number"]:
        return "0"
    return "x" if word["value"] and not iskeyword(word[0]) else word[0]


def is_program(module: IRModule) -> bool:
    """Whether it is well formed (a test may build others on purpose) and all of it has a text."""
    try:
        verify(module)
    except UnityError:
        return False
    return not any(
        isinstance(binding.value, CallPython)
        for function in module.graph_functions().values()
        for binding in walk_bindings(function)
    )
