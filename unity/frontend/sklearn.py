"""Fitted scikit-learn models to a module, by way of ONNX: skl2onnx writes what Unity imports."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import onnx

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.module import IRModule

from .onnx import from_onnx


@public
def from_sklearn(model: object, rows: Array) -> IRModule:
    """The module of a fitted estimator or pipeline, which takes any number of rows.

    Args:
        model: Fitted; what the package skl2onnx converts.
        rows: Some rows ``[n, columns]`` as the model will get them: their number of columns and
            dtype are those of the module's input (float32 is fastest).

    Returns:
        A module whose results are what the model predicts: of a classifier the labels ``[n]`` and
        the scores or probabilities ``[n, classes]``.

    Raises:
        UnityError: skl2onnx is not installed, or can't convert the model.
        UnsupportedError: The model needs what Unity lacks; lists every gap.
    """
    if find_spec("skl2onnx") is None:
        raise UnityError(
            "from_sklearn needs the package skl2onnx, which is not installed",
            hint="pip install 'unity-mlc[sklearn]'",
        )
    return from_onnx(_converted(model, rows[:1]))


def _converted(model: object, row: Array) -> onnx.ModelProto:
    to_onnx = import_module("skl2onnx").to_onnx
    try:
        try:
            found = to_onnx(model, row, options={"zipmap": False})  # arrays, not a dict a row
        except NameError:  # what it raises of models that know no such option
            found = to_onnx(model, row)
    except Exception as error:
        raise UnityError(
            f"skl2onnx can't convert the {type(model).__name__}: {type(error).__name__}: {error}"
        ) from error
    assert isinstance(found, onnx.ModelProto)
    return found
