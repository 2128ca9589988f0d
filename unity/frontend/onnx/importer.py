"""ONNX to a module: walks the nodes in order and lets each family's converter emit its part.

Comes in: a model. Goes out: an `IRModule` with one graph function ``main``. Dynamic dims are
symbols by their ONNX names. Every node that Unity lacks is reported, all at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx

from unity.errors import InternalError, UnityError, UnsupportedError
from unity.frontend.broadcasting import Broadcasts
from unity.frontend.emission import UNKNOWN_RANK, Gap
from unity.frontend.sizes import Sizes
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dim, Dynamic, Symbol, symbols_of
from unity.ir.dtype import FLOAT32, Array
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.module import IRModule
from unity.ir.symbols.input_dims import changed_inputs, check_form
from unity.ir.types import Shape, TensorType, Type
from unity.ir.visit import type_symbols
from unity.op.builder import GraphBuilder, identifier
from unity.op.infer import infer_type

from .expand import expand, node_types
from .faults import OF_THE_MACHINE, check_given, fault, of_converter, remedy
from .ml.maps import map_inputs
from .node import Node, Outcome, Value
from .reading.declared import ShapeSpec, check_output, declared_type, dim_params
from .reading.graphs import describe, sorted_nodes, subgraphs
from .reading.load import Model, check_signature, load_model, name_of
from .reading.tensors import array_of, check_declared
from .sequences.held import Form, Held
from .sequences.types import declared_form, given_form, input_type, taken
from .strings import (
    MOVING,
    STRING,
    Vocabulary,
    is_strings,
    require_strings,
    take_strings,
    texts_of,
)
from .table import converter_of, is_of_onnx, is_registered
from .text.steps import CONVERTERS as STEPS
from .text.steps import parsed


def from_onnx(
    source: str | Path | bytes | onnx.ModelProto,
    *,
    shapes: Mapping[str, ShapeSpec] | None = None,
    constants: Mapping[str, Array] | None = None,
    dynamic: Dynamic | None = None,
    name: str = "main",
) -> IRModule:
    """The module of an ONNX model.

    Args:
        source: A path, the bytes of a file, or a model. External data is read only beside a path.
            Large weights are mapped, not copied: the files must not be written to while the module
            is in use (`unity.ir.arrays.mapped`); replacing or deleting them is fine.
        shapes: Shapes to take for some inputs in place of the model's: an int fixes a dim, a string
            names it, None leaves it as the model says.
        constants: Inputs to fix to a value: they are no parameters then. Shapes and axes may
            stay inputs, but programs are faster where they are known.
        dynamic: Dims to change after that: ``{"x": {2: 32}}`` makes the third axis of `x` 32,
            ``{"n": 8}`` the symbol n everywhere. The nodes are converted with these.
        name: What the graph function is called.

    Returns:
        A module with one graph function; its attributes ``input_names`` and ``output_names`` are
        the model's own names.

    Raises:
        UnityError: The model is damaged or ill-formed, or was written to while it was read.
        UnsupportedError: It needs what Unity lacks; lists every gap.
        InternalError: Something of Unity's own broke; the message names the node.
    """
    try:
        return _imported(load_model(source), shapes, constants, dynamic, name)
    except (UnityError, *OF_THE_MACHINE):
        raise
    except Exception as error:
        raise fault(error, name_of(source)) from error


def _imported(
    model: Model,
    shapes: Mapping[str, ShapeSpec] | None,
    constants: Mapping[str, Array] | None,
    dynamic: Dynamic | None,
    name: str,
    specializes: bool = False,
) -> IRModule:
    kinds = node_types(model.proto.graph)
    lacking = {(domain, op) for domain, op in kinds if converter_of(domain, op) is None}
    missing: list[str] = []
    if lacking:
        model = expand(model, lacking)
        missing = _without_converter(model)
    if missing:
        raise _unsupported(model, [*missing, *_other_gaps(model, shapes, constants, dynamic)])
    builder = GraphBuilder()
    graph = GraphImporter(model, builder)
    graph.specializes = specializes
    inputs = _converted(graph, shapes, constants, dynamic)
    if graph.gaps and not specializes and any(UNKNOWN_RANK in gap for gap in graph.gaps):
        return _imported(model, shapes, constants, dynamic, name, specializes=True)
    if graph.gaps:
        raise _unsupported(model, graph.gaps)
    outputs = [graph.output(o) for o in model.proto.graph.output]
    model.storage.require_unchanged()
    names = tuple(o.name for o in model.proto.graph.output)
    attrs = Attrs(source=model.name, input_names=tuple(inputs), output_names=names)
    attrs = attrs.with_(**graph.host_forms([*inputs, *graph.derived], names))
    result = outputs[0] if len(outputs) == 1 else Tuple(tuple(outputs))
    return IRModule({name: builder.finish(result, attrs=attrs)})


def _unsupported(model: Model, gaps: Sequence[str]) -> UnsupportedError:
    return UnsupportedError(f"{model.name} needs what Unity does not implement", list(gaps))


def _converted(
    graph: GraphImporter,
    shapes: Mapping[str, ShapeSpec] | None,
    constants: Mapping[str, Array] | None,
    dynamic: Dynamic | None,
) -> list[str]:
    """Convert a model's graph; the names of its inputs."""
    proto = graph.model.proto.graph
    graph.add_initializers(proto)
    for name, array in (constants or {}).items():
        graph.values[name] = Constant(np.asarray(array), name)
    inputs = _add_inputs(graph, dict(shapes or {}), dynamic)
    graph.convert(proto)
    return inputs


def _other_gaps(
    model: Model,
    shapes: Mapping[str, ShapeSpec] | None,
    constants: Mapping[str, Array] | None,
    dynamic: Dynamic | None,
) -> Sequence[str]:
    """What else a model needs that has nodes without a converter, as far as can be seen."""
    graph = GraphImporter(model, GraphBuilder())
    with suppress(UnityError):  # what it is told comes before other mistakes
        _converted(graph, shapes, constants, dynamic)
    return [gap for gap in graph.gaps if UNKNOWN_RANK not in gap]


def _without_converter(model: Model) -> list[str]:
    """The nodes without a converter, nested graphs included."""
    gaps: list[str] = []

    def look(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            if converter_of(node.domain, node.op_type) is None:
                gaps.append(f"{describe(node)}, {_origin(model, node)}")
            for inner in subgraphs(node):
                look(inner)

    look(model.proto.graph)
    return gaps


def _origin(model: Model, node: onnx.NodeProto) -> str:
    domain = node.domain or "ai.onnx"
    version = model.opsets.get("" if domain == "ai.onnx" else domain)
    return f"domain {domain}, opset {version}"


def _add_inputs(
    graph: GraphImporter, shapes: dict[str, ShapeSpec], dynamic: Dynamic | None
) -> list[str]:
    """Parameters for the inputs that are no initializers; their names in the model."""
    given = [i for i in graph.model.proto.graph.input if i.name not in graph.values]
    known = {p for i in given for p in dim_params(i)}
    graph.builder.reserve_symbols(*known)
    graph.maps.update(map_inputs(graph.model.proto.graph))
    kinds: dict[str, Type] = {}
    for info in given:
        form = declared_form(info.type, f"the input {info.name!r}")
        if info.name in graph.maps:
            kinds[info.name] = TensorType((1, len(graph.maps[info.name])), FLOAT32)
        elif form is not None:
            kinds[info.name] = input_type(graph.builder, info.name, form)
            graph.given_forms[info.name] = form
        else:
            kinds[info.name] = declared_type(info, shapes.pop(info.name, None), graph.builder)
    names = list(kinds)
    if shapes:
        raise UnityError(
            f"{graph.model.name} has no input {', '.join(map(repr, shapes))}",
            hint=f"its inputs are {', '.join(map(repr, names))}",
        )
    if dynamic is not None:
        check_form(dynamic)
        own = {identifier(n): n for n in reversed(names)}  # parameters are called by identifiers
        wanted = {n if n in kinds else own.get(n, n): change for n, change in dynamic.items()}
        kinds = changed_inputs(kinds, wanted)
    for input_name, kind in kinds.items():
        value = graph.builder.param(input_name, kind)
        form = graph.given_forms.get(input_name)
        node = Node(onnx.NodeProto(name=input_name, op_type="Identity"), graph, 1)
        graph.define(input_name, value if form is None else form.unpacked(node, value))
    graph.strings.update(i.name for i in given if i.type.tensor_type.elem_type == STRING)
    graph.given = tuple(names)
    return names


class GraphImporter:
    """Converts one graph; `inner` those of its control flow, which see its values.

    Attributes:
        values: What each name stands for so far.
        strings: The names of those that are strings, which stand for their codes.
        vocabulary: Of the model's strings.
        maps: The keys of those that are maps, which stand for their values.
        held: The sequences and the optional values.
        given_forms: How those that are inputs of the model are passed.
        taken_layouts: How callers take those that are its outputs.
        steps: What is worked out before the program runs (`unity.runtime.host_forms.steps`).
        derived: What it takes of that behind its inputs, by name: a step and an output.
        words: The model's own strings by name, their shape and they in a row.
        specializes: Whether a branch that takes an axis away is assumed to be taken (`flow`).
        bound: The symbols that have the values of some integer tensors' elements.
        joined: For vectors that were put together, the parts.
        equated: For truth values that say whether two sizes are equal, the sizes.
        compared: The same of whether the first is less.
        gaps: What was found missing.
    """

    def __init__(
        self, model: Model, builder: GraphBuilder, outer: GraphImporter | None = None
    ) -> None:
        self.model = model
        self.builder = builder
        self.outer = outer
        self.values: dict[str, Value] = {}
        self.strings: set[str] = set()
        self.maps: dict[str, tuple[str, ...] | tuple[int, ...]] = {}
        self.held: dict[str, Held] = {}
        self.given_forms: dict[str, Form] = {}
        self.taken_layouts: dict[str, str] = {}
        self.steps: list[AttrValue] = []
        self.derived: dict[str, tuple[int, int]] = {}
        self.words: dict[str, tuple[AttrValue, AttrValue]] = {}
        self.given: tuple[str, ...] = ()
        self.specializes: bool = outer is not None and outer.specializes
        self.broadcasts: Broadcasts = Broadcasts() if outer is None else outer.broadcasts.inner()
        self.vocabulary: Vocabulary = Vocabulary() if outer is None else outer.vocabulary
        self.bound: dict[Expr, Shape] = {} if outer is None else dict(outer.bound)
        self.joined: dict[Expr, tuple[Value, ...]] = {} if outer is None else dict(outer.joined)
        self.equated: dict[Expr, tuple[Dim, Dim]] = {} if outer is None else dict(outer.equated)
        self.compared: dict[Expr, tuple[Dim, Dim]] = {} if outer is None else dict(outer.compared)
        self.gaps: list[str] = [] if outer is None else outer.gaps
        self._poisoned: set[str] = set()

    def inner(self) -> GraphImporter:
        """The importer of a nested graph, which grows a nested body."""
        return GraphImporter(self.model, self.builder.child(), self)

    def scope(self, given: Mapping[str, Outcome]) -> GraphImporter:
        """The importer of the same body in which names stand for more."""
        found = GraphImporter(self.model, self.builder, self)
        for name, value in given.items():
            found.define(name, value)
        return found

    def trial(self) -> GraphImporter:
        """The importer of a nested graph that is thrown away: its gaps and names are its own."""
        found = GraphImporter(self.model, self.builder.trial(), self)
        found.gaps = []
        return found

    def value(self, name: str) -> Value:
        """What a name stands for.

        Raises:
            Gap: It was made by a node that could not be converted.
        """
        found = self.outcome(name)
        if isinstance(found, Held):
            raise Gap("a sequence, or a value that may be absent, where it reads a tensor")
        return found

    def outcome(self, name: str) -> Outcome:
        """What a name stands for, which may be no tensor.

        Raises:
            Gap: It was made by a node that could not be converted.
        """
        if name in self.values:
            return self.values[name]
        if name in self.held:
            return self.held[name]
        if name in self._poisoned:
            raise Gap("")
        if self.outer is not None:
            if name in self.outer.strings:
                raise Gap("strings within an If, a Loop or a Scan")
            return self.outer.outcome(name)
        raise UnityError(f"{name!r} is made by nothing")

    def add_initializers(self, graph: onnx.GraphProto) -> None:
        """Constants for the initializers, shared by all who read them."""
        if graph.sparse_initializer:
            raise UnsupportedError(f"{self.model.name} has", ["sparse initializers"])
        for tensor in graph.initializer:
            if is_strings(tensor):
                texts = texts_of(tensor, f"the initializer {tensor.name!r}")
                self.add_texts(tensor.name, texts)
                continue
            data = array_of(tensor, self.model.storage)
            self.values[tensor.name] = Constant(data, tensor.name)

    def add_texts(self, name: str, texts: Array) -> None:
        """A constant of strings."""
        self.values[name] = Constant(self.vocabulary.array(texts), name)
        self.strings.add(name)
        self.words[name] = (texts.shape, tuple(str(t) for t in texts.reshape(-1).tolist()))

    def host_value(self, name: str) -> AttrValue:
        """How what a name stands for is found before the program runs; None if it is not."""
        if name in self.words:
            return ("words", *self.words[name])
        if name in self.derived:
            return ("made", *self.derived[name])
        return ("given", self.given.index(name)) if name in self.given else None

    def derive(self, name: str, kind: TensorType, step: int, output: int) -> Expr:
        """What a step gives, as a parameter behind the model's inputs."""
        self.derived[name] = (step, output)
        return self.builder.param(name, kind)

    def convert(self, graph: onnx.GraphProto) -> None:
        """Convert the nodes of a graph, collecting what is missing."""
        for proto in sorted_nodes(graph, self.model.name):
            try:
                self._convert_node(proto)
            except Gap as gap:
                if told := str(gap) or self._unknown_attributes(proto):
                    self.gaps.append(f"{describe(proto)}, {_origin(self.model, proto)}: {told}")
                self._poisoned.update(proto.output)
            except (UnsupportedError, InternalError, *OF_THE_MACHINE):
                raise
            except UnityError as error:
                raise self._located(proto, error.message, error.hint) from error
            except Exception as error:
                where = f"{self.model.name}: {describe(proto)}"
                if is_registered(proto.domain, proto.op_type):
                    raise of_converter(error, where) from error
                raise fault(error, where) from error

    def _unknown_attributes(self, proto: onnx.NodeProto) -> str:
        """What can be told of a node whose inputs are missing, as those of gaps are."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        if converter_of(domain, proto.op_type) is None or not is_of_onnx(domain, proto.op_type):
            return ""
        unknown, _ = check_signature(proto, domain, self.model.opsets.get(domain, 1))
        return f"the attribute {', '.join(sorted(unknown))}" if unknown else ""

    def _located(self, proto: onnx.NodeProto, message: str, hint: str | None) -> UnityError:
        """An error at a node; one of a nested graph has said where it is already."""
        inner = message.removeprefix(f"{self.model.name}: ")
        told = f"{self.model.name}: {describe(proto)}: {inner}"
        return UnityError(told, None, remedy(hint))

    def _convert_node(self, proto: onnx.NodeProto) -> None:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        converter = converter_of(domain, proto.op_type)
        if converter is None:
            raise Gap("")
        node = Node(proto, self, self.model.opsets.get(domain, 1))
        unknown, lacking = list[str](), list[str]()
        if is_of_onnx(domain, proto.op_type):
            unknown, lacking = check_signature(proto, domain, node.version)
        if not any(proto.output):
            raise UnityError("names none of its outputs")
        if lacking:
            raise Gap(f"lacks the attribute {lacking[0]!r}")
        if proto.op_type != "DictVectorizer" and not self.maps.keys().isdisjoint(proto.input):
            raise Gap("an input that is a map")
        reads = bool(self.strings.intersection(proto.input))
        if reads and not domain and proto.op_type == "Cast":
            converter = parsed
        elif reads and not domain and not take_strings(proto.op_type, proto.input, self.strings):
            raise Gap("an input of strings")
        if self.outer is not None and proto.op_type in STEPS:
            raise Gap("strings or files within an If, a Loop or a Scan")
        found = converter(node)
        if is_registered(proto.domain, proto.op_type):
            check_given(found, f"{domain}::{proto.op_type}" if domain else proto.op_type)
        if node.unread or unknown:
            raise Gap(f"the attribute {', '.join(sorted({*node.unread, *unknown}))}")
        results: list[Outcome] = [*found] if isinstance(found, Sequence) else [found]
        if reads and not domain and proto.op_type in MOVING:
            node.string_outputs.update(range(len(results)))
        if node.string_outputs and self.outer is not None:
            raise Gap("strings within an If, a Loop or a Scan")
        self.strings.update(proto.output[k] for k in node.string_outputs if k < len(proto.output))
        if len(results) < len(proto.output) and any(proto.output[len(results) :]):
            raise Gap(f"output {len(results)}, {proto.output[len(results)]!r}")
        for name, value in zip(proto.output, results, strict=False):
            if name:
                self.define(name, value)

    def define(self, name: str, value: Outcome) -> None:
        """Let a name stand for something."""
        if isinstance(value, Held):
            self.held[name] = value
        else:
            self.values[name] = value

    def inline(
        self, graph: onnx.GraphProto, given: Mapping[str, Outcome] | None = None
    ) -> list[Outcome]:
        """What a nested graph's outputs stand for, its nodes converted into this body.

        `given` says what names stand for in it.
        """
        scope = self.scope(given or {})
        scope.add_initializers(graph)
        scope.convert(graph)
        found = [scope.outcome(o.name) for o in graph.output]
        for info, value in zip(graph.output, found, strict=True):
            if isinstance(value, Held):
                continue
            kind = (
                infer_type(value, self.builder.signatures)
                if not isinstance(value, Sizes)
                else value
            )
            if isinstance(kind, TensorType | Sizes) and kind.dtype is not None:
                check_declared(info, kind.dtype, f"the output {info.name!r} of a graph within")
        return found

    def output(self, info: onnx.ValueInfoProto) -> Expr:
        """The value of an output, checked against what the model declares of it."""
        value = self.outcome(info.name)
        if isinstance(value, Held):
            node = Node(onnx.NodeProto(name=info.name, op_type="Identity"), self, 1)
            whole, self.taken_layouts[info.name] = taken(node, value, info.type)
            return whole
        if isinstance(value, Sizes):
            value = Node(onnx.NodeProto(name=info.name, op_type="Shape"), self, 1).materialize(
                value
            )
        found = infer_type(value, self.builder.signatures)
        assert isinstance(found, TensorType)
        if info.name in self.strings:
            require_strings(info)
        elif info.name not in self.maps:
            check_output(info, found)
        return self._with_named_dims(value, found)

    def _with_named_dims(self, value: Expr, of: TensorType) -> Expr:
        """An output whose dims a caller can tell: sizes that a run brings about are symbols."""
        given = {s for p in self.builder.params for s in type_symbols(p.type)}
        name = Node(onnx.NodeProto(name="output", op_type="Identity"), self, 1)
        shape = of.shape if isinstance(of.shape, tuple) else ()
        dims = tuple(
            d
            if isinstance(d, int | Symbol) or given.issuperset(symbols_of(d))
            else name.sized(d, f"dim_{axis}")
            for axis, d in enumerate(shape)
        )
        return value if dims == shape else name.assert_shape(value, dims)

    def host_forms(self, inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, AttrValue]:
        """What callers give and get that is no tensor of numbers (`unity.runtime.host_forms`)."""
        found: dict[str, AttrValue] = {}
        for key, names in (("inputs", inputs), ("outputs", outputs)):
            found[f"string_{key}"] = tuple(k for k, n in enumerate(names) if n in self.strings)
            maps = ((k, *self.maps[n]) for k, n in enumerate(names) if n in self.maps)
            found[f"map_{key}"] = tuple(maps)
        forms, layouts = self.given_forms, self.taken_layouts
        found["held_inputs"] = tuple(
            given_form(k, forms[n]) for k, n in enumerate(inputs) if n in forms
        )
        found["held_outputs"] = tuple(
            (k, layouts[n]) for k, n in enumerate(outputs) if n in layouts
        )
        found["steps"], found["derived"] = tuple(self.steps), tuple(self.derived.values())
        if found["string_inputs"] or found["string_outputs"]:
            found["vocabulary"] = tuple(self.vocabulary.codes)
        return {key: value for key, value in found.items() if value}


__all__ = ["GraphImporter", "from_onnx"]
