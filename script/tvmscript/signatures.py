"""Calls of TVMScript whose parameters are not ours: what they take, and what each comes to be.

Comes in: TVM's own signatures, as text. Goes out: for each name its signature, how its parameters
are called here, and which values of those that Unity lacks mean what Unity does anyway. The rest is
refused by name: nothing that a program says is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unity.arguments import Signature

ANY = "any value"
"""What a parameter says makes no difference to Unity, whatever it is."""
_NONE: tuple[object, ...] = (None,)
_OFF: tuple[object, ...] = (None, False)
_DTYPES = ("", "int32", "int64")
"""Loops and axes count in int64; an int32 of TVM's counts the same."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A call of TVM's.

    Attributes:
        signature: What it takes.
        ours: What we call its parameters, where that differs.
        same: Parameters that Unity lacks, with the values that change nothing; `ANY` for all.
        says: Values of parameters that are left out, where Unity's defaults differ.
    """

    signature: Signature
    ours: Mapping[str, str] = field(default_factory=dict[str, str])
    same: Mapping[str, tuple[object, ...] | str] = field(
        default_factory=dict[str, "tuple[object, ...] | str"]
    )
    says: Mapping[str, int | str] = field(default_factory=dict[str, "int | str"])


def _foreign(
    text: str,
    ours: Mapping[str, str] | None = None,
    same: Mapping[str, tuple[object, ...] | str] | None = None,
    **says: int | str,
) -> Foreign:
    return Foreign(Signature.parse(text), ours or {}, same or {}, says)


_BUFFER = (
    'dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=-1, '
    'offset_factor=0, buffer_type="", axis_separators=None, layout=None'
)
_WHERE_IT_LIES: dict[str, tuple[object, ...] | str] = {
    "data": _NONE,
    "elem_offset": (None, 0),
    "offset_factor": ANY,
    "buffer_type": ("", "default"),
    "layout": (None, "default"),
    "allocated_addr": _NONE,
    "annotations": (None, {}),
}
_LOOP: dict[str, str] = {"start": "begin", "stop": "end", "annotations": "attrs"}
_LOOP_SAME: Mapping[str, tuple[object, ...] | str] = {
    "step": (None, 1),
    "unroll": _OFF,
    "dtype": _DTYPES,
}
_AXIS: Mapping[str, str] = {"dom": "domain", "binding": "value"}
_NORM: Mapping[str, tuple[object, ...] | str] = {"center": (True,), "scale": (True,)}
_ROWS: tuple[Foreign, ...] = (
    _foreign(f"T.Buffer(shape, {_BUFFER})", same={**_WHERE_IT_LIES, "axis_separators": (None, ())}),
    _foreign(f"T.decl_buffer(shape, {_BUFFER})", {"axis_separators": "separators"}, _WHERE_IT_LIES),
    _foreign(
        f"T.match_buffer(param, shape=None, {_BUFFER})",
        same={**_WHERE_IT_LIES, "axis_separators": (None, ())},
    ),
    *(
        _foreign(
            f"{name}(shape, {_BUFFER}, annotations=None, allocated_addr=None)",
            {"axis_separators": "separators"},
            _WHERE_IT_LIES,
        )
        for name in ("T.alloc_buffer", "T.sblock_alloc_buffer")
    ),
    *(
        _foreign(
            f'T.{kind}(start, stop=None, *, annotations=None, step=None, unroll=None, dtype="")',
            _LOOP,
            _LOOP_SAME,
        )
        for kind in ("serial", "parallel", "vectorized", "unroll")
    ),
    _foreign(
        'T.thread_binding(start, stop=None, thread=None, *, annotations=None, dtype="")',
        {**_LOOP, "thread": "axis"},
        _LOOP_SAME,
    ),
    _foreign('T.grid(*extents, dtype="")', same={"dtype": _DTYPES}),
    *(
        _foreign(
            f'{name}(name="", no_realize=False, *, exec_scope="")',
            same={"no_realize": _OFF, "exec_scope": ("",)},
        )
        for name in ("T.block", "T.sblock")
    ),
    *(
        _foreign(f'T.axis.{kind}(dom, binding, dtype="int32")', _AXIS, {"dtype": _DTYPES})
        for kind in ("spatial", "S", "reduce", "R", "opaque", "scan")
    ),
    _foreign(
        'T.axis.remap(kinds, bindings, dtype="int32")', {"bindings": "loops"}, {"dtype": _DTYPES}
    ),
    _foreign("T.cast(value, dtype, span=None)", same={"span": _NONE}),
    _foreign("T.Cast(dtype, value, span=None)", same={"span": _NONE}),
    _foreign("T.min_value(dtype, span=None)", same={"span": _NONE}),
    _foreign("T.max_value(dtype, span=None)", same={"span": _NONE}),
    _foreign("T.reads(*regions)"),
    _foreign("T.writes(*regions)"),
    _foreign("T.func_attr(attrs)"),
    _foreign("R.func_attr(attrs)"),
    _foreign("T.block_attr(attrs)"),
    _foreign("T.sblock_attr(attrs)"),
    _foreign("R.Tensor(shape=None, dtype=None, vdevice=None, ndim=-1)", same={"vdevice": _NONE}),
    _foreign("R.Shape(values=None, ndim=-1)"),
    _foreign("R.shape(values)"),
    _foreign('R.Prim(dtype="int64", value=None)'),
    _foreign("R.Tuple(*fields)"),
    _foreign("R.tuple(*fields)"),
    _foreign(
        "R.Callable(params=None, ret=None, purity=True, derive_func=None)",
        {"ret": "result", "purity": "pure"},
        {"derive_func": _NONE},
    ),
    _foreign(
        "R.call_tir(callee, args, out_sinfo=None, tir_vars=None, *, out_ty=None, out=None,"
        " sym_args=None)"
    ),
    _foreign(
        "R.call_tir_inplace(callee, args, inplace_indices, out_sinfo=None, tir_vars=None, *,"
        " out_ty=None)"
    ),
    _foreign(
        "R.call_dps_packed(func, args, out_sinfo=None, *, out_ty=None)",
        {"func": "symbol", "out_sinfo": "out", "out_ty": "out"},
    ),
    _foreign("R.match_cast(value, struct_info)", {"struct_info": "type"}),
    _foreign(
        'R.argsort(data, axis=-1, descending=False, dtype="int32")', {"data": "x"}, dtype="int32"
    ),
    _foreign(
        'R.topk(data, k=1, axis=-1, ret_type="both", largest=True, dtype="int32")',
        {"data": "x"},
        {"ret_type": ("both",)},
        k=1,
        dtype="int32",
    ),
    _foreign('R.take(x, indices, axis=None, mode="fast")', same={"mode": ("fast",)}),
    _foreign(
        "R.strided_slice(x, axes, begin, end, strides=None, assume_inbound=False)",
        same={"assume_inbound": ANY},
    ),
    _foreign(
        "R.nn.attention(query, key, value, bias=None, scale=None, causal_mask=None,"
        " window_size=None)",
        {"query": "q", "key": "k", "value": "v"},
        {"window_size": _NONE},
    ),
    _foreign(
        "R.nn.layer_norm(data, gamma, beta, axes, epsilon=1e-5, center=True, scale=True)",
        {"data": "x"},
        _NORM,
    ),
    _foreign(
        "R.nn.softplus(data, beta=1.0, threshold=20.0)", {"data": "x"}, {"threshold": (20.0,)}
    ),
    *(
        _foreign(
            f"R.nn.adaptive_avg_pool{rank}d(data, output_size, layout={layout!r}, out_layout=None)",
            {"data": "x"},
            {"out_layout": (None, "", layout)},
        )
        for rank, layout in ((1, "NCW"), (2, "NCHW"), (3, "NCDHW"))
    ),
)
FOREIGN: Mapping[str, Foreign] = {row.signature.name: row for row in _ROWS}
PRIM_FUNC_OPTIONS = frozenset({"private", "check_well_formed", "s_tir"})
"""What ``@T.prim_func`` takes: nothing that makes a difference here, where all is checked always
and every function of a module is known by its name."""
FUNCTION_OPTIONS = frozenset({"pure", "private", "check_well_formed"})
MODULE_OPTIONS = frozenset({"check_well_formed", "s_tir"})
