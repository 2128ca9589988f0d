"""Random graph functions through passes and the whole compiler, against the interpreter."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp

import numpy as np

from tests.generators.graph import arguments_for, module
from tests.generators.state import SIZES
from unity.compilation import compiled
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dims import Dim
from unity.ir.dtype import Array
from unity.ir.equality import first_difference
from unity.ir.graph import Binding, Function, FunctionRef, If, ShapeValue, Var
from unity.ir.lattice import function_type
from unity.ir.module import IRModule
from unity.ir.types import ObjectType, TensorType, Type
from unity.ir.visit import graph_children, walk_bindings
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types
from unity.script import constants_of, parse, print_module
from unity.transform import Context, Pipeline
from unity.transform.instruments.numeric import difference

from .replay import Edit, Replay
from .texts import ARRAY, array_text, heading, module_text


@dataclass(frozen=True, slots=True)
class Graph:
    """A module whose ``main`` is run, and the seed of its arguments and their sizes."""

    module: IRModule
    seed: int

    @property
    def sizes(self) -> Mapping[str, int]:
        """What ``n`` and ``m`` are: the usual `SIZES` for every other seed."""
        random = Random(self.seed)
        other = {"n": random.choice((0, 1, 4, 9)), "m": random.choice((1, 3))}
        return other if self.seed % 2 else SIZES

    def arguments(self, sizes: Mapping[str, int] | None = None) -> list[Array]:
        """Arrays for ``main``, of its own sizes or of others; none for one that is a kernel."""
        if "main" not in self.module.graph_functions():
            return []
        rng = np.random.default_rng(self.seed)
        return arguments_for(self.module, rng, sizes=sizes or self.sizes)


def drawn(seed: int, size: int) -> Graph:
    """The random module of a seed."""
    return Graph(module(Random(seed), size=size), seed)


def require_same(expected: object, got: object) -> None:
    """Refuse results that differ.

    Raises:
        AssertionError: They do; says where.
    """
    wrong = difference(expected, got, 1e-4, 1e-5)
    if wrong is not None:
        raise AssertionError(f"results differ: {wrong}")


def check_passes(passes: Pipeline, graph: Graph) -> None:
    """The module after passes is well formed, prints back, and computes what it did."""
    args = graph.arguments()
    expected = interpret(graph.module, "main", args)
    after = passes.run(graph.module, Context())
    verify(after)
    check_types(after)
    require_same(expected, interpret(after, "main", args))
    check_printing(Graph(after, 0))


def check_printing(graph: Graph) -> None:
    """What is printed is read back as what it was."""
    again = parse(print_module(graph.module), constants_of(graph.module))
    wrong = first_difference(graph.module, again)
    if wrong is not None:
        raise AssertionError(f"read back differently: {wrong}")


@cache
def kernels_folder() -> Path:
    """A folder of kernels compiled before, for as long as this process runs."""
    made = mkdtemp(prefix="unity_fuzz_")
    atexit.register(rmtree, made, ignore_errors=True)
    return Path(made)


def check_compiled(kernels: Path, graph: Graph) -> None:
    """The compiled module gives what the interpreter gives, twice: its arena is used again.

    Of programs that are run at sizes of their own one of these calls is of the usual sizes.

    Half of the kernels of random modules were in modules before: they come from the cache, whose
    keys are judged by that as well.
    """
    executable = compiled(graph.module, store=kernels)
    for args in both_calls(graph):
        require_same(interpret(graph.module, "main", args), plain(executable(*args)))


def both_calls(graph: Graph) -> list[list[Array]]:
    """Arguments of the usual sizes, then of the program's own."""
    return [graph.arguments(sizes) for sizes in (SIZES, graph.sizes)]


def one_call(graph: Graph) -> list[list[Array]]:
    """Arguments of the program's own sizes."""
    return [graph.arguments()]


def plain(value: object) -> object:
    """A result with tuples for lists."""
    if isinstance(value, tuple | list):
        return tuple(plain(v) for v in value)
    return np.asarray(value)


def smaller(graph: Graph) -> Iterator[Graph]:
    """Modules whose ``main`` does less, or the same on less."""
    main = graph.module.graph_functions().get("main")
    for edit in () if main is None else edits(main):
        made = edited(graph.module, edit)
        if made is not None and weight(made) < weight(graph.module):
            yield Graph(made, graph.seed)


def weight(of: IRModule) -> tuple[int, int, int]:
    """How large a module is: bindings, functions, and the extents in sight."""
    bindings = [b for f in of.graph_functions().values() for b in walk_bindings(f)]
    dims = [n for f in of.graph_functions().values() for n in extents(f)]
    return len(bindings), len(of), sum(dims) + len(of.graph_functions()["main"].params)


def edits(main: Function) -> Iterator[Edit]:
    """What may be done to a function, the largest cuts first."""
    outer = [b for block in main.body.blocks for b in block.bindings]
    every = [*walk_bindings(main)]
    for binding in outer:
        yield Edit(result=(binding.var,))
    for binding in reversed(outer):
        if isinstance(binding.var.type, TensorType):
            yield Edit(cut=binding.var)
    for binding in every:
        if isinstance(binding.value, If):
            yield Edit(branch=(binding.var, True))
            yield Edit(branch=(binding.var, False))
    before: list[Var] = [*main.params]
    for binding in every:
        same = [v for v in before if v.type == binding.var.type]
        yield from (Edit(instead={binding.var: v}) for v in (*same[:1], *same[1:][-1:]))
        before.append(binding.var)
    for n in sorted(set(extents(main)), reverse=True):
        for less in dict.fromkeys((1, 2, n // 2, n - 1)):
            if less < n:
                yield Edit(dim=partial(_less, n, less), array=partial(_cut_array, n, less))


def extents(main: Function) -> Iterator[int]:
    """The numbers above 1 among the dims of parameters and shapes."""
    for param in main.params:
        if isinstance(param.type, TensorType) and isinstance(param.type.shape, tuple):
            yield from (n for n in param.type.shape if isinstance(n, int) and n > 1)
    for binding in walk_bindings(main):
        yield from _extents_of(binding)


def _extents_of(binding: Binding) -> Iterator[int]:
    for arg in getattr(binding.value, "args", ()):
        if isinstance(arg, ShapeValue):
            yield from (n for n in arg.dims if isinstance(n, int) and n > 1)


def _less(n: int, less: int, value: Dim) -> Dim:
    return less if value == n else value


def _cut_array(n: int, less: int, data: Array) -> Array:
    return np.ascontiguousarray(data[tuple(slice(less if k == n else k) for k in data.shape)])


def edited(of: IRModule, edit: Edit) -> IRModule | None:
    """The module under an edit of ``main``; None if it is no program then."""
    signatures: dict[str, Type] = {
        name: function_type(f) if isinstance(f, Function) else ObjectType()
        for name, f in of.items()
    }
    try:
        main = Replay(edit, signatures).function(of.graph_functions()["main"])
        made = IRModule({**of, "main": main}, of.attrs)
        made = _reached(made)
        verify(made)
        check_types(made)
        interpret(made, "main", Graph(made, 0).arguments())
    except (UnityError, AssertionError, ValueError, IndexError):
        return None
    return made


def _reached(of: IRModule) -> IRModule:
    """The module without functions that `main` has no use of."""
    kept, waiting = {"main"}, ["main"]
    while waiting:
        found = of[waiting.pop()]
        for binding in walk_bindings(found) if isinstance(found, Function) else ():
            operands = (binding.value, *graph_children(binding.value))
            named = {e.name for e in operands if isinstance(e, FunctionRef)} - kept
            kept |= named
            waiting += named
    return IRModule({name: f for name, f in of.items() if name in kept}, of.attrs)


def script(
    imports: str, run: str, calls: Callable[[Graph], list[list[Array]]] = one_call
) -> Callable[[Graph, str], str]:
    """Writes programs down: `run` is what fails, with ``module``, ``calls`` and ``args`` at hand.

    ``calls`` holds arguments, those of several calls; ``args`` are the last of them.
    """

    def written(graph: Graph, failure: str) -> str:
        args = ", ".join(f"[{', '.join(map(array_text, one))}]" for one in calls(graph))
        head = heading(imports.partition("\n")[0].removeprefix("# "), failure)
        return (
            f"{head}\nimport numpy as np\n\nfrom unity.ir.dtype import dtype\n"
            f"from unity.script import parse\n{imports.partition(chr(10))[2]}\n\n{ARRAY}\n\n"
            f"module = {module_text(graph.module)}\ncalls = [{args}]\nargs = calls[-1]\n{run}"
        )

    return written
