"""What scripts are told of what is not there, at their own lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import unity
from unity.errors import UnityError
from unity.relay.functor import ExprMutator

DIGITS = Path(unity.__file__).parent / "demo" / "digits.onnx"


def test_an_import_that_is_not_there_is_told_at_the_script_s_line() -> None:
    with pytest.raises(UnityError, match=r"tvm\.te is not there") as caught:
        exec(compile("\nfrom unity.relay.tvm import te\n", "script.py", "exec"), {})
    assert "script.py:2" in str(caught.value)


def test_a_visitor_of_a_program_of_unity_is_told_what_it_met() -> None:
    class Mutator(ExprMutator):
        """Changes nothing."""

    main: Any = unity.load(DIGITS)["main"]
    with pytest.raises(UnityError, match="no expression of Relay"):
        Mutator().visit(main)
