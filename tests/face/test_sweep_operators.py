"""Every operator refuses attributes it lacks or of another type, and other kinds of arguments."""

from __future__ import annotations

import pytest

from unity.arguments import REQUIRED
from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import dim
from unity.ir.dtype import FLOAT32
from unity.ir.types import ObjectType, ShapeType, TensorType, TupleType, Type
from unity.op.call import call_op
from unity.op.infer import infer_call
from unity.op.registry import OpDef, Param, attr_value
from unity.op.table import OPS

VALUES: tuple[AttrValue, ...] = (
    *(True, 1, 1.5, "text", FLOAT32, dim("n"), None),
    *((True,), (1, 2), (1.5,), ("a", "b"), (dim("n"),), (None,), ((1,),)),
)
ANY_TENSOR = TensorType(None, FLOAT32)
ARGUMENTS: dict[str, Type] = {
    "tensor": ANY_TENSOR,
    "tensors": TupleType((ANY_TENSOR, ANY_TENSOR)),
    "shape": ShapeType(None),
    "value": ObjectType(),
}


def usual(param: Param) -> AttrValue:
    """A value that an attribute may have."""
    fitting = [v for v in VALUES if param.takes(v)]
    assert fitting, f"the sweep knows no value of {param}"
    return fitting[0]


def attributes(op: OpDef) -> tuple[list[Param], Attrs]:
    params = [p for p in op.params if p.kind == "attr"]
    return params, Attrs({p.name: usual(p) for p in params})


@pytest.mark.parametrize("name", OPS)
def test_an_operator(name: str) -> None:
    op = OPS[name]
    params, attrs = attributes(op)
    types = [ARGUMENTS[p.kind] for p in op.params if p.kind != "attr"]
    for param in params:
        assert param.default is REQUIRED or param.takes(attrs[param.name])
        for value in VALUES:
            if not param.takes(value):
                with pytest.raises(UnityError, match=f"{param.name!r} must be"):
                    infer_call(op, types, attrs.with_(**{param.name: value}))
        with pytest.raises(UnityError, match=f"lacks the attribute {param.name!r}"):
            infer_call(op, types, attrs.without(param.name))
    with pytest.raises(UnityError, match="has no attribute 'bogus'"):
        infer_call(op, types, attrs.with_(bogus=1))
    with pytest.raises(UnityError, match="has no parameter 'bogus'"):
        call_op(name, bogus=1)
    for k, param in enumerate(p for p in op.params if p.kind != "attr"):
        if param.kind == "value":
            continue
        wrong: list[Type] = [*types]
        wrong[k] = ShapeType(None) if param.kind != "shape" else ANY_TENSOR
        with pytest.raises(UnityError):
            infer_call(op, wrong, attrs)


def test_every_default_is_of_its_type() -> None:
    for op in OPS.values():
        for param in op.params:
            if param.kind == "attr" and param.default is not REQUIRED:
                assert param.default is None or param.takes(attr_value(param.default)), op.name
