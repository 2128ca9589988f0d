"""Traces: what was done to a prim func, as data that replays on a fresh one and is kept as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity.arguments import public_class
from unity.errors import UnityError

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
        """
        lines = [f"    {_python_step(i)}\n" for i in self.instructions] or ["    pass\n"]
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


def _python_step(i: Instruction) -> str:
    args = [_python(a) for a in i.args]
    loops = [o for o in i.outputs if re.fullmatch(r"[lv]\d+", o)]
    if i.decision is not None:
        args.append(f"decision={_python(i.decision)}")
    call = f"sch.{i.name}({', '.join(args)})"
    if not loops:
        return call
    if i.one:
        return f"{loops[0]} = {call}"
    made = ", ".join(loops) if len(loops) > 1 else f"({loops[0]},)"
    return f"{made} = {call}"


def _python(value: Json) -> str:
    """An argument as Python; blocks go by their names."""
    match value:
        case {"loop": str(token)} | {"decision": str(token)}:
            return token
        case {"block": str(name)}:
            return json.dumps(name)
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
            return f"[{', '.join(_python(v) for v in value)}]"


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
            return isinstance(token, str) and re.fullmatch(r"[lv]\d+", token) is not None
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
