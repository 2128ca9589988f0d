"""Tutorial 2: import an ONNX model, compile it, and look inside.

Run it: ``python tutorials/02_import_onnx.py``. The model is the one ``unity demo`` uses; any other
path works as well. Classic models (trees, linear ones, encoders of labels) come by ONNX-ML, or from
scikit-learn by `unity.from_sklearn`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

import unity
import unity.demo
from unity.codegen.llvm.host import host_target
from unity.transform import Context, pipeline

# %% Load: the ONNX graph becomes a module of one graph function. Its batch is a symbol.
path = Path(unity.demo.__file__).parent / "digits.onnx"
module = unity.load(path)
module.show()

# %% Compile and run. Names work as in ONNX Runtime; positions work as well.
executable = unity.compile(module)
with np.load(path.with_suffix(".npz")) as held_out:
    images, labels = held_out["images"], held_out["labels"]
scores = executable.run({"image": images})["scores"]
np.testing.assert_array_equal(scores, executable(images))
print(f"accuracy {(scores.argmax(1) == labels).mean():.2%}")

# %% How did it get there? A pipeline is a list of passes; here is what each of them leaves.
context = Context(host_target())
state = module
for each in pipeline("cpu").passes:
    state = each(state, context)
    print(f"{each.name:28} {len(state.prim_funcs()):3} kernels")

# %% Pipelines are data. This one leaves every operator a kernel of its own: slower, same numbers.
from unity.transform.graph import FuseOps, FuseTir  # noqa: E402

unfused = pipeline("cpu").without(FuseOps).without(FuseTir)
plain = unity.compile(module, pipeline=unfused)
np.testing.assert_allclose(plain(images), scores, rtol=1e-4, atol=1e-4)

# %% Where does the time go?
print(executable.profile(images))
print(executable.benchmark(images))

# %% One kernel, from TensorIR down to assembly.
kernel = next(iter(executable.kernels))
print(executable.ir(kernel))
print("\n".join(executable.llvm(kernel).splitlines()[:20]))

# %% Keep it: one file with all that running needs, for machines of this kind. It loads in
# milliseconds, without the compiler (`unity.runtime.load`); processes share its weights.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "digits.unity"
    executable.save(file)
    loaded = unity.load(file)
    np.testing.assert_array_equal(loaded(images), scores)
    print(f"{file.stat().st_size} bytes: {loaded.signature}")
    # Or as a library for C, with a header, where there is a linker to make one.
    if shutil.which("cc") is not None:
        header = executable.export_library(Path(folder) / "libdigits.so")
        print(header.read_text())
