"""The catalogue of mistakes: each is refused with its words, and what is right runs."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from tests.face.mistakes import CATALOGUE
from tests.face.mistakes.mistake import Mistake, error_of, run

ROWS = {f"{group}: {m.title}": m for group, rows in CATALOGUE.items() for m in rows}


def agrees(said: str | None, wanted: str | None) -> bool:
    """Whether a text is the one wanted, or begins with it where that ends in dots."""
    if said is None or wanted is None:
        return said is wanted
    return said == wanted or (wanted.endswith(" ...") and said.startswith(wanted[:-4]))


@pytest.mark.parametrize("name", ROWS)
def test_a_mistake_is_told_in_these_words(name: str, tmp_path: Path) -> None:
    row = ROWS[name]
    error = error_of(row.wrong, tmp_path)
    assert agrees(error.message, row.says), f"it says\n{error.message!r}"
    assert agrees(error.hint, row.hint), f"it says\n{error.hint!r}"
    if not row.is_command:
        last = traceback.extract_tb(error.__traceback__)[-1]
        assert Path(last.filename).parent == tmp_path, "the last frame shown is not the user's"


@pytest.mark.parametrize("name", ROWS)
def test_the_remedy_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(ROWS[name].right, tmp_path)


def test_there_are_enough_and_each_says_why() -> None:
    rows: list[Mistake] = list(ROWS.values())
    assert len(rows) == len({r.title for r in rows}) >= 60
    assert all(r.cause.endswith(".") and r.title for r in rows)
