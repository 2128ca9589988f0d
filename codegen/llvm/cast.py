"""Conversions between dtypes, by numpy's rules; what C leaves undefined, as numpy on x86-64."""

from __future__ import annotations

from unity.ir.dtype import DType

from .arithmetic import in_range
from .emitter import Emitter, float_text, int_text
from .narrow import halve_exactly, round_to
from .types import Ty, is_narrow, value_type


def cast(em: Emitter, source: DType, target: DType, value: str) -> str:
    """The value converted."""
    if source.name == target.name:
        return value
    a, b = value_type(source), value_type(target)
    if target.kind == "bool":
        if source.is_float:
            return em.pure(f"fcmp une {a.text} {value}, {float_text(0.0, a)}")
        return em.pure(f"icmp ne {a.text} {value}, {int_text(0, a)}")
    if target.is_float:
        return _to_float(em, source, target, value, a, b)
    if source.is_float:
        return in_range(em, target, _float_to_int(em, target, value, a, b))
    return in_range(em, target, _int_to_int(em, source, value, a, b))


def _int_to_int(em: Emitter, source: DType, value: str, a: Ty, b: Ty) -> str:
    if a.bits == b.bits:
        return value
    if a.bits > b.bits:
        return em.pure(f"trunc {a.text} {value} to {b.text}")
    extend = "sext" if source.kind == "int" else "zext"
    return em.pure(f"{extend} {a.text} {value} to {b.text}")


def _to_float(em: Emitter, source: DType, target: DType, value: str, a: Ty, b: Ty) -> str:
    if not source.is_float:
        convert = "sitofp" if source.kind == "int" else "uitofp"
        value = em.pure(f"{convert} {a.text} {value} to {b.text}")
    elif a.bits < b.bits:
        return em.pure(f"fpext {a.text} {value} to {b.text}")
    elif a.bits > b.bits and is_narrow(target):
        value = halve_exactly(em, value, a)
    elif a.bits > b.bits:
        value = em.pure(f"fptrunc {a.text} {value} to {b.text}")
    return round_to(em, target, value) if is_narrow(target) else value


def _float_to_int(em: Emitter, target: DType, value: str, a: Ty, b: Ty) -> str:
    """Through the int that C compilers use, so that out-of-range values wrap as numpy's do."""
    if target.name == "uint64":
        return em.pure(f"freeze {b.text} {em.pure(f'fptoui {a.text} {value} to {b.text}')}")
    through = b.of("i64" if target.name in ("uint32", "int64") else "i32")
    whole = em.pure(f"fptosi {a.text} {value} to {through.text}")
    whole = em.pure(f"freeze {through.text} {whole}")
    if through.bits == b.bits:
        return whole
    return em.pure(f"trunc {through.text} {whole} to {b.text}")
