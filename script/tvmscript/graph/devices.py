"""Virtual devices of a module: those of the CPU are kept by name, others refused.

``I.module_global_infos({"vdevice": [I.vdevice("llvm")]})`` becomes the module's attribute
``vdevice``; a tensor on one of them lies in the memory of the CPU, as all do.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from unity.arguments import Named, Signature

from ...parser.source import Source
from ..syntax import constant, path_of

INFOS = "I.module_global_infos"
_CPUS = ("llvm", "c")
_MACHINES = "it runs on one machine"
_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("R.ccl.", "R.dist.", "R.DTensor", "R.device_mesh", "I.device_mesh"), _MACHINES
    ),
    **dict.fromkeys(("runtime.disco.", "disco."), _MACHINES),
    **dict.fromkeys(("R.hint_on_device", "R.device"), "it compiles for cpus"),
    **dict.fromkeys(
        ("I.pyfunc", "R.call_py_func"),
        "functions of Python are registered by unity.register_function and called by R.call_packed",
    ),
}
"""What begins so is of several machines, of devices that are no CPU, or of the host."""
_VDEVICE = Signature.parse('I.vdevice(target=None, vdevice_id=0, memory_scope="global")')


def virtual_devices(source: Source, body: Sequence[ast.stmt]) -> list[str]:
    """The devices that a module declares, ``llvm:0:global`` each.

    Raises:
        UnityError: One of them is no CPU, or the module has other infos.
    """
    found: list[str] = []
    for node in body:
        match node:
            case ast.Expr(ast.Call(args=[ast.Dict(keys, values)], keywords=[]) as call) if (
                path_of(call.func) == INFOS
            ):
                for key, value in zip(keys, values, strict=True):
                    found += _devices(source, key, value)
            case ast.Expr(ast.Call() as call) if path_of(call.func) == INFOS:
                raise source.error(
                    call, f"{INFOS} takes a dict", '{"vdevice": [I.vdevice("llvm")]}'
                )
            case _:
                pass
    return found


def _devices(source: Source, key: ast.expr | None, value: ast.expr) -> list[str]:
    parts = value.elts if isinstance(value, ast.List | ast.Tuple) else None
    if parts == []:
        return []
    if parts is None or constant(key) != "vdevice":
        name = "**" if key is None else ast.unparse(key)
        raise source.error(value, f"Unity has no infos {name} of a module", "it knows 'vdevice'")
    return [_device(source, part) for part in parts]


def _device(source: Source, node: ast.expr) -> str:
    """One device, ``I.vdevice("llvm", 0, "global")``."""
    if not isinstance(node, ast.Call) or path_of(node.func) != "I.vdevice":
        raise source.error(node, f"expected I.vdevice(...), got {ast.unparse(node)}")
    named = [Named(k.arg, k.value, source.span(k)) for k in node.keywords]
    given = _VDEVICE.bind(node.args, named, source.span(node)).named
    target = constant(given.get("target"))
    kind = target.get("kind") if isinstance(target, dict) else str(target).partition(" ")[0]
    if kind not in _CPUS:
        raise source.error(node, f"Unity has no virtual device {kind!r}", "it compiles for cpus")
    number = constant(given.get("vdevice_id", ast.Constant(0)))
    scope = constant(given.get("memory_scope", ast.Constant("global")))
    if type(number) is not int or scope != "global":
        raise source.error(node, f"Unity has no virtual device {ast.unparse(node)}")
    return f"{kind}:{number}:{scope}"


def check_here(source: Source, node: ast.expr, name: str) -> None:
    """Refuse by name what is not of one CPU.

    Args:
        source: For errors.
        node: Where it is named.
        name: A path, ``R.ccl.allreduce``, or the name of a packed function.
    """
    for begin, why in _ELSEWHERE.items():
        if name == begin or (name.startswith(begin) and begin.endswith(".")):
            raise source.error(node, f"Unity has no {name}: {why}")


def check_device(source: Source, node: ast.expr, devices: Sequence[str]) -> None:
    """A tensor's device must be one of the module's.

    ``llvm:1`` is the second one of its kind.

    Raises:
        UnityError: It is none of them.
    """
    if isinstance(node, ast.Call) and path_of(node.func) == "I.vdevice":
        name = _device(source, node)
        kind, number = name.split(":")[0], 0
        known = [d for d in devices if d == name]
    else:
        text = constant(node)
        kind, _, rest = str(text).partition(":")
        place, _, scope = rest.partition(":")
        number = int(place) if place.isdecimal() else 0 if not place else -1
        known = [d for d in devices if d.startswith(f"{kind}:") and scope in ("", "global")]
    if not 0 <= number < len(known):
        raise source.error(
            node,
            f"the module has no virtual device {ast.unparse(node)}",
            f"it declares {', '.join(devices) or 'none'}",
        )
