"""Names of the language refuse what they do not take: every call of every program, made wrong."""

from __future__ import annotations

import ast

import pytest

from unity.arguments import Signature
from unity.script import constants_of, parse
from unity.script.scalar_names import SCALAR_SIGNATURES

from .mutations import Mutation, annotation_mutations, mutations, outcome
from .test_sweep_language import WORDS
from .written_programs import GRAPHS, HOSTS, KERNELS

PROGRAMS = {**KERNELS, **GRAPHS}
TAKES = {
    **dict.fromkeys(("begin", "end", "extents", "stride", "values", "dims"), "int"),
    **dict.fromkeys(("domain",), "int tuple"),
    **dict.fromkeys(("attrs",), "dict"),
    **dict.fromkeys(("condition", "predicate"), "bool"),
    **dict.fromkeys(("shape", "strides", "separators", "sym_args", "inplace"), "tuple int none"),
    **dict.fromkeys(("then", "orelse", "a", "b", "x", "y", "z", "base"), "int float bool"),
    **dict.fromkeys(("args", "init", "inputs"), "int float bool tuple"),
    **dict.fromkeys(("lanes", "align", "ndim"), "int"),
    **dict.fromkeys(("name", "symbol", "engine", "message", "format"), "text"),
    **dict.fromkeys(("out", "params"), "tuple"),
    "value": "int float bool text none tuple",
    "index": "int",
    "type": "",
}
"""What literals an argument of a name may be; of what is not here, none."""
PACKED = ("R.call_packed", "R.call_pure_packed")
GIVEN_TEXTS = ("R.print", "R.assert_op", *PACKED)
"""Names that take any number of texts."""
OF_A_NAME = {
    **{("R.Shape", "dims"): "int dots", ("R.match_cast", "value"): "int float bool tuple"},
    ("R.matmul", "out_dtype"): "none",
    **{(path, "values"): "int float bool tuple text" for path in ("R.print", "R.assert_op")},
    **{(path, "args"): "int float bool tuple text" for path in PACKED},
    **{(f"T.axis.{k}", "value"): "int" for k in ("spatial", "reduce", "opaque")},
}


def param_of(mutation: Mutation) -> str:
    """The name of the argument that is changed."""
    if isinstance(mutation.param, str):
        return mutation.param
    signature = WORDS.get(mutation.path) or ANNOTATIONS.get(mutation.path)
    if signature is None:
        return "x"
    plain = [p for p in signature.params if not p.named_only]
    return plain[min(mutation.param, len(plain) - 1)].name


ANNOTATIONS = {
    f"{letter}.{text.partition('(')[0]}": Signature.parse(text)
    for letter, texts in {
        "R": ("rank(ndim)", "Shape(*dims)", "Prim(name, value=None)", "Tuple(*fields)"),
        "T": ("strides(*values)", "scope(scope)", "align(align)", "scalar(dtype)"),
    }.items()
    for text in texts
} | {"R.Func": Signature.parse("R.Func(params, result, pure=True)")}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.long("every call of a program is changed in many ways")
@pytest.mark.rotated(1)
def test_what_is_not_taken_is_refused(name: str) -> None:
    text = PROGRAMS[name]
    before = parse(text, names=HOSTS)
    constants = constants_of(before)
    wrong: list[str] = []
    for mutation in mutations(text):
        said = outcome(mutation, before, lambda t: parse(t, constants, names=HOSTS))
        if said is None:
            continue
        if mutation.path in GIVEN_TEXTS and mutation.what.endswith("texts more"):
            continue
        param = param_of(mutation)
        takes = OF_A_NAME.get((mutation.path, param), TAKES.get(param, ""))
        if said or (mutation.kind not in takes.split() and not mutation.same):
            wrong.append(f"{mutation.path} ({param}), {mutation.what}: {said or 'is accepted'}")
    assert wrong == []


TYPES_TAKE = {"Tensor": "int dots", "Buffer": "int", "T.Scalar": ""}
"""What literals a dim of a type may be."""
NO_DIMS = ("[Tensor, ()]", "[Buffer, ()]")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.long("every type of a program is changed in many ways")
@pytest.mark.rotated(1)
def test_what_types_do_not_take_is_refused(name: str) -> None:
    text = PROGRAMS[name]
    before = parse(text, names=HOSTS)
    constants = constants_of(before)
    wrong: list[str] = []
    for mutation in annotation_mutations(text):
        said = outcome(mutation, before, lambda t: parse(t, constants, names=HOSTS))
        if said is None or (not said and mutation.what.endswith(NO_DIMS)):
            continue
        word = mutation.path.partition("[")[2].removesuffix("]")
        takes = TYPES_TAKE.get(word, "").split() if mutation.param else []
        if said or (mutation.kind not in takes and not mutation.same):
            wrong.append(f"{mutation.what}: {said or 'is accepted'}")
    assert wrong == []


def test_every_name_is_in_a_program() -> None:
    """A new name of the language is put in one of the programs, whose calls are changed."""
    called = {
        ast.unparse(node.func)
        for text in PROGRAMS.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    }
    scalar = ("T.exp", "T.tanh", "T.fma", "T.min", "T.floordiv")
    assert set(scalar) <= called
    assert {*WORDS, *ANNOTATIONS} - {*SCALAR_SIGNATURES} - called == set()
