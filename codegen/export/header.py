"""The C header of an exported library."""

from __future__ import annotations

from collections.abc import Sequence

from unity.codegen.dlpack import DECLARATIONS
from unity.codegen.vm.native.layout import Layout
from unity.machine.target import Target
from unity.runtime import bytecode as bc
from unity.runtime.signature import spec_text

from .names import leaf_name


def header_text(prefix: str, functions: Sequence[Layout], target: Target, threads: int) -> str:
    """What C is told of the library.

    Args:
        prefix: What names begin with.
        functions: Those that are exported.
        target: What the code is for.
        threads: How many threads are used until something else is said.
    """
    guard = f"UNITY_{prefix.upper()}_H"
    parts = [
        f"/* Made by Unity for {target.triple}, with: {_wrapped(target.features)} */",
        f"#ifndef {guard}\n#define {guard}\n#include <stdint.h>\n",
        DECLARATIONS,
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        *(_function(prefix, layout) for layout in functions),
        f"""\
/* How many threads calls use from now on, the caller's among them; {threads} if nothing is said. */
void {prefix}_set_threads(int32_t threads);

/* What a result that is not 0 means; the text is never freed. */
const char *{prefix}_message(int32_t result);
""",
        f"#ifdef __cplusplus\n}}\n#endif\n#endif /* {guard} */\n",
    ]
    return "\n".join(parts)


_TOLD = """\
 * Tensors lie on the cpu, in C order. The caller owns them all; outputs are written to, have the
 * shapes that the inputs give them, and share no memory with anything else. May be called by
 * several threads at once. Gives 0, or else what {prefix}_message explains. */
int32_t {prefix}_{name}(const DLTensor *const *inputs, const DLTensor *const *outputs);

/* The outputs' shapes: dims[k] has a place for each axis of outputs[k]. */
int32_t {prefix}_{name}_shapes(const DLTensor *const *inputs, int64_t *const *dims);
"""


def _function(prefix: str, layout: Layout) -> str:
    code = layout.code
    symbols = [s.name for s in code.symbols]
    inputs = [
        (_input_name(code, path), spec)
        for path, spec in zip(layout.paths, layout.inputs, strict=True)
    ]
    outputs = [
        (" ".join(code.output_names[k : k + 1]), spec)
        for k, spec in enumerate(bc.leaf_specs(code.result))
    ]
    lines = [
        _comment(
            f"  {kind}[{i}] {f'{name} ' if name else ''}{spec_text(spec, symbols)}"
            f"{_note(kind, i, spec, code)}"
        )
        for kind, tensors in (("inputs", inputs), ("outputs", outputs))
        for i, (name, spec) in enumerate(tensors)
    ]
    return "\n".join([f"/* {code.name}", *lines, _TOLD.format(prefix=prefix, name=code.name)])


def _input_name(code: bc.FunctionCode, path: Sequence[int]) -> str:
    """What an input is called, where it was imported if it was."""
    named = code.input_names[path[0]] if path[0] < len(code.input_names) else ""
    return named if named and len(path) == 1 else leaf_name(code, path)


def _note(kind: str, index: int, spec: bc.Spec, code: bc.FunctionCode) -> str:
    """What is to be said of a tensor that is no plain input or output."""
    if kind == "outputs" and index in dict(code.aliases):
        return f" is inputs[{dict(code.aliases)[index]}], written over; give NULL"
    match spec:
        case bc.ShapeSpec():
            return ", as a tensor of int64"
        case bc.ScalarSpec(name):
            return f", as a tensor of {name} without axes"
        case _:
            return ""


def _comment(text: str) -> str:
    return f" *{text}".replace("*/", "* /").replace("\n", " ")


def _wrapped(features: Sequence[str]) -> str:
    lines, line = [], ""
    for feature in features:
        if len(line) + len(feature) > 60:
            lines.append(line)
            line = ""
        line += f"{feature} "
    return "\n   ".join([*lines, line.strip()]) or "nothing special"
