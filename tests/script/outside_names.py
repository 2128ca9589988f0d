"""Names that a source takes from the text around it: without them nobody can read it."""

from __future__ import annotations

import builtins
import symtable

GIVEN = frozenset({"I", "R", "T", "tvm", "tir", "relax"})
"""What TVM's tests import, and whoever reads a source gives it."""


def outside_names(text: str) -> frozenset[str]:
    """The names that a source uses and defines nowhere; none of a text that is no Python.

    >>> sorted(outside_names("@T.prim_func\\ndef f(a: T.Buffer((n,))):\\n    a[k] = g(min(1, 2))"))
    ['g', 'k', 'n']
    """
    try:
        table = symtable.symtable(text, "source", "exec")
    except SyntaxError:
        return frozenset()
    own = {s.get_name() for s in table.get_symbols() if s.is_assigned()}
    used = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    return frozenset((used | _free(table)) - own - GIVEN - set(dir(builtins)))


def _free(table: symtable.SymbolTable) -> set[str]:
    found = {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    return found.union(*(_free(child) for child in table.get_children()))
