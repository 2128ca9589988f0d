"""Traces: what was done to a prim func, as data that replays on a fresh one and is kept as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity import notebook
from unity.arguments import public_class
from unity.errors import UnityError
from unity.script.printer.names import Names

from .index_map import IndexMap
from .refs import BlockRef, Decision, LoopRef

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
VERSION = 2


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step: the name of a method of `Schedule`, its arguments, and tokens of what it gave.

    `decision` is what a sampling instruction drew. `one` says that the method gives its one output
    by itself, no tuple of outputs.
    """

    name: str
    args: tuple[Json, ...]
    outputs: tuple[str, ...] = ()
    decision: Json = None
    one: bool = False


@public_class
@dataclass(frozen=True, slots=True)
class Trace:
    """Instructions in order.

    >>> trace = Trace((Instruction("get_loops", ({"block": "copy"},), ("l0",)),))
    >>> Trace.from_json(trace.to_json()) == trace
    True
    """

    instructions: tuple[Instruction, ...] = ()

    def __iter__(self) -> Iterator[Instruction]:
        """The instructions."""
        return iter(self.instructions)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.instructions)

    def with_(self, instruction: Instruction) -> Trace:
        """With one more."""
        return Trace((*self.instructions, instruction))

    def with_decision(self, index: int, decision: Json) -> Trace:
        """With another decision for the sampling instruction at an index."""
        steps = list(self.instructions)
        steps[index] = replace(steps[index], decision=decision)
        return Trace(tuple(steps))

    def to_json(self) -> str:
        """As one line of JSON; an output that is given by itself stands in no list."""
        steps = [
            [i.name, i.args, i.outputs[0] if i.one else i.outputs, i.decision]
            for i in self.instructions
        ]
        return json.dumps({"version": VERSION, "steps": steps})

    def _repr_html_(self) -> str:
        steps = list(_python_steps(self.instructions))
        made = notebook.table(("", "step"), enumerate(steps, 1), f"{len(steps)} steps")
        return notebook.page(made)

    def to_python(self) -> str:
        """As a Python function that does the same to a schedule, to be changed.

        >>> step = Instruction("split", ({"loop": "l0"}, [None, 4]), ("l1", "l2"))
        >>> loops = Instruction("get_loops", ({"block": "copy"},), ("l0",))
        >>> back = Instruction("fuse", ({"loop": "l1"}, {"loop": "l2"}), ("l3",), one=True)
        >>> print(Trace((loops, step, back)).to_python(), end="")
        def steps(sch: Schedule) -> None:
            (l0,) = sch.get_loops("copy")
            l1, l2 = sch.split(l0, [None, 4])
            l3 = sch.fuse(l1, l2)

        Blocks that a step gives go by variables, as they have other names where buffers have:

        >>> copied = ({"block": "copy"}, 0, "local")
        >>> copy = Instruction("cache_read", copied, ("a_local",), one=True)
        >>> there = Instruction("compute_at", ({"block": "a_local"}, {"loop": "l0"}))
        >>> print(Trace((loops, copy, there)).to_python(), end="")
        def steps(sch: Schedule) -> None:
            (l0,) = sch.get_loops("copy")
            a_local = sch.cache_read("copy", 0, "local")
            sch.compute_at(a_local, l0)
        """
        lines = [f"    {line}\n" for line in _python_steps(self.instructions)] or ["    pass\n"]
        return "".join(["def steps(sch: Schedule) -> None:\n", *lines])

    @staticmethod
    def from_json(text: str) -> Trace:
        """The trace that `to_json` wrote.

        Raises:
            UnityError: It is none, or of another version.
        """
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                raise UnityError(f"a trace of version {data['version']}, this is {VERSION}")
            return Trace(tuple(_instruction(*step) for step in data["steps"]))
        except (ValueError, TypeError, KeyError) as error:
            raise UnityError(f"this is no trace: {error}") from None


_TOKEN = re.compile(r"[lv]\d+")
"""What loops and sampled numbers are called; blocks have their names."""


def _python_steps(steps: Sequence[Instruction]) -> Iterator[str]:
    tokens = {o for i in steps for o in i.outputs if _TOKEN.fullmatch(o)}
    used = {b: k for k, i in enumerate(steps) for a in i.args for b in _blocks_in(a)}
    names, blocks = Names({"sch", "Schedule", "IndexMap", *tokens}), dict[str, str]()
    for k, i in enumerate(steps):
        args = [_python(a, blocks) for a in i.args]
        if i.decision is not None:
            args.append(f"decision={_python(i.decision, blocks)}")
        call = f"sch.{i.name}({', '.join(args)})"
        if not any(o in tokens or used.get(o, 0) > k for o in i.outputs):
            yield call
            continue
        blocks.update({o: names.fresh(o) for o in i.outputs if o not in tokens})
        made = ", ".join(blocks.get(o, o) for o in i.outputs)
        yield f"{made if i.one or len(i.outputs) > 1 else f'({made},)'} = {call}"


def _blocks_in(value: Json) -> Iterator[str]:
    match value:
        case {"block": str(name)}:
            yield name
        case list() | tuple():
            for v in value:
                yield from _blocks_in(v)
        case _:
            return


def _python(value: Json, blocks: Mapping[str, str]) -> str:
    """An argument as Python; blocks that no step gave go by their names."""
    match value:
        case {"loop": str(token)} | {"decision": str(token)}:
            return token
        case {"block": str(name)}:
            return blocks.get(name) or json.dumps(name)
        case {"map": text}:
            return IndexMap.from_json(text).to_python() or f"IndexMap.from_json({text!r})"
        case {"sizes": Mapping() as sizes}:
            return repr(dict(sizes))
        case str():
            return json.dumps(value)
        case None | bool() | int() | float():
            return repr(value)
        case Mapping():
            raise AssertionError(value)
        case _:
            return f"[{', '.join(_python(v, blocks) for v in value)}]"


def _instruction(
    name: object, args: list[Json], outputs: list[object] | str, decision: Json
) -> Instruction:
    """An instruction out of a file.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{name!r} is no instruction")
    one = isinstance(outputs, str)
    given = [outputs] if isinstance(outputs, str) else outputs
    tokens = tuple(o for o in given if isinstance(o, str))
    if len(tokens) != len(given) or not all(map(_named_well, args)):
        raise ValueError(f"{name} takes or gives what has no name")
    return Instruction(name, tuple(args), tokens, decision, one)


def _named_well(value: Json) -> bool:
    """Whether tokens in an argument are such: they become names when the trace is printed."""
    match value:
        case {"loop": token} | {"decision": token}:
            return isinstance(token, str) and _TOKEN.fullmatch(token) is not None
        case list():
            return all(map(_named_well, value))
        case _:
            return True


Plain: TypeAlias = bool | int | float | str | None
Given: TypeAlias = "LoopRef | BlockRef | IndexMap | Plain | Sequence[Given] | Mapping[str, int]"
"""What the methods of a schedule take and give."""


def encode(value: Given) -> Json:
    """An argument as JSON."""
    match value:
        case LoopRef(token):
            return {"loop": token}
        case BlockRef(name):
            return {"block": name}
        case IndexMap():
            return {"map": value.to_json()}
        case Decision():
            return {"decision": value.token}
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {"sizes": dict(value)}
        case _:
            return [encode(v) for v in value]


def decode(value: Json, known: Mapping[str, Given]) -> Given:
    """The argument that JSON stands for; tokens stand for what is known by them."""
    match value:
        case {"loop": str(token)} | {"decision": str(token)}:
            if token not in known:
                raise UnityError(f"the trace uses {token!r} before anything gives it")
            return known[token]
        case {"block": str(name)}:
            return known.get(name, BlockRef(name))
        case {"map": text}:
            return IndexMap.from_json(text)
        case {"sizes": Mapping() as sizes}:
            return {name: n for name, n in sizes.items() if isinstance(n, int)}
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            raise UnityError(f"a trace has no such argument: {value}")
        case _:
            return [decode(v, known) for v in value]


def token_of(output: Given) -> str:
    """What a trace calls an output."""
    match output:
        case LoopRef(token):
            return token
        case BlockRef(name):
            return name
        case Decision():
            return output.token
        case _:
            raise AssertionError(output)
