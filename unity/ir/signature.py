"""The calling convention of prim funcs: which sizes a kernel takes, and in what order.

A kernel is the C function ``int32 name(void *buffer..., int64 size..., scalar...)``: the buffers in
parameter order, then `size_params`, then the `PrimVar` parameters in order. It returns 0, or
1 + the index of the `Assert` that failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, equal, product, substitute
from unity.ir.lattice import unify
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Buffer, PrimFunc, Store
from unity.ir.symbols.convert import to_dim
from unity.ir.types import TensorType, Type
from unity.ir.visiting.visit_stmt import walk_stmt


def size_params(func: PrimFunc) -> tuple[SizeVar, ...]:
    """Symbols in order of first occurrence in buffers' shapes and strides, then explicit ones."""
    found: dict[SizeVar, None] = {}
    for param in func.params:
        if isinstance(param, Buffer):
            for extent in (*param.shape, *(param.strides or ())):
                found.update(dict.fromkeys(sizes_of(extent)))
    found.update(dict.fromkeys(p for p in func.params if isinstance(p, SizeVar)))
    return tuple(found)


def scalar_params(func: PrimFunc) -> tuple[PrimVar, ...]:
    """The scalar parameters that are not sizes."""
    return tuple(p for p in func.params if isinstance(p, PrimVar))


def sizes_of(expr: PrimExpr) -> tuple[SizeVar, ...]:
    """The sizes in a shape expression, in order."""
    match expr:
        case SizeVar():
            return (expr,)
        case Binary(_, a, b):
            return sizes_of(a) + sizes_of(b)
        case _:
            return ()


def is_contiguous(buffer: Buffer, known: Mapping[Symbol, Dim] | None = None) -> bool:
    """Whether a buffer is proven to lie as contiguous arrays do, its last index running fastest.

    Args:
        buffer: It; of axes of extent 1 the stride makes no difference.
        known: What its sizes are.
    """
    if buffer.strides is None:
        return True
    shape = [_known(extent, known) for extent in buffer.shape]
    for axis, stride in enumerate(buffer.strides):
        found, rest = _known(stride, known), [d for d in shape[axis + 1 :] if d is not None]
        if shape[axis] == 1:
            continue
        if found is None or len(rest) != len(shape) - axis - 1 or not equal(found, product(rest)):
            return False
    return True


def _known(value: PrimExpr, known: Mapping[Symbol, Dim] | None) -> Dim | None:
    found = to_dim(value)
    return found if found is None or not known else substitute(found, known)


def buffer_type(buffer: Buffer) -> TensorType:
    """What a kernel's buffer is to a graph; of its rank alone where an extent is no dim."""
    dims = [to_dim(extent) for extent in buffer.shape]
    known = tuple(d for d in dims if d is not None)
    return TensorType(known if len(known) == len(dims) else len(dims), buffer.dtype)


def check_call(
    name: str,
    func: PrimFunc,
    args: Sequence[Type],
    out: Sequence[Type],
    inplace: Sequence[int] = (),
) -> dict[Symbol, Dim]:
    """Refuse a call of a kernel that surely does not fit it.

    Args:
        name: What messages call the kernel.
        func: It.
        args: The types of its inputs.
        out: Those of its outputs.
        inplace: For each output the input that it lies in, or -1; may be shorter.

    Returns:
        What the symbols of its buffers stand for, as far as the types tell.

    Raises:
        UnityError: The number of tensors, kinds, dtypes, ranks or provable dims differ, an output
            is not of the type of the input that it lies in, or the kernel writes to an input in
            which no output lies.
    """
    buffers, sources = func.buffers, [*inplace, *(-1,) * (len(out) - len(inplace))]
    hint = f"its buffers: {', '.join(b.name for b in buffers)}"
    fresh = [t for t, source in zip(out, sources, strict=True) if source < 0]
    if len(args) + len(fresh) != len(buffers):
        raise UnityError(
            f"{name} takes {len(buffers)} buffers, got {len(args)} inputs and {len(out)} outputs",
            hint=hint
            + ("; an output in place has none of its own, it is its input's" if inplace else ""),
        )
    taken = [source for source in sources if source >= 0]
    if len(set(taken)) < len(taken) or any(source >= len(args) for source in taken):
        raise UnityError(
            f"{name}: outputs lie in the inputs {', '.join(map(str, taken))}",
            hint=f"each in one of its own, of {len(args)}",
        )
    types = [buffer_type(b) for b in buffers]
    try:
        known = unify(types, [*args, *fresh])
        inside = [(types[s], t) for s, t in zip(sources, out, strict=True) if s >= 0]
        unify([*types, *(t for t, _ in inside)], [*args, *fresh, *(t for _, t in inside)])
    except UnityError as error:
        raise UnityError(f"{name}: {error.message}", hint=error.hint or hint) from None
    written = {s.buffer for s in walk_stmt(func.body) if isinstance(s, Store)}
    for i, buffer in enumerate(buffers[: len(args)]):
        if buffer in written and i not in taken:
            raise UnityError(
                f"{name} writes to {buffer.name!r}, which is an input of the call",
                hint=f"inplace=({i},) says that an output lies there; or let it write to an output",
            )
    return known
