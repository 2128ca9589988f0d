"""Damaged Relay files: each is read or refused by a clear `UnityError`, never a crash or a hang."""

import gzip
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from tests.frontend.relay.emitter import HEADER
from tests.frontend.relay.saved import Graph, metadata, parameters
from tests.frontend.relay.test_adts import TREE_LSTM
from tests.frontend.relay.test_networks import LSTM, QUANTIZED, quantized_constants
from tests.frontend.relay.test_saved import TEXT, WEIGHT, archive, convolution
from unity.errors import InternalError, UnityError
from unity.frontend.relay import from_relay
from unity.frontend.relay.read import read_relay
from unity.frontend.relay.saved.params import read_params

PROGRAM = (
    """#[version = "0.0.5"]
type Chain[A] { Link(A, Chain[A]), End }
def @main(%x: Tensor[(1, 3, ?, 8), float32], %layer.0.weight: Tensor[(4, 3, 3, 3), float32],
          %xs: List[(int32, bool)], Compiler="none") -> (Tensor[(1, 4), float32], int32) {
  %0 = nn.conv2d(%x, %layer.0.weight, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
  %1 = nn.bias_add(%0, meta[relay.Constant][0]) /* ty=Tensor[(1, 4, ?, 8), float32] */;
  let %y = mean(%1, axis=[2, 3]) * 2f + meta[relay.Constant][1];
  let %f = fn (%a: Chain[int32], Primitive=1) -> int32 {
    match (%a) { Link(%h, End) => %h, Link(_, %rest) => %f(%rest), End => 0 }
  };
  %2 = (%y, if (sum(%y).0 < 1.5e-3f) { %f(Link(1, End)) } else { @length(%xs) });
  let %cell = ref(%2.1);
  ref_write(%cell, -3);
  (strided_slice(%2.0, begin=[0, 0], end=[1, 4], slice_mode="end"), ref_read(%cell))
}
"""
    + metadata([np.ones(4, np.float32), np.ones((1, 4), np.float32)])
).encode()
_WORDS = [
    *(b"%", b"@", b"(", b")", b"{", b"}", b"[", b"]", b",", b";", b".", b"=", b"-", b'"', b"/*"),
    *(b"*/", b"?", b"1e999", b"99999999999999999999", b"-1", b"nan", b"float32", b"meta", b"let"),
    *(b"def", b"type", b"fn", b"nn.conv3", b"\xff", b"\0", b"\n", b"%0", b"@main", b"null", b"[]"),
]


def damaged(data: bytes, seed: int) -> bytes:
    """A file that was cut, whose bytes were flipped, or whose parts were moved or replaced."""
    rng = random.Random(seed)
    at = rng.randrange(len(data))
    match seed % 5:
        case 0:
            return data[:at]
        case 1:
            flipped = bytearray(data)
            for place in rng.sample(range(len(data)), min(len(data), 1 + seed % 7)):
                flipped[place] ^= 1 << rng.randrange(8)
            return bytes(flipped)
        case 2:
            return data[:at] + rng.choice(_WORDS) + data[at + rng.randrange(4) :]
        case 3:
            other = rng.randrange(len(data))
            return data[: min(at, other)] + data[max(at, other) :]
        case _:
            other, size = rng.randrange(len(data)), rng.randrange(40)
            return data[:at] + data[other : other + size] + data[at:]


def outcomes(
    read: Callable[[bytes], object],
    data: bytes,
    count: int,
    change: Callable[[bytes, int], bytes] = damaged,
) -> int:
    """How many of so many damaged files are refused; the others are read."""
    read(data)
    errors: list[UnityError] = []
    for seed in range(count):
        begin = time.process_time()
        try:
            read(change(data, seed))
        except UnityError as error:
            errors.append(error)
        assert time.process_time() - begin < 2, seed
    assert not any(isinstance(e, InternalError) for e in errors)
    assert all(10 < len(str(e)) < 3000 for e in errors)
    return len(errors)


_TOKEN = re.compile(r"%\w+|@\w+|[\w.]+")
_NUMBERS = ("0", "-1", "1", "2", "7", "5i64", "3f", "99999", "True")
_DTYPES = ("float32", "int32", "int8", "bool", "uint8", "int64", "float64")
_CALLED = (
    *("add", "nn.dense", "transpose", "nn.softmax", "reshape", "concatenate", "split", "exp"),
    *("qnn.quantize", "Cons", "Nil", "Some", "nn.conv3", "@hd", "@lstm", "@step"),
)


def altered(data: bytes, seed: int) -> bytes:
    """A program with one or two words replaced: numbers, dtypes, variables, what is called."""
    rng, text = random.Random(seed), data.decode()
    for _ in range(1 + seed % 2):
        words = list(_TOKEN.finditer(text))
        word = rng.choice(words)
        old, names = word[0], [w[0] for w in words]
        if old.startswith("%"):
            new = rng.choice([n for n in names if n.startswith("%")])
        elif old[0].isdecimal():
            new = rng.choice(_NUMBERS)
        elif old in _DTYPES:
            new = rng.choice(_DTYPES)
        else:
            new = rng.choice(_CALLED if text[word.end() : word.end() + 1] == "(" else names)
        text = text[: word.start()] + new + text[word.end() :]
    return text.encode()


def test_programs_that_say_something_else() -> None:
    """They are well formed more often than not, and wrong in what they mean."""
    for text, constants in ((LSTM, []), (QUANTIZED, quantized_constants()), (TREE_LSTM, [])):
        read = partial(from_relay, constants=constants)
        assert outcomes(read, (HEADER + text).encode(), 80, altered) > 40


def test_damaged_texts() -> None:
    code = PROGRAM[: PROGRAM.index(b"\n#[metadata]")]
    constants = [WEIGHT, WEIGHT]
    assert outcomes(lambda d: read_relay(d, constants=constants), code, 120) > 60
    assert outcomes(read_relay, PROGRAM, 60) > 20


def test_damaged_json() -> None:
    graph = convolution()
    assert outcomes(read_relay, graph.saved(len(graph.nodes) - 1).encode(), 120) > 60


def test_damaged_parameters_and_archives() -> None:
    held = parameters({"w": WEIGHT, "second": np.ones((), np.int64)})
    assert outcomes(read_params, held, 100) > 50
    packed = archive(src__relay_txt=TEXT.encode(), parameters__a_params=held)
    assert outcomes(read_relay, packed, 60) > 8


def test_every_number_of_an_object_may_be_wrong() -> None:
    graph = convolution()
    text = graph.saved(len(graph.nodes) - 1)
    for seed in range(60):
        rng = random.Random(seed)
        parts = text.split('"')
        places = [i for i, part in enumerate(parts) if part.isdecimal()]
        parts[rng.choice(places)] = str(rng.choice([0, -1, 1, 7, 10**6, 10**30]))
        with suppress(UnityError):
            read_relay('"'.join(parts).encode())


def test_objects_that_hold_the_next_one_twice() -> None:
    for container in ("Array", "TupleType"):
        graph = Graph()
        x = graph.var("x", (2,))
        top = graph.ints(1)
        if container == "TupleType":
            top = graph.tensor_type((2,))
        for _ in range(60):
            top = graph.array(top, top)
            if container == "TupleType":
                top = graph.add("relay.TupleType", fields=top)
        body = graph.call("nn.relu", x)
        if container == "Array":
            attrs = graph.add("relay.attrs.TransposeAttrs", axes=top)
            body = graph.call("transpose", x, attrs=attrs)
        else:
            fields = graph.nodes[x]["attrs"]
            assert isinstance(fields, dict)
            fields["type_annotation"] = str(top)
        root = graph.module((x,), body)
        with pytest.raises(UnityError, match="is made of more than"):
            read_relay(graph.saved(root).encode())


def test_an_archive_that_unpacks_to_very_much() -> None:
    packed = gzip.compress(bytes(1 << 25))
    with pytest.raises(UnityError, match="unpacks to more than"):
        read_relay(packed)
