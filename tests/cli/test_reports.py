"""What the commands print: nothing is lost, and everything that `--help` promises is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from rich.console import Console
from typer.testing import CliRunner

import unity.demo
from unity.cli.app import app
from unity.codegen.llvm import host_target
from unity.errors import UnityError
from unity.machine.target import Target
from unity.runtime.explanation import NARROW
from unity.script import parse
from unity.transform import backend_of
from unity.transform.backend import BACKENDS

TINY = """
<ir_version: 8, opset_import: ["" : 17]>
tiny (float[n, 4] x, float[4, 3] w) => (float[n, 3] y) { p = MatMul(x, w)  y = Relu(p) }
"""
DIGITS = str(Path(unity.demo.__file__).parent / "digits.onnx")


def printed(*args: str) -> str:
    result = CliRunner().invoke(app, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_compile_shows_the_shapes_of_the_signature() -> None:
    text = printed("compile", DIGITS)
    assert "main(image: float32[batch, 1, 8, 8]) -> float32[batch, 10]  [native]" in text
    assert "constants: 0.1" in text  # Winograd weights are larger than the taps they stand for


def test_a_profile_is_a_table() -> None:
    text = printed("bench", DIGITS, "--repeat", "2", "--profile")
    assert "ProfileRow(" not in text
    assert "in all" in text


def test_explain_tells_of_every_call() -> None:
    rows = json.loads(printed("explain", DIGITS, "--json"))["sites"]
    assert {row["op"] for row in rows} >= {"nn.conv2d", "matmul"}
    assert all(row["choice"] and row["reason"] for row in rows)
    told = printed("explain", DIGITS)
    assert "call sites (static)" in told
    assert "run, bench and compile take Unity's own kernels" in told
    assert "own kernels" not in printed("explain", DIGITS, "--resolve", "tir")


def test_every_call_says_which_node_of_the_model_it_comes_from() -> None:
    rows = json.loads(printed("explain", DIGITS, "--json"))["sites"]
    nodes = {f"{n.name or n.output[0]} ({n.op_type})" for n in onnx.load(DIGITS).graph.node}
    assert rows
    assert {row["place"].removeprefix("digits.onnx: ") for row in rows} <= nodes


@pytest.mark.rotated(1)
def test_bisect_finds_nothing_wrong_and_leaves_a_trace(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(TINY)
    onnx.save(model, tmp_path / "tiny.onnx")
    text = printed("bisect", str(tmp_path / "tiny.onnx"), "--trace", str(tmp_path))
    text = text.replace("\n", " ")
    assert "every pass keeps the numbers" in text
    assert " s  Normalize " in text
    page = (tmp_path / "index.html").read_text()
    files = sorted(p.name for p in tmp_path.glob("*.py"))
    assert files[0] == "000_input.py"
    assert any("FuseOps" in name for name in files)
    assert "FuseOps()" in page
    assert "<span class=new>" in page


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("explain", DIGITS, "--measure", "--resolve", "static"), "--measure and --resolve static"),
        (("run", DIGITS, "-i", f"image={__file__}"), "is neither an .npy nor an .npz file"),
    ],
)
def test_what_makes_no_sense_is_refused(args: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnityError, match=message):
        CliRunner().invoke(app, args, catch_exceptions=False)


def test_explain_cuts_nothing_where_there_is_no_terminal() -> None:
    text = printed("explain", DIGITS)
    for row in json.loads(printed("explain", DIGITS, "--json"))["sites"]:
        assert row["shapes"] in text
        assert row["place"] in text


def test_the_package_is_a_command() -> None:
    command = [sys.executable, "-m", "unity", "--help"]
    assert "bisect" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_doctor_tells_the_state_of_the_cache() -> None:
    assert " objects, " in printed("doctor").replace("\n", " ")


def four_lanes(threads: int | None) -> Target:
    """This machine with narrow registers, as another kind of target."""
    return replace(host_target(threads), kind="narrow", vector_bits=128)


def test_a_kernels_schedule_is_a_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "relu.onnx")
    text = '<ir_version: 8, opset_import: ["" : 17]> main (float[n, 9] x) => (float[n, 9] y) '
    onnx.save(onnx.parser.parse_model(text + "{ p = Exp(x)  y = Relu(p) }"), path)
    (line,) = printed("inspect", path, "--kernels").splitlines()
    assert re.fullmatch(r"fused_exp_relu\telementwise\(.*\) on relu\t\d+", line)
    shown = printed("inspect", path, "--schedule", "fused_exp_relu", "--result")
    assert re.match(r"# elementwise\(.*\) on relu\n", shown)
    told = StringIO()
    with redirect_stdout(told):
        exec(shown, {})
    program, _, result = shown.partition("\n# --- what it gives\n")
    assert "# --- " not in program
    blocks = [t[t.index("    for ") :].split() for t in (told.getvalue(), result.replace("# ", ""))]
    assert blocks[0] == blocks[1]
    ours = backend_of("cpu")
    monkeypatch.setitem(BACKENDS, "narrow", replace(ours, name="narrow", detect=four_lanes))
    narrow = printed("inspect", path, "--schedule", "fused_exp_relu", "--target", "narrow")
    assert "\nTARGET = Target('narrow', " in narrow
    assert "[None, 16]" in narrow  # four registers of four lanes


def test_a_kernel_that_there_is_not_is_told_by_those_like_it() -> None:
    with pytest.raises(UnityError, match=r"no kernel 'max_pool'\nhint: did you mean max_pool3d\?"):
        printed("inspect", DIGITS, "--schedule", "max_pool")
    with pytest.raises(UnityError, match="--result without --schedule"):
        printed("inspect", DIGITS, "--result")


def test_decisions_are_told_with_what_else_they_may_be() -> None:
    shown = printed("inspect", DIGITS, "--schedule", "fused_matmul_packed_add")
    assert shown.startswith("# ")
    assert "on matmul and add\n#   rows=" in shown
    assert re.search(r"\n#   tiles=\d+, of 1 to \d+ \(a task takes at most \d+ tiles\)\n", shown)


def test_a_model_before_it_is_compiled() -> None:
    shown = printed("inspect", DIGITS, "--report")
    assert "image: float32[batch, 1, 8, 8]" in shown
    assert "9,930 in 6, 39,720 bytes" in shown
    # Two convolutions and a product, 64 images, and an operation for each element of the rest.
    assert "40,043,136 at batch=64" in shown
    assert "nn.conv2d 2" in shown
    assert "2 Conv" in shown
    with pytest.raises(UnityError, match="--report beside another view"):
        printed("inspect", DIGITS, "--report", "--kernels")


def test_what_a_model_lacks_is_reported(tmp_path: Path) -> None:
    text = TINY.replace("y = Relu(p)", "a = Frobnicate(p)  b = Frobnicate(a)  y = Relu(b)")
    onnx.save(onnx.parser.parse_model(text), tmp_path / "odd.onnx")
    shown = printed("inspect", str(tmp_path / "odd.onnx"), "--report")
    assert shown.count("not implemented") == 2
    assert "2 Frobnicate" in shown


def test_an_executable_in_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "digits.unity")
    assert "wrote" in printed("compile", DIGITS, "-o", path)
    out = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    printed("run", DIGITS, "--dim", "batch=3", "-o", out[0])
    assert "loaded in" in printed("run", path, "--dim", "batch=3", "-o", out[1])
    with np.load(out[0]) as first, np.load(out[1]) as second:
        assert first["scores"].shape == (3, 10)
        np.testing.assert_array_equal(first["scores"], second["scores"])
    text = printed("inspect", path)
    assert "main(image: float32[batch, 1, 8, 8])" in text.replace("\n", " ")
    assert "code of kernels" in text
    rows = json.loads(printed("explain", path, "--json"))["sites"]
    assert {row["op"] for row in rows} >= {"nn.conv2d", "matmul"}
    assert "loaded in" in printed("bench", path, "--repeat", "2")


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no linker")
def test_a_library_for_c(tmp_path: Path) -> None:
    text = printed("compile", DIGITS, "-o", str(tmp_path / "libdigits.so")).replace("\n", "")
    assert "digits.h" in text
    assert "int32_t digits_main(" in (tmp_path / "digits.h").read_text()


@pytest.mark.parametrize(
    "args",
    [
        ("compile",), ("check",), ("bisect",), ("bench", "--vs", "onnxruntime"),
        ("inspect", "--passes"), ("explain", "--measure"), ("run", "--precision", "bf16"),
    ],
)  # fmt: skip
def test_what_needs_a_model_says_so(args: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "tiny.unity"
    onnx.save(onnx.parser.parse_model(TINY), tmp_path / "tiny.onnx")
    unity.compile(tmp_path / "tiny.onnx").save(path)
    with pytest.raises(unity.UnityError, match="compiled"):
        CliRunner().invoke(app, [args[0], str(path), *args[1:]], catch_exceptions=False)


@pytest.mark.parametrize(
    "command", ["run", "compile", "bench", "inspect", "explain", "check", "bisect"]
)
def test_a_missing_file_is_an_error_of_ours(command: str) -> None:
    with pytest.raises(unity.UnityError, match=r"nothing\.onnx"):
        CliRunner().invoke(app, [command, "nothing.onnx"], catch_exceptions=False)


def test_the_cache_is_shown_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNITY_CACHE_DIR", str(tmp_path))
    (tmp_path / "resolve.jsonl").write_text("")
    module = parse("""@script.function
def main(x: f32[Tensor, 3]) -> f32[Tensor, 3]:
    return R.exp(x)""")
    unity.compile(module)
    assert list(tmp_path.glob("kernels/*/*"))
    assert "removed 0" not in printed("cache", "--clear")
    assert not list(tmp_path.glob("*/*/*"))
    assert (tmp_path / "resolve.jsonl").exists()
    assert "--clear-measurements" in printed("cache")
    assert "removed 1 files" in printed("cache", "--clear-measurements")
    assert not (tmp_path / "resolve.jsonl").exists()
    monkeypatch.setenv("UNITY_CACHE_DIR", "off")
    unity.compile(module)
    assert "off" in printed("cache")
    assert not list(tmp_path.glob("*/*/*"))


def test_generated_images_are_large_enough_to_be_halved(tmp_path: Path) -> None:
    """A pyramid of two sizes: 4 by 4 pixels would leave nothing to upsample alike."""
    halves = "\n".join(
        f"p{k + 1} = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(p{k})" for k in range(5)
    )
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[n, 3, h, w] p0) => (float[a, b, c, d] y)
    <float[4] twice = {{1.0, 1.0, 2.0, 2.0}}> {{
        {halves}
        up = Resize<mode="nearest">(p5, , twice)
        y = Concat<axis=1>(up, p4)
    }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "pyramid.onnx")
    shown = printed("run", str(tmp_path / "pyramid.onnx"), "--dim", "h=96")
    assert "[4, 6, 6, 4]" in shown


def test_explain_fits_a_narrow_terminal() -> None:
    explanation = unity.compile(DIGITS).explain()
    for width, heading in ((80, "time"), (NARROW, "other candidates")):
        console = Console(width=width, record=True, file=StringIO())
        console.print(explanation)
        text = console.export_text()
        assert max(map(len, text.splitlines())) <= width
        assert heading in text
        assert all(site.site in text for site in explanation), text


def test_a_report_is_of_the_sizes_that_follow_from_those_of_inputs(tmp_path: Path) -> None:
    """The shape of a Reshape that tensors say: 64 was taken for each of its dims."""
    text = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 6] x) => (float[a, b] y, int64[2, c] z) <float[6, 2] w = {0,1,2,3,4,5,6,7,8,9,10,11}> {
    s = Shape(x)
    f = Cast<to=1>(s)
    r = Floor(f)
    t = Cast<to=7>(r)
    v = Reshape(x, t)
    y = MatMul(v, w)
    z = NonZero(x)
}"""
    path = tmp_path / "g.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    report = " ".join(printed("inspect", str(path), "--report").replace("│", " ").split())
    assert "at n=64 (1 size that only data tells taken as 64)" in report
    found = re.search(r"operations ([\d,]+) at", report)
    assert found is not None
    assert int(found[1].replace(",", "")) < 2 * (2 * 64 * 6 * 2), "one product, little else"


def test_generated_inputs_that_do_not_fit_are_told_of_dims(tmp_path: Path) -> None:
    path = tmp_path / "g.onnx"
    text = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[a, b, m, 4] x, float[c, 4, n] y) => (float[d, e, m, n] z) { z = MatMul(x, y) }"""
    onnx.save(onnx.parser.parse_model(text), path)
    found = CliRunner().invoke(app, ("run", str(path)))
    assert isinstance(found.exception, UnityError)
    assert found.exception.hint == (
        "the inputs were generated with b=64 and c=4; give sizes that fit: --dim b=4 --dim c=4"
    )
    assert "[1, 4, 64, 4]" in printed("run", str(path), "--dim", "b=4", "--dim", "a=1")
    found = CliRunner().invoke(app, ("run", str(path), "--dim", "c=3", "--dim", "b=2"))
    assert isinstance(found.exception, UnityError)
