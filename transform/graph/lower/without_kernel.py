"""Which calls of operators become no kernel: numpy computes them, in Python, when the program runs.

Asked by `LegalizeOps`, which leaves them as they are, and by `Resolve`, which says so beforehand.
"""

from __future__ import annotations

from unity.ir.graph import Call, Op
from unity.ir.lattice import atom_type
from unity.ir.types import ObjectType, ShapeType, Type
from unity.op.scalar import MOVES
from unity.op.table import OPS

from ..symbols import is_concrete, tensor_fields
from ..views import VIEWS


def why_no_kernel(call: Call, result: Type) -> str | None:
    """Why no kernel computes a call of an operator; None if one does, or nothing has to.

    >>> from unity.ir.dtype import FLOAT32
    >>> from unity.ir.graph import Var
    >>> from unity.ir.types import TensorType
    >>> x = Var("x", TensorType(None, FLOAT32))
    >>> why_no_kernel(Call(Op("exp"), (x,)), x.type)
    'dtype or dims are not known: float32(unknown)'
    """
    assert isinstance(call.callee, Op)
    op = OPS[call.callee.name]
    if isinstance(result, ShapeType) and isinstance(result.dims, tuple):
        return None  # sizes, which the program has
    if call.callee.name == "tensor_to_shape" and isinstance(result, ShapeType) and result.ndim:
        return None  # an instruction reads them
    if op.name in MOVES:
        return None  # an instruction moves the number
    if op.compute is None and op.name not in VIEWS:
        return f"{op.name} has no kernel"
    types = [result, *(atom_type(a) or ObjectType() for a in call.args)]
    for t in types:
        fields = tensor_fields(t)
        if fields is None and (t is result or isinstance(t, ObjectType)):
            return f"no tensor is known: {t}"
        for field in fields or ():
            if not is_concrete(field):
                return f"dtype or dims are not known: {field}"
    return None
