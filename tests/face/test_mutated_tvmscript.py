"""TVMScript's names refuse what they do not take, as our own do; nothing said is dropped."""

from __future__ import annotations

import ast
from typing import TypeGuard

import pytest

from tests.script.relax_defaults import CALLS, call_of, program
from unity.arguments import Signature
from unity.ir.module import IRModule
from unity.op.table import OPS
from unity.script import tvmscript
from unity.script.scalar_names import SCALAR_SIGNATURES
from unity.script.tvmscript.signatures import FOREIGN

from .mutations import LITERALS, Mutation, mutations, outcome, put, value_of
from .test_sweep_language import WORDS
from .written_tvmscript import TVM_PROGRAMS

NUMBER = "int float bool"
TAKES = {
    **dict.fromkeys(("start", "stop", "extents", "binding", "dom", "thread"), "int"),
    **dict.fromkeys(("annotations", "attrs"), "dict none"),
    **dict.fromkeys(("offset_factor", "elem_offset", "align"), "int none"),
    **dict.fromkeys(("strides", "axis_separators"), "tuple none"),
    **dict.fromkeys(("shape", "values"), "int tuple none"),
    **dict.fromkeys(("dtype", "data", "bias", "scale"), "none"),
    **dict.fromkeys(("a", "b", "x", "y", "value", "then", "orelse"), f"{NUMBER} tuple text"),
    **dict.fromkeys(("name", "symbol", "func"), "text"),
    **dict.fromkeys(("condition", "purity"), "bool int"),
    **dict.fromkeys(("args", "fields"), f"{NUMBER} tuple text"),
    **dict.fromkeys(("out_sinfo", "out_ty", "params", "inplace_indices", "sinfo_args"), "tuple"),
    "ndim": "int",
}
"""What literals an argument may be where it is no operator's attribute; others may be none."""
QUIET = {
    **dict.fromkeys(("strides", "axis_separators"), "none tuple"),
    **{"offset_factor": "int none class", "assume_inbound": "class", "elem_offset": "none"},
}
"""Literals that leave things as they are: a default, or what says nothing to a CPU."""
SILENT_HERE = {
    *(("T.ret", param, "none") for param in ("dtype", "span")),
    ("T.index_map", "inverse_index_map", "none"),
}
"""Likewise, of one call."""
TAKES_MORE = {
    ("R.Prim", "1 texts more"),
    *((f"R.call_{p}", f"{n} texts more") for p in ("packed", "pure_packed") for n in (1, 30)),
}
"""A text behind the dtype names a symbol; packed functions are given texts."""


def signature_of(path: str) -> Signature | None:
    """What a name takes, if that is written down."""
    if path in FOREIGN:
        return FOREIGN[path].signature
    row = OPS.get(path.removeprefix("R."))
    known = WORDS.get(path) or SCALAR_SIGNATURES.get(path)
    return row.signature if known is None and row is not None else known


def param_of(mutation: Mutation) -> str:
    """The name of the argument that is changed."""
    signature = signature_of(mutation.path)
    if isinstance(mutation.param, str) or signature is None:
        return str(mutation.param)
    plain = [p.name for p in signature.params if not p.named_only]
    return plain[min(mutation.param, len(plain) - 1)]


def says_the_same(mutation: Mutation, param: str) -> bool:
    """Whether another literal may mean what stood there: a default, or what means nothing here."""
    if mutation.path.removeprefix("R.") in OPS and mutation.kind == "bool":
        return True  # a number of an operand
    if (mutation.path, param, mutation.kind) in SILENT_HERE:
        return True
    return mutation.kind in QUIET.get(param, "").split()


def takes(mutation: Mutation, param: str) -> bool:
    """Whether a literal may be this argument: of operators the rows know (`test_sweep_operators`).

    Of names without a signature here (``T.float32``, ``T.ceildiv``), numbers are values.
    """
    if mutation.param == "" or mutation.same:
        return mutation.same or (mutation.path, mutation.what) in TAKES_MORE
    if mutation.path.removeprefix("R.") in OPS:
        return mutation.kind in (*NUMBER.split(), "none", "tuple", "text")
    if signature_of(mutation.path) is None:
        return mutation.kind in (*NUMBER.split(), "text", "tuple")
    return mutation.kind in TAKES.get(param, "").split()


@pytest.mark.parametrize("name", TVM_PROGRAMS)
@pytest.mark.long("every call of a program is changed in many ways")
@pytest.mark.rotated(1)
def test_what_is_not_taken_is_refused(name: str) -> None:
    text = TVM_PROGRAMS[name]
    before = tvmscript.parse(text)
    wrong: list[str] = []
    for mutation in mutations(text):
        said = outcome(mutation, before, tvmscript.parse)
        param = param_of(mutation)
        if says_the_same(mutation, param) and (said or "").startswith("is read"):
            continue
        if said or (said == "" and not takes(mutation, param)):
            wrong.append(f"{mutation.path} ({param}), {mutation.what}: {said or 'is accepted'}")
    assert wrong == []


NOT_READ = (
    "nn.group_norm", "nn.instance_norm", "shape_to_tensor", "tensor_to_shape", "print", "assert_op",
)  # fmt: skip
"""Operators whose calls in `relax_defaults` are not read here, for the dims they are of; the last
two are effects, which take any number of values (`tests/script/test_effects.py`)."""
NAMED = {n.removeprefix("R.") for n in FOREIGN if n.startswith("R.")} | {*CALLS}
READ = sorted((NAMED & {*OPS}) - {*NOT_READ})


@pytest.mark.parametrize("name", READ)
@pytest.mark.rotated(1)
def test_an_operator(name: str) -> None:
    """Each parameter of TVM's, those left out as well; a value that means the default may stand."""
    text, _ = program(name, call_of(name))
    before = tvmscript.parse(text)
    signature = signature_of(f"R.{name}")
    assert signature is not None
    given = next(n for n in ast.walk(ast.parse(text)) if _calls(n, name))
    wrong: list[str] = []
    for mutation in mutations(text, lambda path: path == f"R.{name}"):
        said = outcome(mutation, before, tvmscript.parse)
        if (said and not said.startswith("is read")) or (said == "" and not takes(mutation, "")):
            wrong.append(f"{mutation.what}: {said or 'is accepted'}")
    for at, param in enumerate(signature.params):
        for literal, kind in LITERALS.items():
            tree = ast.parse(text)
            call = next(n for n in ast.walk(tree) if _calls(n, name))
            put(call, at if at < len(call.args) else param.name, literal)
            what = f"{param.name}={literal}"
            mutation = Mutation(f"R.{name}", what, ast.unparse(tree), param.name, kind)
            said = outcome(mutation, before, tvmscript.parse)
            usual = at < len(given.args) or param.name in {k.arg for k in given.keywords}
            usual = usual or kind == "none" or param.name in SILENT
            usual = usual or value_of(literal) == value_of(repr(param.default))
            if said and not (said.startswith("is read") and usual):
                wrong.append(f"{what}: {said}")
    assert wrong == []


SILENT = (
    "momentum", "count_include_pad", "assume_inbound", "largest", "center", "scale",
    "axis_separators", "input_axis_separators",
)  # fmt: skip
"""Parameters that change nothing, of their own kind (`signatures`)."""


def _calls(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == f"R.{name}"


@pytest.mark.parametrize("name", ["momentum", "offset_factor", "assume_inbound"])
def test_what_changes_nothing_is_of_its_kind(name: str) -> None:
    texts = {
        "momentum": program("nn.batch_norm", f"{CALLS['nn.batch_norm']}, momentum=MORE")[0],
        "assume_inbound": program("strided_slice", f"{CALLS['strided_slice']}, {name}=MORE")[0],
        "offset_factor": TVM_PROGRAMS["handles"].replace("offset_factor=1", f"{name}=MORE"),
    }
    good = {"momentum": "0.5", "assume_inbound": "True", "offset_factor": "16"}
    tvmscript.parse(texts[name].replace("MORE", good[name]))
    for literal, kind in LITERALS.items():
        if kind in ("text", "bytes", "tuple", "dict", "dots", "complex", "float") and (
            name != "momentum" or kind != "float"
        ):
            text = texts[name].replace("MORE", literal)
            said = outcome(Mutation("", "", text), tvmscript.parse(TVM_PROGRAMS["inplace"]), read)
            assert said is None, literal


def read(text: str) -> IRModule:
    return tvmscript.parse(text)
