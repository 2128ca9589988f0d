"""One node being converted: its inputs as expressions or sizes, its attributes, ways to emit code.

A converter takes a `Node` and gives the values of its outputs. What it does not implement it says
with `Node.gap`; an attribute that it never read counts as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx

from unity.errors import Span, UnityError
from unity.frontend.emission import Emission
from unity.frontend.run_time.vectors import Ints, bound, ints_of, length_of
from unity.frontend.sizes import Sizes, sizes_of_array
from unity.ir.dims import Dim
from unity.ir.dtype import BOOL, Array, dtype
from unity.ir.graph import Constant, Expr

from .reading.tensors import array_of
from .sequences.held import Held
from .strings import Vocabulary, is_strings, texts_of

if TYPE_CHECKING:
    from .importer import GraphImporter

Value: TypeAlias = "Expr | Sizes"
Outcome: TypeAlias = "Value | Held"
"""What a name stands for: a tensor, or a sequence or an optional value."""
Converter: TypeAlias = "Callable[[Node], Outcome | list[Value] | Sequence[Outcome]]"


class Node(Emission):
    """A node and the graph it stands in.

    Attributes:
        string_outputs: The outputs that are strings, given as their codes.
    """

    def __init__(self, proto: onnx.NodeProto, graph: GraphImporter, version: int) -> None:
        self.proto = proto
        self.graph = graph
        self.version = version
        self.attributes = {a.name: a for a in proto.attribute}
        self.unread = set(self.attributes)
        self.string_outputs: set[int] = set()
        label = proto.name or next((o for o in proto.output if o), proto.op_type)
        span = Span.of_node(graph.model.name, f"{label} ({proto.op_type})")
        super().__init__(graph.builder, graph.broadcasts, label, span)

    # Inputs.

    @property
    def count(self) -> int:
        """How many inputs are listed."""
        return len(self.proto.input)

    def has(self, index: int) -> bool:
        """Whether an input is given."""
        return index < self.count and bool(self.proto.input[index])

    def value(self, index: int) -> Value:
        """An input, as it is."""
        if not self.has(index):
            raise UnityError(f"lacks its input {index}")
        return self.graph.value(self.proto.input[index])

    def outcome(self, index: int) -> Outcome:
        """An input, which may be a sequence or an optional value."""
        if not self.has(index):
            raise UnityError(f"lacks its input {index}")
        return self.graph.outcome(self.proto.input[index])

    def tensor(self, index: int) -> Expr:
        """An input as a tensor."""
        value = self.value(index)
        return self.materialize(value) if isinstance(value, Sizes) else value

    def plain(self, value: Outcome) -> Expr:
        """A value as a tensor.

        Raises:
            Gap: It is none.
        """
        if isinstance(value, Held):
            raise self.gap("a sequence, or a value that may be absent, in place of a tensor")
        return self.materialize(value) if isinstance(value, Sizes) else value

    def has_strings(self, index: int) -> bool:
        """Whether an input is strings, given as their codes."""
        return self.has(index) and self.proto.input[index] in self.graph.strings

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's strings."""
        return self.graph.vocabulary

    def optional(self, index: int) -> Expr | None:
        """An input as a tensor, if it is given."""
        return self.tensor(index) if self.has(index) else None

    def sizes(self, index: int) -> Sizes | None:
        """An input whose elements are known: sizes, or a small constant of whole numbers."""
        return self.known_sizes(self.value(index))

    def known_sizes(self, value: Value) -> Sizes | None:
        """A value whose elements are known: sizes, or a small constant of whole numbers."""
        if isinstance(value, Sizes):
            return value
        return sizes_of_array(value.data) if isinstance(value, Constant) else None

    def parts(self, index: int, count: int) -> tuple[Dim | None, ...]:
        """What is known of the elements of a vector: sizes that it was put together of."""
        found: list[Dim | None] = []
        for part in self.graph.joined.get(self.tensor(index), ()):
            known = self.known_sizes(part)
            if known is not None:
                found += known.flat
            else:
                assert not isinstance(part, Sizes)
                found += [None] * length_of(self, part, "a part")
        return tuple(found) or (None,) * count

    def symbolic(self, *indices: int) -> list[Sizes] | None:
        """Some inputs as sizes, if all are known and one of them is not a plain constant."""
        if not any(isinstance(self.value(i), Sizes) for i in indices):
            return None
        found = [self.sizes(i) for i in indices]
        known = [f for f in found if f is not None]
        return known if len(known) == len(found) else None

    def dims(self, index: int, what: str) -> tuple[Dim, ...]:
        """An input that says sizes, which are not negative (a shape, counts), element by element.

        What is known only at run time is new symbols then, whose values the input's elements are.
        """
        found = self.sizes(index)
        if found is not None:
            return found.flat
        return self._bound(self.tensor(index), what)

    def _bound(self, tensor: Expr, what: str) -> tuple[Dim, ...]:
        if isinstance(tensor, Constant):
            raise UnityError(f"{what} must be a vector of whole numbers")
        known = self.graph.bound
        if tensor not in known and tensor in self.graph.joined:
            parts = [self.known_sizes(part) or part for part in self.graph.joined[tensor]]
            known[tensor] = tuple(
                d for p in parts for d in (p.flat if isinstance(p, Sizes) else self._bound(p, what))
            )
        elif tensor not in known:
            length_of(self, tensor, what)
            known[tensor] = bound(self, ints_of(self, tensor), what.rpartition(" ")[2])
        return known[tensor]

    def run_time(self, index: int) -> Ints:
        """An input of integers (or of whole numbers, as floats) to compute with."""
        return ints_of(self, self.tensor(index))

    def is_known(self, index: int) -> bool:
        """Whether the elements of an input are known during the import."""
        return self.sizes(index) is not None

    def ints(self, index: int, what: str) -> tuple[int, ...]:
        """An input that says plain integers, known during the import."""
        found = self.sizes(index)
        if found is None:
            raise self.gap(f"{what} known only at run time")
        numbers = tuple(d for d in found.flat if isinstance(d, int))
        if len(numbers) != len(found.flat):
            raise self.gap(f"{what} that depends on the symbol {found.flat}")
        return numbers

    def constant(self, index: int) -> Array | None:
        """An input's array, if it is known."""
        value = self.value(index)
        if isinstance(value, Sizes):
            return value.constant()
        return value.data if isinstance(value, Constant) else None

    def scalar(self, index: int, what: str) -> float:
        """An input that is one known number: an int if it is of an integer dtype."""
        array = self.constant(index)
        if array is None or array.size != 1:
            raise self.gap(f"{what} known only at run time")
        number = array.reshape(())
        return int(number) if dtype(array.dtype).is_int else float(number.astype(np.float64))

    # Types.

    def rank(self, index: int) -> int:
        """The rank of an input."""
        return len(self.shape_of(self.tensor(index)))

    def require_bool(self, index: int) -> None:
        """Refuse an input that is a condition, but no bool."""
        kind = self.dtype_of(self.tensor(index))
        if kind != BOOL:
            raise UnityError(f"its condition must be bool, got {kind}")

    # Attributes.

    def attribute(self, name: str) -> onnx.AttributeProto | None:
        """An attribute, noted as read."""
        self.unread.discard(name)
        return self.attributes.get(name)

    def ignore(self, *names: str) -> None:
        """Attributes that change nothing."""
        self.unread.difference_update(names)

    def int_of(self, name: str, default: int) -> int:
        """An int attribute."""
        found = self._typed(name, onnx.AttributeProto.INT)
        return default if found is None else int(found.i)

    def float_of(self, name: str, default: float) -> float:
        """A float attribute."""
        found = self._typed(name, onnx.AttributeProto.FLOAT)
        return default if found is None else float(found.f)

    def ints_of(self, name: str) -> tuple[int, ...] | None:
        """An attribute of ints, if it is given."""
        found = self._typed(name, onnx.AttributeProto.INTS)
        return None if found is None else tuple(int(i) for i in found.ints)

    def floats_of(self, name: str) -> tuple[float, ...] | None:
        """An attribute of floats, if it is given."""
        found = self._typed(name, onnx.AttributeProto.FLOATS)
        return None if found is None else tuple(float(f) for f in found.floats)

    def texts_of(self, name: str) -> tuple[str, ...] | None:
        """An attribute of strings, if it is given."""
        found = self._typed(name, onnx.AttributeProto.STRINGS)
        return None if found is None else tuple(s.decode(errors="replace") for s in found.strings)

    def text_of(self, name: str, default: str) -> str:
        """A string attribute."""
        found = self._typed(name, onnx.AttributeProto.STRING)
        return default if found is None else found.s.decode(errors="replace")

    def graph_of(self, name: str) -> onnx.GraphProto:
        """A graph attribute, which must be given."""
        found = self._typed(name, onnx.AttributeProto.GRAPH)
        if found is None or not found.HasField("g"):
            raise UnityError(f"lacks the graph {name!r}")
        return found.g

    def array_of(self, name: str) -> Array | None:
        """A tensor attribute."""
        found = self._typed(name, onnx.AttributeProto.TENSOR)
        if found is None:
            return None
        return array_of(found.t, self.graph.model.storage, f"the attribute {name!r}")

    def texts(self, name: str) -> Array | None:
        """An attribute that holds strings: a tensor, or its kin; None if neither does."""
        found = self.attributes.get(name)
        if found is not None and is_strings(found.t):
            return texts_of(self._typed_tensor(name), f"the attribute {name!r}")
        several = self.texts_of(f"{name}_strings")
        if several is not None:
            return np.array(several, object)
        alone = self._typed(f"{name}_string", onnx.AttributeProto.STRING)
        return None if alone is None else np.array(alone.s.decode(errors="replace"), object)

    def _typed_tensor(self, name: str) -> onnx.TensorProto:
        found = self._typed(name, onnx.AttributeProto.TENSOR)
        assert found is not None
        return found.t

    def _typed(self, name: str, kind: int) -> onnx.AttributeProto | None:
        found = self.attribute(name)
        if found is not None and found.type != kind:
            wanted = onnx.AttributeProto.AttributeType.Name(kind)
            raise UnityError(f"the attribute {name!r} must be of type {wanted}")
        return found
