"""Calls of Relay's operators for tests: many of them in one module, and what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unity.frontend.relay.schema import complete
from unity.frontend.relay.syntax import (
    AttrValue,
    Call,
    Constant,
    Expr,
    Function,
    Module,
    Op,
    TensorType,
    Tuple,
    Var,
)
from unity.frontend.relay.translator import translate
from unity.interpreter import interpret
from unity.ir.dtype import dtype
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types


@dataclass(frozen=True)
class Known:
    """An operand that is a constant of the program."""

    value: npt.NDArray[Any]


Operand: TypeAlias = "npt.NDArray[Any] | Known | list[npt.NDArray[Any]] | list[Known]"


class Case:
    """A call of an operator on arrays, and what it must give.

    Operands are arrays, which become parameters; `Known` ones; and lists of arrays, tuples.
    """

    def __init__(
        self,
        operator: str,
        operands: Sequence[Operand],
        expected: npt.NDArray[Any] | Sequence[npt.NDArray[Any]],
        tolerance: float = 1e-5,
        **attributes: AttrValue,
    ) -> None:
        self.operator = operator
        self.operands = operands
        self.expected = [expected] if isinstance(expected, np.ndarray) else [*expected]
        self.is_tuple = not isinstance(expected, np.ndarray)
        self.tolerance = tolerance
        self.attributes = attributes
        self.arrays: list[npt.NDArray[Any]] = []

    def call(self, place: int) -> tuple[Call, list[Var]]:
        """The call, and the parameters that it reads; `arrays` are their values."""
        self.arrays = []
        params: list[Var] = []

        def operand(value: Operand) -> Expr:
            if isinstance(value, list):
                return Tuple(tuple(operand(v) for v in value))
            if isinstance(value, Known):
                return Constant(value.value)
            kind = TensorType(value.shape, dtype(value.dtype))
            params.append(Var(f"c{place}_{len(params)}", kind))
            self.arrays.append(value)
            return params[-1]

        arguments = tuple(operand(o) for o in self.operands)
        found = complete(self.operator, self.attributes, len(arguments))
        return Call(Op(self.operator), arguments, found), params

    def check(self, results: Sequence[npt.NDArray[Any]]) -> None:
        """Compare what the call gave."""
        assert len(results) == len(self.expected), self.operator
        for got, wanted in zip(results, self.expected, strict=True):
            what = f"{self.operator} {self.attributes}"
            assert got.dtype == wanted.dtype, f"{what}: {got.dtype}, not {wanted.dtype}"
            assert got.shape == wanted.shape, f"{what}: {got.shape}, not {wanted.shape}"
            close = self.tolerance if got.dtype.kind == "f" else 0
            left, right = got.astype(np.float64), wanted.astype(np.float64)
            np.testing.assert_allclose(left, right, rtol=close, atol=close, err_msg=what)


def module_of(cases: Sequence[Case]) -> tuple[IRModule, list[npt.NDArray[Any]]]:
    """One module whose entry makes all the calls, and its inputs."""
    calls: list[Expr] = []
    params: list[Var] = []
    for place, case in enumerate(cases):
        call, own = case.call(place)
        calls.append(call)
        params += own
    function = Function(tuple(params), Tuple(tuple(calls)))
    module = translate(Module({"main": function}, file="test.relay"))
    verify(module)
    check_types(module)
    return module, [a for case in cases for a in case.arrays]


def check_interpreted(cases: Sequence[Case]) -> None:
    """Compare what the interpreter gives for each call."""
    module, inputs = module_of(cases)
    check_results(cases, interpret(module, "main", inputs))


def check_results(cases: Sequence[Case], results: object) -> None:
    """Compare the results of a module of `module_of`."""
    assert isinstance(results, tuple)
    for case, result in zip(cases, results, strict=True):
        case.check(list(result) if case.is_tuple else [result])
