"""TVM's JSON (``save_json``): objects by number, each with fields that are text or numbers again.

Nothing in the file is trusted: `Objects.of` checks its form, and each access checks what it finds.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unity.errors import Span, UnityError
from unity.ir.dtype import Array

from .params import one_tensor

_MOST_MET = 20_000


@dataclass(frozen=True, slots=True)
class Node:
    """An object.

    Attributes:
        index: Its number.
        key: Its type key, as today's TVM calls it; empty for a null.
        fields: Its fields as text.
        items: What it holds, if it is a container: numbers of objects.
        keys: The keys of a map from strings.
        text: What it says itself: a string, the name of an operator.
    """

    index: int
    key: str
    fields: Mapping[str, str]
    items: Sequence[int]
    keys: Sequence[str] | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Objects:
    """A graph of objects.

    Attributes:
        file: What messages call it.
        root: The number of the object that was saved.
        version: The TVM that saved it, as ``(0, 18)``; empty where it does not say.
    """

    file: str
    root: int
    version: tuple[int, ...]
    _nodes: Sequence[object]
    _arrays: Sequence[object]
    _made: dict[int, Node] = field(default_factory=dict[int, Node])

    def walk(self, root: Node) -> Walk:
        """A bound on how many objects are looked at for one value or type."""
        return Walk(self, root)

    @classmethod
    def of(cls, file: str, graph: object) -> Objects:
        """The objects in a parsed JSON.

        Raises:
            UnityError: It is not what ``save_json`` writes.
        """
        if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
            raise UnityError(
                f"{file}: JSON, but none of tvm.ir.save_json (it has no list of nodes)"
            )
        nodes, arrays = graph["nodes"], graph.get("b64ndarrays", [])
        root, attributes = graph.get("root"), graph.get("attrs", {})
        if type(root) is not int or not 0 <= root < len(nodes) or not isinstance(arrays, list):
            raise UnityError(f"{file}: its root or its arrays are damaged")
        version = attributes.get("tvm_version") if isinstance(attributes, dict) else None
        return cls(file, root, _version(version), nodes, arrays)

    @property
    def before_0_8(self) -> bool:
        """Whether TVM 0.7 or an older one saved it."""
        return bool(self.version) and self.version < (0, 8)

    def span(self, node: Node) -> Span:
        """The place of an object."""
        return Span.of_node(self.file, f"nodes[{node.index}] ({node.key[:60] or 'null'})")

    def error(self, node: Node, message: str, hint: str | None = None) -> UnityError:
        """An error at an object, to be raised."""
        return UnityError(message, self.span(node), hint)

    def node(self, index: int) -> Node:
        """The object of a number.

        Raises:
            UnityError: There is none, or it is damaged.
        """
        if index in self._made:
            return self._made[index]
        if not 0 <= index < len(self._nodes):
            raise UnityError(f"{self.file}: object {index} of {len(self._nodes)}")
        raw = self._nodes[index]
        place = Span.of_node(self.file, f"nodes[{index}]")
        if not isinstance(raw, dict) or not isinstance(raw.get("type_key", ""), str):
            raise UnityError("an object must be a map with a type_key", place)
        fields, items, keys = raw.get("attrs") or {}, raw.get("data") or [], raw.get("keys")
        if not isinstance(fields, dict) or not all(isinstance(v, str) for v in fields.values()):
            raise UnityError("the fields of an object must be text", place)
        if not isinstance(items, list) or not all(type(i) is int for i in items):
            raise UnityError("what a container holds must be numbers of objects", place)
        if keys is not None and not (
            isinstance(keys, list)
            and len(keys) == len(items)
            and all(isinstance(k, str) for k in keys)
        ):
            raise UnityError("a map needs as many keys as values", place)
        text = _own_text(raw, fields, place)
        made = Node(index, _todays_key(raw.get("type_key", "")), fields, items, keys, text)
        self._made[index] = made
        return made

    def number(self, node: Node, name: str) -> int:
        """A field that is an int.

        Raises:
            UnityError: It is missing or none.
        """
        text = node.fields.get(name, "")
        if not text.removeprefix("-").isdecimal() or len(text) > 20:
            raise self.error(node, f"its field {name!r} is {text[:40]!r}, expected an int")
        return int(text)

    def member(self, node: Node, name: str) -> Node:
        """A field that is an object.

        Raises:
            UnityError: It is missing or none.
        """
        index = self.number(node, name)
        if not 0 <= index < len(self._nodes):
            raise self.error(node, f"its field {name!r} is object {index} of {len(self._nodes)}")
        return self.node(index)

    def optional(self, node: Node, name: str) -> Node | None:
        """A field that is an object, or None if it is null or missing (in an older version)."""
        if name not in node.fields:
            return None
        found = self.member(node, name)
        return found if found.key else None

    def string(self, node: Node, name: str) -> str:
        """A field that is a string: as text, or as an object that is one.

        Raises:
            UnityError: It is missing.
        """
        text = node.fields.get(name)
        if text is None:
            raise self.error(node, f"it has no field {name!r}")
        if text.isdecimal() and int(text[:18]) < len(self._nodes):
            found = self.node(int(text[:18]))
            if found.key == "runtime.String" and found.text is not None:
                return found.text
        return text

    def items(self, node: Node) -> Sequence[int]:
        """What an array holds.

        Raises:
            UnityError: It is no array.
        """
        if node.key not in ("Array", ""):
            raise self.error(node, "expected an array")
        return node.items

    def members(self, node: Node, name: str) -> list[Node]:
        """A field that is an array, as objects."""
        return [self.node(i) for i in self.items(self.member(node, name))]

    def entries(self, node: Node) -> dict[str, int]:
        """A map from strings.

        Raises:
            UnityError: It is none.
        """
        if node.key != "Map":
            raise self.error(node, "expected a map")
        if node.keys is not None:
            return dict(zip(node.keys, node.items, strict=True))
        found = {}
        for key, value in self.pairs(node):
            text = self.node(key).text
            if text is None:
                raise self.error(node, "expected a map from strings")
            found[text] = value
        return found

    def pairs(self, node: Node) -> list[tuple[int, int]]:
        """A map from objects: keys and values stand one after the other.

        Raises:
            UnityError: It is none.
        """
        if node.key != "Map" or len(node.items) % 2:
            raise self.error(node, "expected a map")
        return list(zip(node.items[::2], node.items[1::2], strict=True))

    def array(self, node: Node, name: str) -> Array:
        """A field that is a tensor.

        Raises:
            UnityError: It is missing or damaged.
        """
        index = self.number(node, name)
        found = self._arrays[index] if 0 <= index < len(self._arrays) else None
        if not isinstance(found, str):
            raise self.error(node, f"its tensor is number {index} of {len(self._arrays)}")
        try:
            data = binascii.a2b_base64(found)
        except (binascii.Error, ValueError):
            raise self.error(node, "its tensor is no base64", "the file may be damaged") from None
        return one_tensor(data, self.span(node))


@dataclass(slots=True)
class Walk:
    """What one value is made of, so far: shared objects are met each time that they are held.

    A few dozen arrays that each hold the next one twice would else be looked at for ever.
    """

    objects: Objects
    root: Node
    met: int = 0

    def step(self) -> None:
        """Count one object.

        Raises:
            UnityError: They are too many.
        """
        self.met += 1
        if self.met > _MOST_MET:
            raise self.objects.error(self.root, f"it is made of more than {_MOST_MET} objects")


_RENAMED = {
    "relay.Module": "IRModule",
    "StrMap": "Map",
    "StringImm": "runtime.String",
    "tir.StringImm": "runtime.String",
    "IntImm": "IntImm",
    "tir.IntImm": "IntImm",
    "FloatImm": "FloatImm",
    "tir.FloatImm": "FloatImm",
    "Any": "tir.Any",
    "relay.Any": "tir.Any",
    "Variable": "tir.Var",
    "tir.SizeVar": "tir.Var",
    "relay.Op": "Op",
    "ir.Op": "Op",
    "relay.RefType": "RelayRefType",
    "relay.RelayRefType": "RelayRefType",
    "relay.TensorType": "TensorType",
    "relay.ir.Var": "relay.Var",
    "relay.Constructor": "Constructor",
    "relay.TypeData": "TypeData",
}
_SAME = (
    "GlobalVar",
    "GlobalTypeVar",
    "TypeVar",
    "TypeCall",
    "TupleType",
    "FuncType",
    "IncompleteType",
)


def _todays_key(key: str) -> str:
    """What an object's type is called since 0.7."""
    if key in _RENAMED:
        return _RENAMED[key]
    bare = key.removeprefix("relay.")
    return bare if bare in _SAME else key


def _own_text(raw: dict[str, object], fields: Mapping[str, str], place: Span) -> str | None:
    """What an object says itself: in ``repr_str``, in ``repr_b64``, or in a field of old."""
    text, packed = raw.get("repr_str"), raw.get("repr_b64", raw.get("repr_bytes"))
    if isinstance(text, str):
        return text
    if isinstance(packed, str):
        try:
            data = base64.b64decode(packed, validate=True)
            (length,) = struct.unpack_from("<Q", data)
            if length == len(data) - 8:
                return data[8:].decode()
        except (binascii.Error, struct.error, ValueError):
            pass
        raise UnityError("its text is damaged", place)
    if "global_key" in raw and isinstance(raw["global_key"], str):
        return raw["global_key"]
    key = raw.get("type_key")
    if key in ("StringImm", "tir.StringImm", "relay.Op"):
        return fields.get("value", fields.get("name"))
    return None


def _version(text: object) -> tuple[int, ...]:
    if not isinstance(text, str):
        return ()
    parts = text.split(".")[:2]
    return tuple(int(p) for p in parts) if all(p.isdecimal() and len(p) < 5 for p in parts) else ()
