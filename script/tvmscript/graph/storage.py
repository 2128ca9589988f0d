"""Memory that TVM's programs manage themselves: storage, and tensors in it, as our ``R.memory``.

``R.memory.alloc_storage`` is an arena of bytes, ``R.memory.alloc_tensor`` of it a view in it;
``R.builtin.alloc_tensor`` is a tensor with memory of its own. What a program declares dead must not
be used later: here its memory is given back after its last use anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from unity.arguments import Named, Signature
from unity.errors import UnityError
from unity.ir.dtype import dtype

from ...parser.source import Source
from ..syntax import at_place, constant, dotted, path_of

Given = Mapping[str, ast.expr]
_STORAGE = "(size, virtual_device_index, storage_scope, dtype)"
_TENSOR = "(storage, offset, shape, dtype, runtime_device_ind=0)"
_VM = '(shape, runtime_device_index, dtype, storage_scope="global")'
_ALONE = '(shape, dtype, runtime_device_index, storage_scope="global")'
_VIEW = "(data, shape=None, dtype=None, relative_byte_offset=None)"
KILLS = ("R.vm.kill_object", "R.memory.kill_tensor", "R.memory.kill_storage")


def stored(source: Source, node: ast.Call) -> ast.expr:
    """A call of ``R.memory``, ``R.vm`` or ``R.builtin`` in terms of ours.

    Args:
        source: For errors.
        node: A call of one of `STORED`; its operands are in TVM's spelling, also in the result.

    Raises:
        UnityError: It does not fit, or says what a CPU has not.
    """
    signature, rule = STORED[path_of(node.func)]
    named = [Named(k.arg, k.value, source.span(k)) for k in node.keywords]
    bound = signature.bind(node.args, named, source.span(node))
    return at_place(rule(source, node, bound.named), node)


def check_killed(source: Source, node: ast.stmt, rest: Sequence[ast.stmt]) -> None:
    """What a statement declares dead must not be used by those behind it."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or path_of(call.func) not in KILLS or not call.args:
            continue
        name = path_of(call.args[0])
        for part in (p for later in rest for p in ast.walk(later)):
            if isinstance(part, ast.Name) and part.id == name:
                raise source.error(part, f"{name!r} is used after {path_of(call.func)}")


def _killed(source: Source, _node: ast.Call, given: Given) -> ast.expr:
    if not isinstance(given["value"], ast.Name):
        raise source.error(given["value"], "what is declared dead is a name")
    return ast.Tuple([], ast.Load())


def _storage(source: Source, _node: ast.Call, given: Given) -> ast.expr:
    """An arena of as many bytes as the elements take."""
    _check_place(source, given, "virtual_device_index", "runtime_device_index")
    size = _dims(source, given["size"] if "size" in given else given["shape"])
    count: ast.expr = ast.Constant(_bytes(source, given["dtype"]))
    for dim in size:
        count = ast.BinOp(count, ast.Mult(), dim)
    return ast.Call(dotted("R.memory.alloc_arena"), [_shape([count])], [])


def _tensor(source: Source, _node: ast.Call, given: Given) -> ast.expr:
    """A view in an arena."""
    _check_place(source, given, "runtime_device_ind")
    args = [
        given["storage"],
        _shape([_number(given["offset"])]),
        _shape(_dims(source, given["shape"])),
        ast.Constant(_name(source, given["dtype"])),
    ]
    return ast.Call(dotted("R.memory.view"), args, [])


def _alone(source: Source, _node: ast.Call, given: Given) -> ast.expr:
    """A tensor with memory of its own."""
    _check_place(source, given, "runtime_device_index")
    element = ast.Constant(_name(source, given["dtype"]))
    shape = _shape(_dims(source, given["shape"]))
    return ast.Call(dotted("R.memory.alloc_tensor"), [shape, element], [])


def _view(source: Source, _node: ast.Call, given: Given) -> ast.expr:
    """The same elements in another shape."""
    for name in ("dtype", "relative_byte_offset"):
        if not _is_absent(_number(given.get(name, ast.Constant(None)))):
            raise source.error(
                given[name],
                f"Unity has no {name}={ast.unparse(given[name])} for R.memory.view",
                "R.reinterpret, or R.strided_slice of the flat tensor, says the same",
            )
    if _is_absent(given.get("shape", ast.Constant(None))):
        return given["data"]
    return ast.Call(dotted("R.reshape"), [given["data"], given["shape"]], [])


def _is_absent(node: ast.expr) -> bool:
    """Whether it is None, 0 bytes, or TVM's word for nothing, an empty tuple."""
    empty = isinstance(node, ast.Call) and path_of(node.func) == "R.tuple" and not node.args
    return empty or constant(node) in (None, 0)


def _check_place(source: Source, given: Given, *devices: str) -> None:
    """Storage lies in the memory of the one device that there is."""
    for name in devices:
        if name in given and constant(_number(given[name])) not in (0, -1):
            raise source.error(given[name], f"Unity has one device, got {ast.unparse(given[name])}")
    scope = given.get("storage_scope")
    text = constant(_text(scope)) if scope is not None else "global"
    if scope is not None and text not in ("global", ""):
        raise source.error(scope, f"Unity has no storage {text!r}", "a CPU's is 'global'")


def _text(node: ast.expr) -> ast.expr:
    """The text in ``R.str("global")`` and ``R.dtype("float32")``."""
    if isinstance(node, ast.Call) and path_of(node.func) in ("R.str", "R.dtype") and node.args:
        return node.args[0]
    return node


def _name(source: Source, node: ast.expr) -> str:
    name = constant(_text(node))
    try:
        return dtype(str(name)).name
    except UnityError as error:
        raise source.error(node, error.message, error.hint) from None


def _bytes(source: Source, node: ast.expr) -> int:
    return -(-dtype(_name(source, node)).bits // 8)


def _number(node: ast.expr) -> ast.expr:
    """The number in ``R.prim_value(0)``."""
    while isinstance(node, ast.Call) and path_of(node.func) == "R.prim_value" and node.args:
        node = node.args[0]
    return node


def _dims(source: Source, node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call) and path_of(node.func) == "R.shape" and node.args:
        node = node.args[0]
    if not isinstance(node, ast.List | ast.Tuple):
        raise source.error(node, "the sizes of what is allocated are written here", "R.shape([n])")
    return list(node.elts)


def _shape(dims: Sequence[ast.expr]) -> ast.expr:
    return ast.Call(dotted("R.shape"), [ast.List(list(dims), ast.Load())], [])


Rule = Callable[[Source, ast.Call, Given], ast.expr]
STORED: Mapping[str, tuple[Signature, Rule]] = {
    name: (Signature.parse(f"{name}{params}"), rule)
    for name, params, rule in (
        *((name, "(value)", _killed) for name in KILLS),
        ("R.memory.alloc_storage", _STORAGE, _storage),
        ("R.vm.alloc_storage", _VM, _storage),
        ("R.memory.alloc_tensor", _TENSOR, _tensor),
        ("R.vm.alloc_tensor", _TENSOR, _tensor),
        ("R.builtin.alloc_tensor", _ALONE, _alone),
        ("R.memory.view", _VIEW, _view),
        ("R.memory.ensure_zero_offset", "(data)", lambda _s, _n, given: given["data"]),
        ("R.null_value", "()", lambda _s, _n, _g: ast.Tuple([], ast.Load())),
    )
}
