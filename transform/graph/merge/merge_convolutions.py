"""MergeConvolutions: convolutions of one input that differ in their weights become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Constant, Expr, Function, Op, Tuple, Var, VarBinding
from unity.ir.module import IRModule
from unity.machine.target import Target

from ...passes import Context, Pass, map_functions
from ..layout.blockable import POINTWISE, Image, image_of, is_blockable, plain_products
from ..rewriter import BodyRewriter
from ..slices import slice_of
from ..uses import count_uses, variables
from .merge_estimate import Window, copying, merging_gains
from .parallel_packs import Packs, Step, Uses, Values


@dataclass(frozen=True, slots=True)
class MergeConvolutions(Pass):
    """Parallel convolutions with equal windows become one, and their results slices of its result.

    So do elementwise ops that are done to all of them, numbers for each channel included; where
    some are bounded and others not (a shortcut beside a branch with a relu), all are, by infinity.
    In blocks of channels the parts lie one after the other, so that `PlanMemory` needs no copies:
    each begins with a block of its own. It is done where an estimate says that it pays: for single
    images of known size, which `ConvertLayout` will put in blocks.

    >>> from dataclasses import replace
    >>> from unity.script import parse, print_module
    >>> from unity.transform.graph import EliminateDeadCode
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 1, 64, 8, 8]) -> f32[Tensor, 1, 24, 8, 8]:
    ...     y = R.nn.max_pool2d(x)
    ...     a = R.nn.max_pool2d(R.nn.relu(R.nn.conv2d(y, R.const("a"))))
    ...     b = R.nn.conv2d(y, R.const("b"))
    ...     return R.concat((b, a), axis=1)
    ... ''', {"a": np.ones((8, 64, 1, 1), np.float32), "b": np.ones((16, 64, 1, 1), np.float32)})
    >>> ctx = Context()
    >>> ctx = replace(ctx, target=replace(ctx.target, vector_bits=256))
    >>> after = EliminateDeadCode()(MergeConvolutions()(before, ctx), ctx)
    >>> print(print_module(after), end="")
    @script.function
    def main(x: f32[Tensor, 1, 64, 8, 8]) -> f32[Tensor, 1, 24, 8, 8]:
        y = R.nn.max_pool2d(x)
        merged = R.nn.conv2d(y, R.const("a_b"))
        merged_1 = R.maximum(merged, R.const("lowest"))
        relu = R.strided_slice(merged_1, axes=(1,), begin=(0,), end=(8,))
        a = R.nn.max_pool2d(relu)
        b = R.strided_slice(merged_1, axes=(1,), begin=(8,), end=(24,))
        concat = R.concat((b, a), axis=1)
        return concat
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, where registers hold 4 lanes or more."""
        lanes = ctx.target.vector_bits // FLOAT32.bits
        if lanes < 4:
            return module

        def merge(f: Function) -> Function:
            groups = _Finder(f, lanes, ctx.target).groups()
            return _Merger(module, groups).function(f) if groups else f

        return map_functions(module, merge)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A convolution that could be one of several.

    Attributes:
        var: Its result.
        call: Of `nn.conv2d`.
        weight: Its constant.
        out: Its result's shape.
    """

    var: Var
    call: Call
    weight: Constant
    out: Image


@dataclass(frozen=True, slots=True)
class _Group:
    """Convolutions that become one, and what is done to all of them.

    Attributes:
        branches: In the order that their results lie in.
        rooms: Channels that each takes: whole blocks.
        steps: What is done to the result.
        packs: Which pack each variable is in.
    """

    branches: tuple[_Branch, ...]
    rooms: tuple[int, ...]
    steps: tuple[Step, ...]
    packs: dict[Var, Values]


class _Finder:
    """Carries what uses each variable of a function."""

    def __init__(self, f: Function, lanes: int, target: Target) -> None:
        self.function = f
        self.lanes = lanes
        self.target = target
        self.alone = plain_products(f, target)
        self.bindings = [
            b for block in f.body.blocks for b in block.bindings if isinstance(b, VarBinding)
        ]
        users: dict[Var, list[VarBinding]] = {}
        for binding in self.bindings:
            for var in dict.fromkeys(variables(binding.value)):
                users.setdefault(var, []).append(binding)
        self.uses = Uses(users, count_uses(f.body))
        self.place = {b.var: i for i, b in enumerate(self.bindings)}

    def groups(self) -> list[_Group]:
        """Those that are worth merging."""
        alike: dict[object, list[_Branch]] = {}
        for binding in self.bindings:
            branch = self.branch(binding)
            if branch is not None:
                shape = branch.weight.data.shape
                key = (branch.call.args[0], branch.call.attrs, shape[1:])
                alike.setdefault(key, []).append(branch)
        found = (self.group(branches) for branches in alike.values() if len(branches) > 1)
        return [g for g in found if g is not None]

    def branch(self, binding: VarBinding) -> _Branch | None:
        """A convolution of a single image of known size that there will be blocks for."""
        match binding.value:
            case Call(Op("nn.conv2d"), (Var() as x, Constant() as weight)) as call:
                image, out = image_of(x), image_of(binding.var)
            case _:
                return None
        if image is None or out is None or image.pixels is None or image.batch != 1:
            return None
        plain = call.attrs.get("algorithm") == "gemm" or call.attrs["groups"] != 1
        if (
            plain
            or not self.uses.count.get(binding.var)
            or binding.var in self.alone
            or weight.data.dtype != np.float32
        ):
            return None
        blockable = is_blockable(call, image, out, self.lanes)
        return _Branch(binding.var, call, weight, out) if blockable else None

    def group(self, branches: Sequence[_Branch]) -> _Group | None:
        """The branches as a group, if that pays."""
        last = self.packed(branches)[1]
        order = sorted(range(len(last)), key=lambda i: self.rank(last[i]))
        found, last = self.packed([branches[i] for i in order])
        return found if self.gains(found, last) > 0 else None

    def packed(self, branches: Sequence[_Branch]) -> tuple[_Group, Values]:
        """The branches in an order, and the last values that are one."""
        rooms = tuple(-(-b.out.channels // self.lanes) * self.lanes for b in branches)
        channels = [b.out.channels for b in branches]
        packs = Packs(tuple(b.var for b in branches), channels, rooms, self.uses)
        steps = tuple(packs.steps(POINTWISE))
        return _Group(tuple(branches), rooms, steps, dict(packs.pack_of)), packs.last

    def rank(self, var: Var) -> int:
        """First what ends a concatenation, last what begins one: they overlap without a copy."""
        for user in self.uses.users.get(var, ()):
            match user.value:
                case Call(Op("concat"), (Tuple(fields),)) if fields[0] is var:
                    return 1
                case Call(Op("concat"), (Tuple(fields),)) if fields[-1] is var:
                    return -1
                case _:
                    pass
        return 0

    def gains(self, group: _Group, last: Values) -> float:
        """Cycles that are saved, all things considered."""
        first = group.branches[0]
        image = image_of(first.call.args[0])
        assert image is not None
        assert image.pixels is not None
        height, width = first.out.sizes
        assert isinstance(height, int)
        assert isinstance(width, int)
        _, inputs, *taps = first.weight.data.shape
        window = Window(height, width, inputs * taps[0] * taps[1], inputs * image.pixels * 4)
        blocks = [room // self.lanes for room in group.rooms]
        gained = merging_gains(blocks, window, self.target)
        free = True
        for var, room in zip(last, group.rooms, strict=True):
            for user in self.uses.users.get(var, ()):
                joined = (
                    user.value.callee == Op("concat") if isinstance(user.value, Call) else False
                )
                if joined and free and self.rank_of(var, user):
                    free = False
                elif joined or self.would_fuse(var, user):
                    gained -= copying(room * height * width * 4, self.target)
        return gained

    def rank_of(self, var: Var, user: VarBinding) -> bool:
        """Whether a value begins or ends a concatenation."""
        match user.value:
            case Call(_, (Tuple(fields),)):
                return var in (fields[0], fields[-1])
            case _:
                return False

    def would_fuse(self, var: Var, user: VarBinding) -> bool:
        """Whether an elementwise user would be done as the value is written; as a part, it is not.

        It is done with the last of its operands that there is.
        """
        value = user.value
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return False
        others = [a for a in value.args if isinstance(a, Var) and a is not var]
        here = self.place.get(var, 0)
        later = any(self.place.get(a, -1) > here for a in others)
        return value.callee.name in POINTWISE and not later


class _Merger(BodyRewriter):
    """Carries the merged results made so far."""

    def __init__(self, module: IRModule, groups: Sequence[_Group]) -> None:
        super().__init__(module)
        self.group_of = {var: g for g in groups for var in g.packs}
        self.made: dict[Values, Var] = {}

    def rewrite(self, var: Var, value: Expr) -> Expr:
        group = self.group_of.get(var)
        if group is None:
            return value
        pack = group.packs[var]
        if pack not in self.made:
            self.make(group)
        index = pack.index(var)
        begin = sum(group.rooms[:index])
        out = group.branches[index].out
        return slice_of(self.made[pack], 1, begin, begin + out.channels)

    def make(self, group: _Group) -> None:
        """The convolution of all branches, and what is done to its result."""
        first = group.branches[0]
        rows = [
            np.pad(b.weight.data, ((0, room - b.out.channels), (0, 0), (0, 0), (0, 0)))
            for b, room in zip(group.branches, group.rooms, strict=True)
        ]
        name = "_".join(b.weight.name or "weight" for b in group.branches)
        weight = Constant(np.concatenate(rows), name)
        call = Call(Op("nn.conv2d"), (self.atom(first.call.args[0]), weight), first.call.attrs)
        self.made[tuple(b.var for b in group.branches)] = self.emit(call, "merged", first.call.span)
        for step in group.steps:
            args = tuple(self.made[a] if isinstance(a, tuple) else a for a in step.args)
            done = Call(step.callee, args, step.attrs, first.call.span)
            self.made[step.results] = self.emit(done, "merged", first.call.span)
