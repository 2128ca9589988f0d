"""A package that adds a target, installed as users install it, beside one that can't be loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BROKEN = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "broken-unity"
version = "0.9"
[project.entry-points."unity.backends"]
broken = "broken_unity:BROKEN"
nothing = "broken_unity_nothing:NOTHING"
cpu = "broken_unity:BROKEN"
[tool.setuptools]
py-modules = ["broken_unity", "broken_unity_nothing"]
""",
    "broken_unity.py": 'raise ImportError("libbroken.so.3: cannot open shared object file")',
    "broken_unity_nothing.py": "NOTHING = 3",
}
"""A package that needs a driver which nobody has, names no backend, and claims one of ours."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed both packages, without the network."""
    if not os.environ.get("CI"):
        pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("site")
    sources = tmp_path_factory.mktemp("sources")  # building writes beside the source
    shutil.copytree(HERE / "acme", sources / "acme")
    for file, text in BROKEN.items():
        (sources / "broken" / file).parent.mkdir(exist_ok=True)
        (sources / "broken" / file).write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    packages = [str(sources / name) for name in ("acme", "broken")]
    done = subprocess.run([*command, *packages], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def run(site: Path, program: str) -> tuple[str, str]:
    """What a program prints, and what it logs, where the packages are installed."""
    paths = os.pathsep.join([str(ROOT), str(site)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


MODEL = """
import numpy as np
import unity
from unity.script import parse
module = parse('''
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 40], w: f32[Tensor, 40, 24]) -> f32[Tensor, n, 24]:
    with R.dataflow():
        y = R.nn.silu(R.matmul(x, w))
        z = R.nn.softmax(y, axis=-1)
    return z
''')
rng = np.random.default_rng(0)
w = rng.standard_normal((40, 24), np.float32)

def check(executable, silu):
    for n in (1, 7, 65):
        x = rng.standard_normal((n, 40), np.float32)
        y = silu((x @ w).astype(np.float64))
        e = np.exp(y - y.max(-1, keepdims=True))
        np.testing.assert_allclose(executable(x, w), e / e.sum(-1, keepdims=True), 1e-3, 1e-5)
"""


@pytest.mark.long("installs a package and starts processes that find it")
@pytest.mark.rotated(1)
def test_a_target_of_another_package(site: Path) -> None:
    program = f"""{MODEL}
class Reports:
    def before(self, step, module, ctx): pass
    def after(self, step, module, ctx): self.found = ctx.reports.get("acme")

reports = Reports()
acme = unity.compile(module, "acme", instruments=(reports,))
check(acme, lambda y: y * np.clip(y / 6 + 0.5, 0, 1))  # its kernel
print(reports.found)  # its pass, in its pipeline
print(acme.explain()["z"].choice, acme.explain()["z"].candidates[1].implementation)
alone = parse('''
@script.function
def main(x: f32[Tensor, 8, 40]) -> f32[Tensor, 8, 40]:
    return R.exp(x)
''')
schedule = unity.pipeline("acme").until(unity.transform.tensor.CompactBuffers)
from unity.transform import Context, backend_of
lowered = schedule.run(alone, Context(backend_of("acme").machine(1)))
print([line.strip() for line in str(lowered).splitlines() if "for " in line])  # its schedule
product = unity.compile(module, "acme", resolve="tir")
(kernel,) = (name for name in product.kernels if "matmul" in name)
try:
    unity.transform.schedule.Schedule(
        product.kernel(kernel), product.target
    ).cache_read("matmul", 0, "acme.dram")
except unity.UnityError as error:
    print(error.hint)
x = rng.standard_normal((8, 40), np.float32)
np.testing.assert_allclose(unity.compile(alone, "acme")(x), np.exp(x), 1e-5)
check(unity.compile(module), lambda y: y / (1 + np.exp(-y)))  # and ours is what it was
try:
    unity.compile(module, "acme", check=True)
except unity.UnityError as error:  # its silu is none, and it is told which pass brought that in
    print(str(error).splitlines()[0])
static = unity.compile(module, "acme", resolve="static").explain()
print({{c.implementation: c.why_not for c in static["matmul"].candidates if c.why_not}})
"""
    out, _ = run(site, program)
    lines = out.splitlines()
    assert lines[0] == "looked for acme"
    assert lines[1] == "engine:acme engine:acme"
    assert "T.parallel(8)" in lines[2]
    assert "T.vectorized(16)" in lines[2]
    assert lines.pop(3).startswith("there are global, shared, local, amx.tile, acme.sram;")
    assert lines[3].startswith("LegalizeOps changed what 'main' computes: at ")
    assert "'library:openblas.gemm': \"the target 'acme' does not take it\"" in lines[4]


def test_a_pipeline_with_rules_of_a_package_prints_as_python(site: Path) -> None:
    program = """
import unity
text = str(unity.pipeline("acme"))
scope = {}
exec(text, scope)
print(scope["pipeline"] == unity.pipeline("acme"), unity.pipeline("acme") == unity.pipeline("cpu"))
print(text)
"""
    out, _ = run(site, program)
    assert out.startswith("True False\n")
    assert "from acme_unity import Inspect, hard_silu, in_sixteens\n" in out
    assert "    Inspect(note='looked'),\n" in out
    assert "    LegalizeOps(rules=(Legalization('nn.silu', hard_silu),)),\n" in out
    assert "    ScheduleByRule(rules=(in_sixteens,)),\n" in out


@pytest.mark.long("starts Python anew for each package")
def test_a_package_that_fails_is_named_and_breaks_no_other(site: Path) -> None:
    program = f"""{MODEL}
for name in ("broken", "nothing", "absent"):
    try:
        unity.compile(module, name)
    except unity.UnityError as error:
        print(error)
check(unity.compile(module), lambda y: y / (1 + np.exp(-y)))
unity.compile(module, "acme")
"""
    out, logged = run(site, program)
    assert "the backend 'broken' of broken-unity 0.9 can't be loaded: ImportError: libbroken" in out
    assert "the backend 'nothing' of broken-unity 0.9 is no Backend but int" in out
    assert "no target 'absent'" in out
    assert "there are: acme, broken, cpu, nothing" in out
    assert "broken-unity 0.9 may not replace the backend 'cpu'" in logged


@pytest.mark.long("starts Python anew for each command")
def test_commands_take_a_target(site: Path, tmp_path: Path) -> None:
    model = str(tmp_path / "model.onnx")
    compiled = str(tmp_path / "model.unity")
    program = f"""
import onnx.parser
onnx.save(onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 17]>
main (float[n, 4] x) => (float[n, 4] y) {{ p = Exp(x)  y = Softmax(p) }}
'''), {model!r})
from typer.testing import CliRunner
from unity.cli.app import app
for words in (
    ["inspect", {model!r}, "--passes", "--target", "acme"],
    ["explain", {model!r}, "--resolve", "engine:acme", "--target", "acme", "--json"],
    ["bisect", {model!r}, "--target", "acme"],
    ["compile", {model!r}, "-o", {compiled!r}, "--target", "acme"],
    ["doctor"],
    ["explain", {model!r}, "--target", "broken"],
):
    result = CliRunner().invoke(app, words)
    print(result.exit_code, result.output, result.exception)
"""
    out, _ = run(site, program)
    assert "ScheduleByRule" in out
    assert '"choice": "engine:acme"' in out
    assert "every pass keeps the numbers" in out
    assert "of acme-unity 1.5" in out
    words = " ".join(out.replace("│", " ").split())  # a table breaks lines
    assert words.count("of broken-unity 0.9 can't be loaded") >= 2  # doctor, explain
    assert Path(compiled).exists()


def test_nothing_of_a_package_is_loaded_before_it_is_asked_for(site: Path) -> None:
    program = f"""{MODEL}
import sys
unity.compile(module)
print("acme_unity" in sys.modules)
"""
    out, _ = run(site, program)
    assert out == "False\n"
