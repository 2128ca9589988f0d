"""The metadata of a text: the objects, constants above all, that ``meta[...][...]`` stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unity.errors import Span, UnityError
from unity.ir.dtype import Array

from ..saved.objects import Objects
from ..saved.plain import attributes_of, constant_of, plain
from ..schema import signature
from ..syntax import Attributes, AttrValue, Ignored, Record

_CONSTANT, _DEVICE = "relay.Constant", "VirtualDevice"


@dataclass(slots=True)
class Metadata:
    """What ``meta`` stands for in a text.

    Attributes:
        objects: The graph of objects in the metadata section, if there is one.
        sections: Where in it the objects of each kind are.
        constants: What the caller gave in place of ``meta[relay.Constant]``.
        ignored: What was read and is in no attributes.
    """

    objects: Objects | None = None
    sections: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    constants: Sequence[Array] = ()
    ignored: list[Ignored] = field(default_factory=list[Ignored])
    _made: dict[int, Array] = field(default_factory=dict[int, Array])

    @classmethod
    def of(cls, objects: Objects | None, constants: Sequence[Array] = ()) -> Metadata:
        """The metadata of a section.

        Raises:
            UnityError: It is no map from kinds to arrays of objects.
        """
        if objects is None:
            return cls(constants=constants)
        root = objects.node(objects.root)
        found = {}
        for key, index in objects.entries(root).items():
            found[key] = objects.items(objects.node(index))
        return cls(objects, found, constants)

    def constant(self, key: str, index: int, span: Span) -> Array:
        """The tensor that a reference stands for; one object is one array.

        Raises:
            UnityError: There is none.
        """
        if key != _CONSTANT:
            raise UnityError(f"meta[{key}] is no expression", span, f"meta[{_CONSTANT}] would be")
        if self.objects is None and self.constants:
            if index >= len(self.constants):
                raise UnityError(
                    f"meta[{key}][{index}] of {len(self.constants)} constants that were given", span
                )
            return self.constants[index]
        objects, place = self._place(key, index, span)
        if place not in self._made:
            self._made[place] = constant_of(objects, place)
        return self._made[place]

    def attribute(self, key: str, index: int, span: Span) -> AttrValue:
        """The value of an attribute that is a reference.

        Raises:
            UnityError: There is no such object.
        """
        if self.objects is None and key == _DEVICE:  # which says nothing to us: nothing is lost
            return Record(key)
        objects, place = self._place(key, index, span)
        return plain(objects, place)

    def attributes(self, key: str, index: int, span: Span, operator: str = "") -> Attributes:
        """All attributes of a call or a function, kept as one object.

        Args:
            key: The object's kind.
            index: Its number among those of its kind.
            span: Where it is referred to.
            operator: What is called; empty for a function's attributes.

        Raises:
            UnityError: There is no such object, or it is something else.
        """
        objects, place = self._place(key, index, span)
        called = signature(operator)
        if called is not None:
            return attributes_of(
                objects, objects.node(place), operator, called.fields, self.ignored
            )
        found = plain(objects, place)
        if not isinstance(found, dict):
            raise UnityError(f"meta[{key}][{index}] holds no attributes", span)
        return found

    def _place(self, key: str, index: int, span: Span) -> tuple[Objects, int]:
        if self.objects is None:
            raise UnityError(
                f"meta[{key}][{index}] is not in the text, which has no metadata section",
                span,
                "it was printed without its constants: save it by "
                "mod.astext(show_meta_data=True), or tvm.ir.save_json(mod)",
            )
        places = self.sections.get(key, ())
        if index >= len(places):
            raise UnityError(
                f"meta[{key}][{index}] of {len(places)} such objects in the metadata section",
                span,
                "the file may be damaged",
            )
        return self.objects, places[index]
