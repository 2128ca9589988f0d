"""Libraries for C compute what the executable computes, refuse what it refuses, and stand alone."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.bench import cnn, recurrent, transformer
from tests.runtime.artifact.programs import on_tiles, same_in_another_process
from unity import runtime
from unity.errors import UnityError
from unity.runtime.executable import Executable
from unity.script import parse
from unity.transform.graph import CountNonzero

from .tensors import Exported, Failed, tensor

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no linker of the system"
)
PROGRAM = """
n = dim("n", min=1, max=64)
m = dim("m", multiple_of=2)
@script.function(attrs={"input_names": ("in/x",), "output_names": ("out:0", "sum:0")})
def main(x: f32[Tensor, n, m], w: f32[Tensor, m, 3]) -> R.Tuple(f32[Tensor, n, 3], f32[Tensor, m]):
    y = R.nn.relu(R.add(R.matmul(x, w), R.const("c")))
    return (y, R.sum(x, axis=(0,)))
@script.function
def negated(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.negative(x)
"""
C = np.asarray([1, -2, 3], np.float32)


def exported(exe: Executable, folder: Path, name: str = "model") -> Exported:
    header = exe.export_library(folder / f"lib{name}.so")
    assert header == folder / f"{name}.h"
    return Exported(folder / f"lib{name}.so")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return exported(unity.compile(parse(PROGRAM, {"c": C})), tmp_path_factory.mktemp("library"))


def inputs(n: int, m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    shapes = ((n, m), (m, 3))
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def outputs(n: int, m: int) -> list[np.ndarray]:
    return [np.empty((n, 3), np.float32), np.empty(m, np.float32)]


@pytest.mark.rotated(2)
@pytest.mark.parametrize(("n", "m"), [(1, 2), (5, 4), (64, 30), (3, 0)])
def test_it_computes(library: Exported, n: int, m: int) -> None:
    x, w = inputs(n, m)
    y, s = outputs(n, m)
    library.run([x, w], [y, s])
    np.testing.assert_allclose(y, np.maximum(x @ w + C, 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(s, x.sum(0), rtol=1e-4, atol=1e-5)
    assert library.shapes([x, w], [2, 1]) == [[n, 3], [m]]
    z = np.empty(n, np.float32)
    library.run([x[:, :1].copy().ravel() if m else np.zeros_like(z)], [z], "negated")
    if m:
        np.testing.assert_array_equal(z, -x[:, 0])


def test_wrong_tensors_are_told(library: Exported) -> None:
    x, w = inputs(4, 6)
    y, s = outputs(4, 6)
    for args, results, message in (
        ([x.astype(np.float64), w], [y, s], "input x is not float32"),
        ([x[0], w], [y, s], "input x has not 2 axes"),
        ([x.T, w], [y, s], "input x is not in C order"),
        ([x, w[:4].copy()], [y, s], "input w axis 0 is not m"),
        ([x, w[:, :2].copy()], [y, s], "input w axis 1 is not 3"),
        ([*inputs(65, 6)[:1], w], [y, s], "input x axis 0: n must be at least 1, at most 64"),
        ([x[:0], w], [y, s], "input x axis 0: n must be at least 1, at most 64"),
        ([*inputs(4, 5)], [y, s], "input x axis 1: m must be a multiple of 2"),
        ([x, w], [y[:3], s], "output out:0 axis 0 is not of the size that the inputs give it"),
        ([x, w], [y, s.astype(np.int32)], "output sum:0 is not float32"),
    ):
        with pytest.raises(Failed) as error:
            library.run(args, results)
        assert str(error.value) == message
    bad = tensor(x)
    bad.device_type = 2
    with pytest.raises(Failed, match="input x is not on the cpu"):
        library.run_tensors([bad, tensor(w)], [tensor(y), tensor(s)])
    bad = tensor(x)
    bad.data = None
    with pytest.raises(Failed, match="input x is NULL, or has no data"):
        library.run_tensors([bad, tensor(w)], [tensor(y), tensor(s)])
    bad = tensor(x)
    bad.byte_offset = 2
    with pytest.raises(Failed, match="input x is not aligned to its elements"):
        library.run_tensors([bad, tensor(w)], [tensor(y), tensor(s)])
    with pytest.raises(Failed, match="no such code"):
        library.check(12345)


def test_offsets_missing_strides_and_strides_that_mean_nothing(library: Exported) -> None:
    x, w = inputs(1, 6)
    y, s = outputs(1, 6)
    room = np.concatenate([np.zeros(3, np.float32), x.ravel()])
    shifted = tensor(room[3:].reshape(1, 6), strides=False)
    shifted.data, shifted.byte_offset = room.ctypes.data, 12
    odd = tensor(w)
    library.run_tensors([shifted, odd], [tensor(y, strides=False), tensor(s)])
    np.testing.assert_allclose(y, np.maximum(x @ w + C, 0), rtol=1e-4, atol=1e-5)
    one = tensor(x)
    one.strides[0] = 77  # of an axis of one element
    library.run_tensors([one, odd], [tensor(y), tensor(s)])


def test_several_threads_at_once_and_different_numbers_of_them(library: Exported) -> None:
    def wrong(seed: int) -> int:
        n = 10 + seed
        x, w = inputs(n, 40)
        y, s = outputs(n, 40)
        want, bad = np.maximum(x @ w + C, 0), 0
        for k in range(100):
            if k % 20 == 0:
                library.function("set_threads")(1 + (seed + k) % 3)
            y.fill(np.nan)
            library.run([x, w], [y, s])
            bad += not np.allclose(y, want, rtol=1e-3, atol=1e-4)
        return bad

    with ThreadPoolExecutor(3) as workers:
        assert list(workers.map(wrong, range(3))) == [0, 0, 0]


@pytest.mark.rotated(1 / 4)
@pytest.mark.long("compiles C against two libraries")
def test_models_and_two_libraries_in_one_process(tmp_path: Path) -> None:
    """Both have kernels and a thread pool of the same names, which must not meet."""
    cases = {
        "convolutions": (cnn.resnet(18, batch="N", size=32, stages=1), (2, 3, 32, 32)),
        "scanned": (
            recurrent.recurrent("LSTM", steps="T", width=8, hidden=16, classes=5),
            (7, 1, 8),
        ),
    }
    rng = np.random.default_rng(0)
    made = []
    for name, (model, shape) in cases.items():
        exe = unity.compile(model, threads=2)
        made.append((exe, exported(exe, tmp_path, name), rng.standard_normal(shape, np.float32)))
    for exe, library, x in made * 2:
        want = exe(x)
        y = np.empty_like(want)
        assert library.shapes([x], [want.ndim]) == [list(want.shape)]
        library.run([x], [y])
        np.testing.assert_array_equal(y, want)


def test_narrow_dtypes(tmp_path: Path) -> None:
    exe = unity.compile(parse("""
@script.function
def main(a: bf16[Tensor, 5], b: boolean[Tensor, 5], c: i64[Tensor, R.rank(0)]) -> R.Tuple(
    bf16[Tensor, 5], boolean[Tensor, 5], i64[Tensor, R.rank(0)]
):
    return (R.add(a, a), R.logical_not(b), R.add(c, c))
""".replace("[Tensor, R.rank(0)]", "[Tensor, 1]")))  # fmt: skip
    library = exported(exe, tmp_path)
    a = np.arange(5).astype(ml_dtypes.bfloat16)
    b, c = np.asarray([True, False, True, True, False]), np.asarray([21])
    results = [np.empty_like(a), np.empty_like(b), np.empty_like(c)]
    library.run([a, b, c], results)
    for got, want in zip(results, (np.add(a, a), ~b, c + c), strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_output_shares_memory_with_nothing(library: Exported) -> None:
    memory = np.arange(9, dtype=np.float32)
    for x, y in ((memory, memory), (memory[:5], memory[4:]), (memory[4:], memory[:5])):
        with pytest.raises(Failed, match="output 0 and input x share memory, and one of them"):
            library.run([x], [y], "negated")
    library.run([memory[:4]], [memory[4:8]], "negated")
    np.testing.assert_array_equal(memory, [0, 1, 2, 3, 0, -1, -2, -3, 8])
    x, w = inputs(1, 4)
    with pytest.raises(Failed, match="output sum:0 and output out:0 share memory"):
        library.run([x, w], [memory[:3].reshape(1, 3), memory[2:6]])


@pytest.mark.rotated(1 / 4)
def test_caches_written_in_place(tmp_path: Path) -> None:
    model = transformer.gpt2(layers=1, width=64, heads=2, ffn=128, vocab=300)
    exe = unity.compile(model, caches=True)
    library, session = exported(exe, tmp_path), exe.session(32)
    code = exe.program.function("main")
    (ids_at,) = [i for i, name in enumerate(code.input_names) if name == "input_ids"]
    inside = dict(code.aliases)
    (length,) = set(range(len(code.params))) - {ids_at, *inside.values()}
    caches = {i: np.zeros((1, 2, 32, 32), np.float32) for i in inside.values()}
    (logits_at,) = set(range(len(inside) + 1)) - set(inside)
    rng, rows = np.random.default_rng(0), 0
    for count in (5, 1, 3):
        ids = rng.integers(0, 100, (1, count))
        (want,) = session.run({"input_ids": ids}).values()
        sizes = np.asarray([rows, 32 - rows - count])
        given: dict[int, npt.NDArray[Any]] = {**caches, ids_at: ids, length: sizes}
        got = np.empty_like(want)
        results = [tensor(got) if k == logits_at else None for k in range(len(inside) + 1)]
        library.run_tensors([tensor(given[i]) for i in range(len(given))], results)
        np.testing.assert_array_equal(got, want)
        rows += count
    text = (tmp_path / "model.h").read_text()
    assert ", written over; give NULL" in text
    assert ", as a tensor of int64" in text
    first, second, *_ = inside.values()
    shared = [tensor({**given, first: given[second]}[i]) for i in range(len(given))]
    with pytest.raises(Failed, match=r"input \S+ and input \S+ share memory, and one of them is"):
        library.run_tensors(shared, results)
    given[length] = np.asarray([-1, 5])
    wrong = [tensor(given[i]) for i in range(len(given))]
    with pytest.raises(Failed, match=r"\[0\] is negative"):
        library.run_tensors(wrong, results)


PROGRAM_OF_C = r"""
#include <stdio.h>
#include "model.h"

static DLTensor floats(float *data, int32_t ndim, int64_t *shape) {
  DLTensor t = {data, {1, 0}, ndim, {2, 32, 1}, shape, NULL, 0};
  return t;
}

int main(void) {
  float x[8], w[12], y[6], s[4];
  int64_t of_x[2] = {2, 4}, of_w[2] = {4, 3}, of_y[2], of_s[1];
  for (int i = 0; i < 8; i++) x[i] = i;
  for (int i = 0; i < 12; i++) w[i] = 1;
  DLTensor tx = floats(x, 2, of_x), tw = floats(w, 2, of_w);
  const DLTensor *inputs[2] = {&tx, &tw};
  int64_t *dims[2] = {of_y, of_s};
  model_set_threads(2);
  if (model_main_shapes(inputs, dims)) return 1;
  DLTensor ty = floats(y, 2, of_y), ts = floats(s, 1, of_s);
  const DLTensor *outputs[2] = {&ty, &ts};
  int32_t result = model_main(inputs, outputs);
  if (result) { puts(model_message(result)); return 2; }
  printf("%dx%d %d: ", (int)of_y[0], (int)of_y[1], (int)of_s[0]);
  printf("%g %g %g %g\n", y[0], y[1], y[5], s[3]);
  tx.ndim = 1;
  puts(model_message(model_main(inputs, outputs)));
  return 0;
}
"""


def test_a_program_of_c(tmp_path: Path) -> None:
    exported(unity.compile(parse(PROGRAM, {"c": C})), tmp_path)
    (tmp_path / "main.c").write_text(PROGRAM_OF_C)
    compiler = next(c for c in ("cc", "gcc", "clang") if shutil.which(c))
    subprocess.run(
        [compiler, "-Wall", "-Wextra", "-Werror", "-std=c99", "main.c", "-o", "main",
         "-L.", "-lmodel", "-Wl,-rpath,$ORIGIN"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout == "2x3 4: 7 4 25 10\ninput x has not 2 axes\n"


NARROW = """
import sys
import numpy as np
from tests.codegen.export.tensors import Exported
library = Exported(__import__("pathlib").Path(sys.argv[1]))
x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
y = np.empty((64, 64), np.float32)
library.run([x], [y])
assert not any(name.startswith("unity") for name in sys.modules)
np.save(sys.argv[2], y)
"""


def test_tile_registers_in_a_process_without_unity(tmp_path: Path) -> None:
    exe = on_tiles()
    exe.export_library(tmp_path / "libnarrow.so")
    same_in_another_process(exe, NARROW, tmp_path / "libnarrow.so")


def test_it_shows_its_own_names_only_and_needs_the_c_library_only(
    library: Exported, tmp_path: Path
) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("no readelf")
    path = library.library._name
    text = subprocess.run(
        ["readelf", "--wide", "--dyn-syms", "-d", path], capture_output=True, text=True, check=True
    ).stdout
    needed = [line.split("[")[1].strip("]") for line in text.splitlines() if "(NEEDED)" in line]
    assert all(name.startswith(("libc.", "libpthread.", "ld-linux")) for name in needed)
    rows = [line.split() for line in text.splitlines() if " GLOBAL DEFAULT " in line]
    shown = {row[7] for row in rows if row[6] != "UND"}
    assert shown == {
        "model_main", "model_main_shapes", "model_negated", "model_negated_shapes",
        "model_message", "model_set_threads",
    }  # fmt: skip


HOSTED = unity.pipeline().without(CountNonzero)
"""What leaves `R.nonzero` to numpy."""


def test_what_c_cannot_be_given_is_listed(tmp_path: Path) -> None:
    exe = unity.compile(parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:
    i = R.nonzero(x)
    return R.take(x, R.reshape(i, (-1,)), axis=0)
@script.function
def product(x: f32[Tensor, n, 4], w: f32[Tensor, 4, 3]) -> f32[Tensor, n, 3]:
    with R.dataflow():
        y = R.matmul(x, w)
    return y
"""), resolve={"matmul": "library:openblas"}, pipeline=HOSTED)  # fmt: skip
    with pytest.raises(UnityError) as error:
        exe.export_library(tmp_path / "libmodel.so")
    text = str(error.value)
    assert (
        "can't be exported as a library for C\n  - it calls the library function openblas." in text
    )
    assert "\n  - main is not native code: it calls Python" in text
    assert not list(tmp_path.iterdir())


def test_no_linker_no_name_and_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exe = unity.compile(parse(PROGRAM, {"c": C}))
    with pytest.raises(UnityError, match=r"9x.so gives no name to C's functions\nhint: call it"):
        exe.export_library(tmp_path / "9x.so")
    with pytest.raises(UnityError, match=r"can't write .*no/libx.so: No such file"):
        exe.export_library(tmp_path / "no" / "libx.so")
    exe.save(tmp_path / "a.unity")
    with pytest.raises(UnityError, match="hint: compile the model again"):
        runtime.load(tmp_path / "a.unity").export_library(tmp_path / "libx.so")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        with pytest.raises(UnityError, match=r"no linker was found .*\nhint: install a C compiler"):
            exe.export_library(tmp_path / "libx.so")


def test_a_library_in_use_is_not_written_over(tmp_path: Path) -> None:
    path, header = tmp_path / "libmodel.so", tmp_path / "model.h"
    unity.compile(parse(RENAMED % "first")).export_library(path)
    before = path.read_bytes()
    with path.open("rb") as mapped:  # as a process that has it loaded
        unity.compile(parse(RENAMED % "second")).export_library(path)
        assert mapped.read() == before
    assert path.read_bytes() != before
    assert "model_second(" in header.read_text()
    header.unlink()
    header.mkdir()
    before = path.read_bytes()
    with pytest.raises(UnityError, match=r"can't write .*model\.h: Is a directory"):
        unity.compile(parse(RENAMED % "third")).export_library(path)
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path, header]


RENAMED = """
@script.function
def %s(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = R.exp(x)
    return y
"""


def test_functions_that_want_one_name_in_c_are_listed(tmp_path: Path) -> None:
    names = ("f", "f_shapes", "message", "set_threads")
    exe = unity.compile(parse("".join(RENAMED % name for name in names)))
    with pytest.raises(UnityError) as error:
        exe.export_library(tmp_path / "libm.so")
    text = str(error.value)
    assert "\n  - f_shapes would be m_f_shapes in C, as the shapes of f are: rename one" in text
    assert "\n  - message would be m_message in C, as" in text
    assert "\n  - set_threads would be m_set_threads in C, as" in text
    with pytest.raises(UnityError, match=r"libunity\.so gives no name"):
        exe.export_library(tmp_path / "libunity.so")


def test_kernels_called_as_functions_of_c(tmp_path: Path) -> None:
    exe = unity.compile(parse(KERNEL), cache=None)
    x, y = np.arange(4, dtype=np.float32), np.empty(4, np.float32)
    exported(exe, tmp_path).run([x], [y])
    np.testing.assert_array_equal(y, x * 2)


KERNEL = """
@script.prim_func
def model_main(a: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
    for i in range(4):
        with T.block("t"):
            vi = T.axis.spatial(4, i)
            c[vi] = a[vi] * 2.0
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = R.call_tir(model_main, (x,), out=f32[Tensor, 4])
    return y
"""
