"""Sessions: caches kept from call to call give what the model gives when it is handed them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

import unity
from tests.bench.transformer import gpt2, llama
from unity.caches import with_caches
from unity.errors import UnityError
from unity.runtime.executable import Executable
from unity.runtime.session import Session
from unity.script import parse, print_module
from unity.transform import Context, pipeline
from unity.transform.graph import LegalizeOps

Arrays = Mapping[str, npt.NDArray[Any]]
MODEL = gpt2(layers=2, width=64, heads=2, ffn=128, vocab=300)
PAST = [f"past_{which}{i}" for i in range(2) for which in "kv"]
BATCHED = """
b = dim("b")
p = dim("p")
t = dim("t")
@script.function
def main(
    x: f32[Tensor, b, t, 4], past: f32[Tensor, b, p, 4], sums: f32[Tensor, p, b]
) -> R.Tuple(f32[Tensor, b, 4], f32[Tensor, b, p + t, 4], f32[Tensor, p + t, b]):
    present = R.concat((past, R.multiply(x, 2.0)), axis=1)
    grown = R.concat((sums, R.permute_dims(R.sum(x, axis=(2,)), (1, 0))), axis=0)
    y = R.multiply(R.sum(present, axis=(1,)), R.expand_dims(R.sum(grown, axis=(0,)), axis=(1,)))
    result = (y, present, grown)
    return result
"""


@pytest.fixture(scope="module")
def plain() -> Executable:
    return unity.compile(MODEL)


@pytest.fixture(scope="module")
def keeping() -> Executable:
    return unity.compile(MODEL, caches=True)


@pytest.fixture(scope="module")
def batched() -> Executable:
    return unity.compile(parse(BATCHED), caches=True)


class Reference:
    """The plain model, handed its own caches."""

    def __init__(self, plain: Executable) -> None:
        self.plain = plain
        self.past: Arrays = {name: np.zeros((1, 2, 0, 32), np.float32) for name in PAST}

    def run(self, ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
        found = self.plain.run({"input_ids": ids, **self.past})
        self.past = {name: found[name.replace("past", "present")] for name in PAST}
        return found["logits"]


def tokens(rng: np.random.Generator, count: int) -> npt.NDArray[Any]:
    return rng.integers(0, 300, (1, count))


def logits(session: Session, ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    (found,) = session.run({"input_ids": ids}).values()
    return found


def close(got: npt.NDArray[Any], want: npt.NDArray[Any]) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_many_steps_give_what_the_model_gives(plain: Executable, keeping: Executable) -> None:
    rng, reference = np.random.default_rng(0), Reference(plain)
    session = keeping.session(capacity=64)
    for count in [9, *[1] * 20, 5, 1, 2, *[1] * 8]:
        ids = tokens(rng, count)
        close(logits(session, ids), reference.run(ids))
    assert session.length == 45
    caches = session.caches()
    assert list(caches) == PAST
    for name, want in reference.past.items():
        close(caches[name], want)


def test_nothing_of_a_cache_is_copied(keeping: Executable) -> None:
    """A call takes no memory that grows with the room."""
    few, much = (keeping.peak_bytes(T=1, P=5, room=n) for n in (10, 10_000))
    assert few == much
    assert keeping.native() == {"main": "native"}


def test_the_bytecode_writes_in_place_too(plain: Executable, keeping: Executable) -> None:
    rng, reference = np.random.default_rng(1), Reference(plain)
    session = Session(
        lambda *args: keeping._vm.run("main", args), keeping.program.function("main"), 16
    )
    for count in (3, 1, 4):
        ids = tokens(rng, count)
        close(logits(session, ids), reference.run(ids))


def test_sessions_are_independent(plain: Executable, keeping: Executable) -> None:
    rng = np.random.default_rng(2)
    pairs = [(keeping.session(30), Reference(plain)) for _ in range(3)]
    for _ in range(4):
        for session, reference in pairs:
            ids = tokens(rng, int(rng.integers(1, 5)))
            close(logits(session, ids), reference.run(ids))


def test_a_fork_goes_on_by_itself(plain: Executable, keeping: Executable) -> None:
    rng, reference = np.random.default_rng(3), Reference(plain)
    session, prompt, next_, other = keeping.session(12), *(tokens(rng, n) for n in (5, 1, 1))
    close(logits(session, prompt), reference.run(prompt))
    fork = session.fork()
    wanted = reference.run(next_)
    assert not np.allclose(logits(fork, other), wanted)
    close(logits(session, next_), wanted)
    assert (session.length, fork.length) == (6, 6)


def test_a_reset_forgets_rows(keeping: Executable) -> None:
    rng = np.random.default_rng(4)
    session, prompt, ids = keeping.session(12), tokens(rng, 5), tokens(rng, 2)
    logits(session, prompt)
    first = logits(session, ids)
    session.reset(5)
    np.testing.assert_array_equal(logits(session, ids), first)
    session.reset()
    assert session.length == 0
    logits(session, prompt)
    np.testing.assert_array_equal(logits(session, ids), first)
    with pytest.raises(UnityError, match="can't go back to 8 rows of 7"):
        session.reset(8)
    with pytest.raises(UnityError, match="can't go back to -1"):
        session.reset(-1)


def test_caches_go_out_and_come_in(keeping: Executable) -> None:
    rng = np.random.default_rng(5)
    session, ids = keeping.session(12), tokens(rng, 1)
    logits(session, tokens(rng, 6))
    saved = session.caches()
    want = logits(session, ids)
    other = keeping.session(capacity=7)
    other.restore(saved)
    assert other.length == 6
    np.testing.assert_array_equal(logits(other, ids), want)
    saved[PAST[0]][:] = 0  # a copy: the session's own are as they were
    session.reset(6)
    np.testing.assert_array_equal(logits(session, ids), want)


def test_a_full_cache_is_refused_and_can_grow(keeping: Executable) -> None:
    rng = np.random.default_rng(6)
    session, prompt, ids = keeping.session(6), tokens(rng, 5), tokens(rng, 2)
    logits(session, prompt)
    with pytest.raises(UnityError) as caught:
        logits(session, ids)
    assert caught.value.message == (
        "the session's caches hold 6 rows; 5 are in use and this call adds 2"
    )
    assert "session.reserve" in (caught.value.hint or "")
    assert session.length == 5
    wide = keeping.session(20)
    logits(wide, prompt)
    session.reserve(7)
    assert session.capacity == 7
    np.testing.assert_array_equal(logits(session, ids), logits(wide, ids))
    with pytest.raises(UnityError, match="can't hold 7 rows in a capacity of 6"):
        session.reserve(6)


def test_errors_name_the_input(keeping: Executable, plain: Executable) -> None:
    session = keeping.session(8)
    with pytest.raises(UnityError, match="no caches before its first run"):
        session.caches()
    ids = np.zeros((1, 1), np.int64)
    cases: list[tuple[Any, str]] = [
        ({}, "missing input_ids"),
        ({"ids": ids}, "there is no input 'ids'"),
        ({"input_ids": ids, "past_k0": ids}, "the session itself keeps 'past_k0'"),
        ({"input_ids": ids.astype(np.int32)}, "expected dtype int64"),
        ({"input_ids": ids[0]}, "expected rank 2"),
        ([ids], "expected a dict"),
    ]
    for inputs, message in cases:
        with pytest.raises(UnityError, match=message):
            session.run(inputs)
    assert session.length == 0
    with pytest.raises(UnityError, match="main has no caches to keep"):
        plain.session()
    bad: list[Any] = [0, -1, 2.5, True]
    for capacity in bad:
        with pytest.raises(
            UnityError, match=r"capacity must be a positive int|capacity.: expected an integer"
        ):
            keeping.session(capacity)


def test_restored_caches_are_checked(keeping: Executable) -> None:
    session = keeping.session(8)
    good = {name: np.ones((1, 2, 3, 32), np.float32) for name in PAST}
    cases: list[tuple[dict[str, npt.NDArray[Any]], str]] = [
        ({k: v for k, v in good.items() if k != PAST[1]}, "missing 'past_v0'"),
        ({**good, "other": good[PAST[0]]}, "there is no cache 'other'"),
        ({**good, PAST[2]: np.ones((1, 2, 4, 32), np.float32)}, "'past_k1' must be"),
        ({**good, PAST[2]: np.ones((1, 2, 3, 32))}, "got float64"),
        ({name: np.ones((1, 2, 9, 32), np.float32) for name in PAST}, "9 rows are more than"),
    ]
    for caches, message in cases:
        with pytest.raises(UnityError, match=message):
            session.restore(caches)
    assert session.length == 0


def test_other_sizes_are_settled_by_the_first_call(batched: Executable) -> None:
    rng = np.random.default_rng(7)
    session = batched.session(10)
    steps = [rng.standard_normal((3, n, 4)).astype(np.float32) for n in (2, 1, 4)]
    for i, x in enumerate(steps):
        whole = np.concatenate(steps[: i + 1], axis=1)
        (y,) = session.run({"x": x}).values()
        close(y, (2 * whole).sum(1) * whole.sum((1, 2))[:, None])
    with pytest.raises(UnityError, match="b is 2 here, but the session's caches are of b = 3"):
        session.run({"x": steps[0][:2]})
    assert session.caches()["sums"].shape == (7, 3)
    session.reset()
    (y,) = session.run({"x": steps[0][:2]}).values()
    close(y, (2 * steps[0][:2]).sum(1) * steps[0][:2].sum((1, 2))[:, None])


@pytest.mark.long("compiles a decoder with caches for several threads")
@pytest.mark.rotated(2)
@pytest.mark.parametrize("batch", [1, 3])
def test_grouped_queries_with_rotary_embedding(batch: int, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    path = tmp_path / "llama.onnx"
    onnx.save(llama(1, 64, 4, 2, 96, 100, batch="B"), path)
    peer = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    session = unity.compile(str(path), caches=True).session(capacity=20)
    rng = np.random.default_rng(9)
    past = {name: np.zeros((batch, 2, 0, 16), np.float32) for name in PAST[:2]}
    names = [o.name for o in peer.get_outputs()]
    for count in (6, 1, 1, 4, 1):
        ids = rng.integers(0, 100, (batch, count))
        want = dict(zip(names, peer.run(None, {"input_ids": ids, **past}), strict=True))
        past = {name: want[name.replace("past", "present")] for name in past}
        close(logits(session, ids), want["logits"])
    for name, rows in session.caches().items():
        close(rows, past[name])


def test_repeated_heads_are_read_once() -> None:
    module = with_caches(unity.load(llama(1, 64, 4, 2, 96, 100, batch="B")), caches=True)
    found = print_module(pipeline().until(LegalizeOps).run(module, Context()))
    assert "kv_heads=2" in found
    assert "broadcast_to" not in found


def test_a_session_is_for_one_thread_at_a_time() -> None:
    inside, go = threading.Event(), threading.Event()
    code = unity.compile(parse(BATCHED), caches=True).program.function("main")

    def slow(*args: object) -> tuple[object, ...]:
        inside.set()
        assert go.wait(30)
        return args

    session, x = Session(slow, code, 8), {"x": np.zeros((1, 1, 4), np.float32)}
    worker = threading.Thread(target=session.run, args=(x,))
    worker.start()
    assert inside.wait(30)
    for busy in (lambda: session.run(x), session.reset, session.fork, session.caches):
        with pytest.raises(UnityError, match="in use by another thread"):
            busy()
    go.set()
    worker.join()
    assert session.length == 1


def test_sessions_run_at_the_same_time(plain: Executable, keeping: Executable) -> None:
    rng = np.random.default_rng(8)
    texts = [[tokens(rng, n) for n in (4, 1, 1, 2, 1)] for _ in range(4)]
    wanted = []
    for text in texts:
        reference = Reference(plain)
        wanted.append([reference.run(ids) for ids in text])
    got: dict[int, list[npt.NDArray[Any]]] = {}

    def talk(k: int) -> None:
        session = keeping.session(12)
        got[k] = [logits(session, ids) for ids in texts[k]]

    workers = [threading.Thread(target=talk, args=(k,)) for k in range(len(texts))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for k, want in enumerate(wanted):
        for a, b in zip(got[k], want, strict=True):
            close(a, b)
