"""The table of Relay's operators, ``tutorials/relay_operators.md``; a test holds it to the tables.

``python -m tests.frontend.relay.operator_table`` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from unity.frontend.relay.operators.refused import REFUSED
from unity.frontend.relay.operators.table import CONVERTERS
from unity.frontend.relay.schema import names, signature

FILE = Path(__file__).parents[3] / "tutorials" / "relay_operators.md"
_HEAD = """# Relay's operators

Written by `python -m tests.frontend.relay.operator_table`, kept true by a test. {translated} of
{all} operators are translated, each by a converter in `unity/frontend/relay/operators/`; the others
are refused by name with the reason.

| operator | operands | attributes | |
|---|---|---|---|
"""


def text() -> str:
    """The table as it must be."""
    rows = "".join(f"{_row(name)}\n" for name in names())
    return _HEAD.format(translated=len(CONVERTERS), all=len(names())) + rows


def _row(name: str) -> str:
    found = signature(name)
    assert found is not None
    operands = "any" if found.arguments is None else ", ".join(found.arguments)
    fields = "any" if found.fields is None else ", ".join(found.fields)
    state = "translated" if name in CONVERTERS else f"refused: {REFUSED[name]}"
    return f"| `{name}` | {operands} | {fields} | {state} |"


if __name__ == "__main__":
    FILE.write_text(text())
