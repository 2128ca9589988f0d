"""Ctrl-C stops a long run between kernels, in native code and in the interpreter."""

from __future__ import annotations

import subprocess
import sys
import textwrap

CHILD = """
import os, signal, threading, time
import numpy as np
import unity
from unity.script import parse

SOURCE = '''
n = dim("n")

@script.function
def main(x: f32[Tensor, n], count: i64[Tensor, ()]) -> f32[Tensor, n]:
    i = R.const(0, "int64")
    y = x
    while R.less(i, count):
        y = R.add(y, x)
        i = R.add(i, R.const(1, "int64"))
    return y
'''
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
exe = unity.compile(parse(SOURCE))
x, forever = np.ones(100, np.float32), np.asarray(10**12)
assert exe.native()["main"] == "native"
traced = lambda *a: exe.trace(lambda e: None, *a)
for name, run in {"native": exe, "bytecode": traced}.items():
    np.testing.assert_array_equal(run(x, np.asarray(3)), x * 4)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    try:
        run(x, forever)
    except KeyboardInterrupt:
        took = time.perf_counter() - start
        np.testing.assert_array_equal(run(x, np.asarray(3)), x * 4)
        print(name, took < 20)
"""


def test_control_c_stops_a_long_run() -> None:
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert child.stdout.split() == ["native", "True", "bytecode", "True"], (
        child.stdout + child.stderr
    )
