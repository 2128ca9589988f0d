"""Calls of TVMScript whose parameters are not ours: what they take, and what each comes to be.

Comes in: TVM's own signatures, as text. Goes out: for each name its signature, how its parameters
are called here, and which values of those that Unity lacks mean what Unity does anyway. The rest is
refused by name: nothing that a program says is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

from .foreign import ANY_INTEGER, Foreign, foreign
from .relax import RELAX

_NONE: tuple[object, ...] = (None,)
_OFF: tuple[object, ...] = (None, False)
_DTYPES = ("", "int32", "int64")
"""Loops and axes count in int64; an int32 of TVM's counts the same."""

_BUFFER = (
    'dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=-1, '
    'offset_factor=0, buffer_type="", axis_separators=None, layout=None'
)
_WHERE_IT_LIES: dict[str, tuple[object, ...] | str] = {
    "data": _NONE,
    "elem_offset": (None, 0),
    "offset_factor": ANY_INTEGER,
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
_ROWS: tuple[Foreign, ...] = (
    foreign(f"T.Buffer(shape, {_BUFFER})", same={**_WHERE_IT_LIES, "axis_separators": (None, ())}),
    foreign(f"T.decl_buffer(shape, {_BUFFER})", {"axis_separators": "separators"}, _WHERE_IT_LIES),
    foreign(
        f"T.match_buffer(param, shape=None, {_BUFFER})",
        same={**_WHERE_IT_LIES, "axis_separators": (None, ())},
    ),
    *(
        foreign(
            f"{name}(shape, {_BUFFER}, annotations=None, allocated_addr=None)",
            {"axis_separators": "separators"},
            {k: v for k, v in _WHERE_IT_LIES.items() if k != "annotations"},
        )
        for name in ("T.alloc_buffer", "T.sblock_alloc_buffer")
    ),
    *(
        foreign(
            f'T.{kind}(start, stop=None, *, annotations=None, step=None, unroll=None, dtype="")',
            _LOOP,
            _LOOP_SAME,
        )
        for kind in ("serial", "parallel", "vectorized", "unroll")
    ),
    foreign(
        'T.thread_binding(start, stop=None, thread=None, *, annotations=None, dtype="")',
        {**_LOOP, "thread": "axis"},
        _LOOP_SAME,
    ),
    foreign('T.grid(*extents, dtype="")', same={"dtype": _DTYPES}),
    *(
        foreign(
            f'{name}(name="", no_realize=False, *, exec_scope="")',
            same={"no_realize": _OFF, "exec_scope": ("",)},
        )
        for name in ("T.block", "T.sblock")
    ),
    *(
        foreign(f'T.axis.{kind}(dom, binding, dtype="int32")', _AXIS, {"dtype": _DTYPES})
        for kind in ("spatial", "S", "reduce", "R", "opaque", "scan")
    ),
    foreign(
        'T.axis.remap(kinds, bindings, dtype="int32")', {"bindings": "loops"}, {"dtype": _DTYPES}
    ),
    foreign("T.cast(value, dtype, span=None)", same={"span": _NONE}),
    foreign("T.Cast(dtype, value, span=None)", same={"span": _NONE}),
    foreign("T.reinterpret(dtype, value, span=None)", same={"span": _NONE}),
    foreign("T.min_value(dtype, span=None)", same={"span": _NONE}),
    foreign("T.max_value(dtype, span=None)", same={"span": _NONE}),
    foreign("T.reads(*regions)"),
    foreign("T.writes(*regions)"),
    foreign("T.func_attr(attrs)"),
    foreign("R.func_attr(attrs)"),
    foreign("T.block_attr(attrs)"),
    foreign("T.sblock_attr(attrs)"),
    foreign("R.Tensor(shape=None, dtype=None, vdevice=None, ndim=-1)"),
    foreign("R.str(value)"),
    foreign("R.dtype(value)", {"value": "name"}),
    foreign("R.print(*values, format='')"),
    foreign("R.assert_op(condition, format_args=None, format='')"),
    foreign("R.to_vdevice(data, dst_vdevice)"),
    foreign("R.Shape(values=None, ndim=-1)"),
    foreign("R.shape(values)"),
    foreign('R.Prim(dtype="int64", value=None)'),
    foreign("R.Tuple(*fields)"),
    foreign("R.tuple(*fields)"),
    foreign(
        "R.Callable(params=None, ret=None, purity=True, derive_func=None)",
        {"ret": "result", "purity": "pure"},
        {"derive_func": _NONE},
    ),
    foreign(
        "R.call_tir(callee, args, out_sinfo=None, tir_vars=None, *, out_ty=None, out=None,"
        " sym_args=None)"
    ),
    foreign(
        "R.call_tir_inplace(callee, args, inplace_indices, out_sinfo=None, tir_vars=None, *,"
        " out_ty=None)"
    ),
    foreign(
        "R.call_dps_packed(func, args, out_sinfo=None, *, out_ty=None)",
        {"func": "symbol", "out_sinfo": "out", "out_ty": "out"},
    ),
    foreign(
        "R.layout_transform(x, index_map, pad_value=None, axis_separators=None,"
        " input_axis_separators=None)",
        same={"axis_separators": (None, [], ()), "input_axis_separators": (None, [], ())},
    ),
    foreign("R.match_cast(value, struct_info)", {"struct_info": "type"}),
    *RELAX,
)
FOREIGN: Mapping[str, Foreign] = {row.signature.name: row for row in _ROWS}
PRIM_FUNC_OPTIONS = frozenset({"private", "check_well_formed", "s_tir"})
"""What ``@T.prim_func`` takes; `private` is kept as attribute, the others make no difference here,
where all is checked always."""
FUNCTION_OPTIONS = frozenset({"pure", "private", "check_well_formed"})
MACRO_OPTIONS = frozenset({"hygienic"})
MODULE_OPTIONS = frozenset({"check_well_formed", "s_tir"})
