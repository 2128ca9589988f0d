"""The pages made of the code itself: operators, words, passes, schedule steps, mistakes, tutorials.

Called by `conf.py` before Sphinx reads its sources; what it writes is not committed.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from textwrap import dedent

from docs.relax_page import differences, only_here
from tests.face.mistakes import CATALOGUE
from tests.face.mistakes.mistake import PRELUDE
from unity import transform
from unity.op.naming import OURS, names_of
from unity.op.table import OPS
from unity.script import R, T
from unity.script.marker import Marker
from unity.transform import Pass, pipeline
from unity.transform.relax_names import RELAX
from unity.transform.schedule import Schedule

ROOT = Path(__file__).parents[1]


def write_pages(folder: Path) -> list[Path]:
    """Write all generated pages; those that were there and are made no longer are removed.

    Args:
        folder: Where to; it holds nothing else.
    """
    pages = {
        "operators.md": operators(),
        "schedule_steps.md": schedule_steps(),
        "passes.md": passes(),
        "words.md": words(),
        "mistakes.md": mistakes(),
        "relax.md": relax(),
        **tutorials(sorted((ROOT / "tutorials").glob("[0-9]*.py"))),
    }
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text)
    return [folder / name for name in pages]


def operators() -> str:
    """Every operator: what it takes, what it computes, what others call it."""
    public = [op for op in OPS.values() if op.name not in OURS]
    inner = [op for op in OPS.values() if op.name in OURS]
    rows = []
    for op in public:
        names = names_of(op.name)
        relax = None if names.relax is None else f"R.{names.relax}"
        torch = None if names.torch is None else f"torch.{names.torch}"
        others = [_code(n) if n else "" for n in (names.onnx, relax, torch)]
        rows.append((_code(f"R.{op.usage}"), _first(op.doc), *others))
    own = [(_code(f"R.{op.usage}"), _first(op.doc)) for op in inner]
    return "\n".join([
        "# Operators", "",
        f"The {len(public)} operators of graph functions. Names of ONNX, Relax, torch are of the "
        "nearest operator there; attributes may differ, and `help(R.matmul)` tells all of one.",
        "", *_table(("operator", "computes", "ONNX", "Relax", "torch"), rows), "",
        "## Made by the compiler", "",
        "What passes and importers make of the others; programs may write them as well.", "",
        *_table(("operator", "computes"), own), "",
    ])  # fmt: skip


def schedule_steps() -> str:
    """The primitives of `Schedule`, by what they change."""
    lines = ["# Schedule steps", "", "Methods of `unity.transform.schedule.Schedule`.", ""]
    for part in Schedule.__mro__[:-1]:
        steps = [
            (_code(f"{name}{_parameters(method)}"), _first(inspect.getdoc(method) or ""))
            for name, method in vars(part).items()
            if inspect.isfunction(method) and not name.startswith("_")
        ]
        if steps:
            lines += [f"## {_first(inspect.getdoc(part) or part.__name__).rstrip('.')}", ""]
            lines += [*_table(("step", "does"), steps), ""]
    return "\n".join(lines)


def passes() -> str:
    """The standard pipeline in its order, each pass with what it does and why it stands there."""
    reasons = _reasons(ROOT / "transform" / "pipeline.py")
    rows = [
        (str(i), _code(p.name), _first(inspect.getdoc(type(p)) or ""), reason)
        for i, (p, reason) in enumerate(zip(pipeline().passes, reasons, strict=True), 1)
    ]
    return "\n".join([
        "# Passes", "",
        "The standard pipeline of the target `cpu`, as `transform/pipeline.py` lists it.", "",
        *_table(("", "pass", "does", "why there"), rows), "",
        "## Others", "",
        "What options of `unity.compile` add, and what pipelines of your own may.", "",
        *_table(("pass", "does"), _other_passes()), "",
        "## Relax's names", "",
        "What passes of `tvm.relax.transform` are called here, or what does the same.", "",
        *_table(("Relax", "here", ""), _relax_passes()), "",
    ])  # fmt: skip


def _other_passes() -> list[tuple[str, str]]:
    """The passes of `unity.transform` that the standard pipeline does without."""
    standard = {type(p) for p in pipeline().passes}
    for found in walk_packages(transform.__path__, f"{transform.__name__}."):
        import_module(found.name)
    others = [k for k in _below(Pass) if k not in standard and _is_ours(k)]
    return [
        (_code(kind.__name__), _first(inspect.getdoc(kind) or ""))
        for kind in sorted(others, key=lambda k: k.__name__)
    ]


def _is_ours(kind: type[object]) -> bool:
    """Whether a class is what its module has by its name: one with slots is made of another."""
    home = kind.__module__
    return home.startswith("unity.") and getattr(sys.modules[home], kind.__name__, None) is kind


def _relax_passes() -> list[tuple[str, str, str]]:
    """Each pass of Relax with ours."""
    return [
        (_code(name), ", ".join(map(_code, here.passes)) or "no pass", here.note)
        for name, here in RELAX.items()
    ]


def _below(kind: type[object]) -> list[type[object]]:
    return [k for own in kind.__subclasses__() for k in (own, *_below(own))]


def words() -> str:
    """The words of the language that are no operators: those of `R` and of `T`."""
    lines = ["# Words of the language", ""]
    for title, names, letter in (("Graph functions", R, "R"), ("Prim funcs", T, "T")):
        found = [
            (_code(w.signature.usage), _first(w.text))
            for w in (getattr(names, n) for n in dir(names))
            if isinstance(w, Marker) and w.signature and w.path.removeprefix("R.") not in OPS
        ]
        lines += [f"## {title}: `{letter}`", "", *_table(("word", "means"), found), ""]
    return "\n".join(lines)


def relax() -> str:
    """Where operators of our language differ from Relax's."""
    rows = [(_code(ours), _code(theirs), what) for ours, theirs, what in differences()]
    return "\n".join([
        "# Operators that differ from Relax's", "",
        "`unity.script.tvmscript` reads TVM's modules with TVM's meaning: it writes the names and "
        "the defaults of the left column where a text means those of the right one, and refuses "
        "what has no meaning here. Operators that are not listed take the same in both; first "
        "operands are called `x` here and often `data` there. The language as a whole: "
        "[where it differs](../guide/language.md).", "",
        *_table(("here", "in Relax", "what differs"), rows), "",
        "## Here alone", "",
        "Operators that Relax lacks: " + ", ".join(map(_code, only_here())) + ".", "",
    ])  # fmt: skip


def mistakes() -> str:
    """The catalogue of mistakes, whose every row a test runs (`tests/face/test_mistakes.py`)."""
    lines = [
        "# Mistakes and remedies", "",
        "What Unity refuses, in its words, why, and how it is right. An error stands behind its "
        "place (`program.py:12:16:`, the line and carets, or a model's node), which is left out "
        "here. The programs begin with", "", *_fenced(PRELUDE, "python"),
    ]  # fmt: skip
    for group, rows in CATALOGUE.items():
        lines += [f"## {group}", ""]
        for row in rows:
            kind = "sh" if row.is_command else "python"
            said = row.says if row.hint is None else f"{row.says}\nhint: {row.hint}"
            lines += [f"### {row.title}", "", *_fenced(row.wrong, kind), *_fenced(said, "text")]
            lines += [row.cause, "", *_fenced(row.right, kind)]
    return "\n".join(lines)


def _fenced(text: str, kind: str) -> list[str]:
    return [f"```{kind}", *dedent(text).strip("\n").splitlines(), "```", ""]


def tutorials(files: Iterable[Path]) -> dict[str, str]:
    """A page for each tutorial: its text as prose, its code as it runs."""
    return {f"{file.stem}.md": _tutorial(file) for file in files}


def _tutorial(file: Path) -> str:
    text = file.read_text()
    doc = ast.get_docstring(ast.parse(text)) or file.stem
    title, _, rest = doc.partition("\n")
    code = text.split('"""', 2)[2].lstrip("\n")
    lines = [f"# {title.rstrip('.')}", rest.replace("``", "`"), ""]
    for i, cell in enumerate(code.split("\n# %%")):
        body = cell
        if i:
            prose, _, body = cell.partition("\n")
            while body.startswith("# "):
                more, _, body = body.partition("\n")
                prose += " " + more[2:]
            lines += [prose.strip(), ""]
        if body.strip():
            lines += ["```python", body.strip("\n"), "```", ""]
    return "\n".join(lines)


def _reasons(file: Path) -> list[str]:
    """The comments behind the lines of ``GRAPH``, ``KERNELS`` and ``TENSOR``, in this order."""
    lines = file.read_text().splitlines()
    found: list[str] = []
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if not isinstance(node.value.args[0] if node.value.args else None, ast.Tuple):
                continue
            listed = node.value.args[0]
            assert isinstance(listed, ast.Tuple)
            found += [lines[e.lineno - 1].partition("#")[2].strip() for e in listed.elts]
    return found


def _parameters(of: Callable[..., object]) -> str:
    """The parameters by name and default; their types are in the reference."""
    signature = inspect.signature(of)
    bare = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    return str(inspect.Signature(bare))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(_cell(c) for c in row) + " |" for row in rows),
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"


def _first(doc: str) -> str:
    """The first paragraph of a docstring, as Markdown."""
    return " ".join(doc.split("\n\n", 1)[0].split()).replace("``", "`")
