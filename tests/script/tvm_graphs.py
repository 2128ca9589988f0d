"""A graph function as TVM compiles and runs it: the oracle for what we read.

Convolutions whose channels are parted (``NCHW4c``) TVM reads and can't compile. They are made of
what it has: its transform of layouts, its plain convolution, and its transform back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from .stand_ins import Array, Given, StandIn


def run_graph(
    text: str, name: str, given: Sequence[Given], named: Mapping[str, StandIn]
) -> list[Array]:
    """What a function of a module in TVMScript returns when TVM runs it, as arrays in order.

    Args:
        text: The module, or one function.
        name: The function's name.
        given: Its arguments, which stay as they are.
        named: What stands in for functions that are called by name.
    """
    tvm: Any = import_module("tvm")
    entry: Any = import_module("tvm.script.parser.core.entry")
    relax: Any = import_module("tvm.relax")
    # ``relax.op.add`` is TVM's own package, to which sources that import it refer
    found = tvm.script.from_source(text, entry._default_globals() | {"relax": relax})
    if isinstance(found, tvm.IRModule):
        module = found
        module.update_func(
            module.get_global_var(name), module[name].with_attr("global_symbol", name)
        )
    else:  # its symbol may be another name
        module = tvm.IRModule({name: found.with_attr("global_symbol", name)})
    for symbol, it in named.items():
        tvm.register_global_func(symbol, _lent_function(it), override=True)
    module = _told(module, name, given)
    module = relax.transform.LegalizeOps({"relax.nn.conv2d": _parted_convolution})(module)
    module = relax.transform.LambdaLift()(module)
    machine = relax.VirtualMachine(relax.build(module, tvm.target.Target("llvm")), tvm.cpu())
    return _arrays(machine[name](*[_lent(v) for v in given]))


def _told(module: Any, name: str, given: Sequence[Given]) -> Any:
    """The module whose function says of its tensors what TVM must know to compile it.

    TVM makes no kernels for shapes and dtypes that are not told; they are those of what is given.
    """
    relax: Any = import_module("tvm.relax")
    visitors: Any = import_module("tvm.relax.expr_functor")
    function = module[name]
    told = [_param(p, value) for p, value in zip(function.params, given, strict=True)]
    if all(a is b for a, b in zip(told, function.params, strict=True)):
        return module

    def rewritten(visitor: Any) -> Any:
        for old, new in zip(function.params, told, strict=True):
            visitor.set_var_remap(old, new)
        body = visitor.visit_expr(function.body)
        return relax.Function(told, body, None, function.is_pure, function.attrs)

    visitor = visitors.mutator(type("Retyped", (visitors.PyExprMutator,), {}))(module)
    module.update_func(module.get_global_var(name), rewritten(visitor))
    return module


def _param(param: Any, value: Given) -> Any:
    relax: Any = import_module("tvm.relax")
    kind = param.ty
    if not isinstance(value, np.ndarray) or not isinstance(kind, relax.TensorType):
        return param
    if isinstance(kind.shape, relax.ShapeExpr) and kind.dtype:
        return param
    sizes = kind.shape if isinstance(kind.shape, relax.ShapeExpr) else value.shape
    return relax.Var(param.name, relax.TensorType(sizes, str(value.dtype)))


def _parted_convolution(builder: Any, call: Any) -> Any:
    """A convolution of parted channels by TVM's plain one; others as they are."""
    topi: Any = import_module("tvm.topi")
    attrs = call.attrs
    if len(attrs.data_layout) == 4 and attrs.out_layout == attrs.data_layout:
        return call
    numbers = [[int(n) for n in each] for each in (attrs.strides, attrs.padding, attrs.dilation)]

    def convolved(data: Any, weight: Any) -> Any:
        made = topi.nn.conv(
            topi.layout_transform(data, attrs.data_layout, "NCHW"),
            topi.layout_transform(weight, attrs.kernel_layout, "OIHW"),
            *numbers,
            attrs.groups,
            "NCHW",
            "OIHW",
            attrs.out_dtype or None,
        )
        return topi.layout_transform(made, "NCHW", attrs.out_layout)

    return builder.call_te(convolved, *call.args, primfunc_name_hint="parted_conv2d")


def _lent(value: Given) -> Any:
    """A value as TVM takes it."""
    tvm: Any = import_module("tvm")
    if isinstance(value, np.ndarray):
        return tvm.runtime.tensor(value)
    if isinstance(value, tuple):
        numbers = all(isinstance(v, int) for v in value)
        return tvm.runtime.ShapeTuple(value) if numbers else tuple(_lent(v) for v in value)
    return _lent_function(value) if isinstance(value, StandIn) else value


def _lent_function(it: StandIn) -> Callable[..., Any]:
    """A function as TVM calls it: it takes and gives what TVM has for arrays and shapes."""

    def called(*args: Any) -> Any:
        values = [_taken(a) for a in args]
        if it.outputs is None:
            made = it(*values)
            return None if made is None else _lent(made)
        it.write(*values)
        for target, array in zip(args[-it.outputs :], values[-it.outputs :], strict=True):
            target.copyfrom(array)
        return None

    return called


def _taken(value: Any) -> Any:
    if hasattr(value, "numpy"):
        return np.array(value.numpy())
    if isinstance(value, int | float | str) or value is None:
        return value
    return tuple(_taken(v) for v in value)


def _arrays(value: Any) -> list[Array]:
    if value is None:
        return []
    if hasattr(value, "numpy"):
        return [np.asarray(value.numpy())]
    if isinstance(value, int | float | bool):
        return [np.asarray(value)]
    items = list(value)
    if items and all(isinstance(v, int) for v in items):
        return [np.asarray(items)]
    return [a for item in items for a in _arrays(item)]
