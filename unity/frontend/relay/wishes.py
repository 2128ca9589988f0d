"""Compilers that a Relay model gave parts of itself to, as overrides for `resolve`."""

from __future__ import annotations

from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.transform import backend_of
from unity.transform.graph.resolve import ENGINES

from .record import WISHES


def wishes(module: IRModule, name: str = "main") -> dict[str, str]:
    """What a model says of its call sites, for ``unity.compile(module, resolve=wishes(module))``.

    Functions partitioned for a compiler of TVM (``Compiler="openvino"``) are put in place; the
    sites in them are wished to be computed by the engine of that name, where there is one.
    """
    function = module[name]
    found = function.attrs.get(WISHES, ()) if isinstance(function, Function) else ()
    pairs = found if isinstance(found, tuple) else ()
    known = [pair for pair in pairs if isinstance(pair, tuple) and len(pair) == 2]
    return {
        str(site): f"engine:{compiler}" for site, compiler in known if has_engine(str(compiler))
    }


def has_engine(name: str) -> bool:
    """Whether there is an engine that is called as a compiler of TVM was."""
    backend_of("cpu")  # makes known those that Unity brings
    return name in ENGINES
