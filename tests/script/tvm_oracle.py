"""A kernel as TVM reads and compiles it: the oracle for what we read (skips without it)."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[np.generic]
_numbers = itertools.count()


def run_theirs(text: str, args: Sequence[Array], name: str = "f") -> list[Array]:
    """What a kernel written in TVMScript leaves in its arguments when TVM runs it.

    Args:
        text: One function decorated with ``@T.prim_func``, called `name`.
        args: Its arguments, which stay as they are.
        name: The function's name.
    """
    tvm = pytest.importorskip("tvm", reason="TVM is the oracle here")
    names: dict[str, object] = {"T": pytest.importorskip("tvm.script").tirx, "tvm": tvm}
    text = text.replace("@T.prim_func\n", "@T.prim_func(s_tir=True)\n")
    file = f"<theirs {next(_numbers)}>"  # Python keeps what it read of a file
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    built = tvm.compile(tvm.IRModule({name: names[name]}), target="llvm")
    given = [tvm.runtime.tensor(a) for a in args]
    built[name](*given)
    return [np.asarray(a.numpy()) for a in given]
