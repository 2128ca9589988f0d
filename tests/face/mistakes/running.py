"""Mistakes where programs are compiled, called, saved and loaded."""

from __future__ import annotations

from .mistake import Mistake

FUNCTION = """
        @script.function
        def main(x: f32[Tensor, n, 4], y: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
            return x + y


"""

RUNNING = (
    Mistake(
        "A kernel compiled alone",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * 2.0


        unity.compile(double.func)
        """,
        "this is a kernel, not a program",
        "A prim func has no name; a module of kernels alone is compiled, and a decorated kernel.",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * 2.0


        unity.compile(double)(np.ones(4, np.float32))
        unity.compile(unity.IRModule({"double": double.func}))(np.ones(4, np.float32))
        """,
        hint='a module of it can be compiled: unity.compile(unity.IRModule({"kernel": func}))',
    ),
    Mistake(
        "A level of instructions as the target",
        FUNCTION
        + """
        unity.compile(main, "avx2")
        """,
        "no target 'avx2'",
        "A target is a kind of machine (`cpu`), or a `unity.Target` that describes one.",
        FUNCTION
        + """
        unity.compile(main, "cpu")
        """,
        hint="there are: cpu; packages add others by entry points of ...",
    ),
    Mistake(
        "An option that there is not",
        FUNCTION
        + """
        unity.compile(main, opt_level=3)
        """,
        "compile has no parameter 'opt_level'",
        "There are no levels: which passes run is a pipeline, `unity.pipeline()`.",
        FUNCTION
        + """
        unity.compile(main)
        """,
        hint="compile(model, target='cpu', *, dynamic=None, ...",
    ),
    Mistake(
        "A precision by numpy's name",
        FUNCTION
        + """
        unity.compile(main, precision="float16")
        """,
        "compile, argument 9 'precision': expected one of 'f32', 'bf16', 'f16', got 'float16'",
        "The precision is what products and convolutions compute in.",
        FUNCTION
        + """
        unity.compile(main, precision="f16")
        """,
        hint="usage: compile(model, target='cpu', *, dynamic=None, ...",
    ),
    Mistake(
        "No threads",
        FUNCTION
        + """
        unity.compile(main, threads=0)
        """,
        "threads=0",
        "Left out, it is the number of cores.",
        FUNCTION
        + """
        unity.compile(main, threads=1)
        """,
        hint="at least 1; None for all cores",
    ),
    Mistake(
        "A pipeline by name",
        FUNCTION
        + """
        unity.compile(main, pipeline="cpu")
        """,
        "compile, argument 4 'pipeline': expected a Pipeline or None, got 'cpu'",
        "A pipeline is a list of passes: data that a program makes and edits.",
        FUNCTION
        + """
        unity.compile(main, pipeline=unity.pipeline("cpu"))
        """,
        hint='start from unity.pipeline("cpu"); target= names a backend',
    ),
    Mistake(
        "Dims that are made dynamic, as a list",
        FUNCTION
        + """
        unity.compile(main, dynamic=["x"])
        """,
        "compile, argument 3 'dynamic': expected a dict: {input: {axis: size or symbol}} "
        "or {symbol: size} or None, got ['x']",
        "Which axes of which input become symbols has to be said; of a model without symbols, "
        "`dynamic=True` makes all of them.",
        FUNCTION
        + """
        unity.compile(main, dynamic={"n": 8})
        """,
        hint="usage: compile(model, target='cpu', *, dynamic=None, ...",
    ),
    Mistake(
        "A policy that there is not",
        FUNCTION
        + """
        unity.compile(main, resolve="fastest")
        """,
        "no implementation 'fastest'",
        "What computes a call is chosen by an estimate, by measuring, or by you.",
        FUNCTION
        + """
        unity.compile(main, resolve="static")
        """,
        hint='"tir", "library:<name>", "engine:<name>"; policies are "static" and "measure"',
    ),
    Mistake(
        "Too few inputs",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((3, 4), np.float32))
        """,
        "main takes 2 inputs (x, y), got 1: missing y",
        "Every parameter is given, by position or by name.",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((3, 4), np.float32), y=np.ones((3, 4), np.float32))
        """,
    ),
    Mistake(
        "An input of another name",
        FUNCTION
        + """
        exe = unity.compile(main)
        x = np.ones((3, 4), np.float32)
        exe.run({"x": x, "z": x})
        """,
        "main takes 2 inputs (x, y); there is no 'z'",
        "`exe.inputs` tells names, dtypes and shapes.",
        FUNCTION
        + """
        exe = unity.compile(main)
        x = np.ones((3, 4), np.float32)
        exe.run({"x": x, "y": x})
        """,
    ),
    Mistake(
        "An input of numpy's default dtype",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((3, 4)), np.ones((3, 4)))
        """,
        "input 'x': expected dtype float32, got float64",
        "numpy's numbers are float64 unless a dtype is given.",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((3, 4), np.float32), np.ones((3, 4), np.float32))
        """,
        hint="Unity does not convert silently; convert the array first",
    ),
    Mistake(
        "An input with one axis too many",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((1, 3, 4), np.float32), np.ones((3, 4), np.float32))
        """,
        "input 'x': expected rank 2 (n, 4), got rank 3 with shape (1, 3, 4)",
        "Shapes are checked against the types of parameters, and nothing is broadcast or dropped.",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((1, 3, 4), np.float32)[0], np.ones((3, 4), np.float32))
        """,
    ),
    Mistake(
        "Two inputs that disagree on a symbol",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((3, 4), np.float32), np.ones((2, 4), np.float32))
        """,
        "input 'y' axis 0: symbol n is 2 here but 3 from input 'x' axis 0",
        "The first input with a symbol says what it is; all others must agree.",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.ones((2, 4), np.float32), np.ones((2, 4), np.float32))
        """,
    ),
    Mistake(
        "A size beyond what a symbol was declared to be",
        """
        k = dim("k", min=8, max=64, multiple_of=8)


        @script.function
        def main(x: f32[Tensor, k]) -> f32[Tensor, k]:
            return R.exp(x)


        exe = unity.compile(main)
        exe(np.ones(12, np.float32))
        """,
        "input 'x' axis 0: symbol k is 12, but it must be a multiple of 8",
        "Kernels rely on what `dim` says of a symbol.",
        """
        k = dim("k", min=8, max=64, multiple_of=8)


        @script.function
        def main(x: f32[Tensor, k]) -> f32[Tensor, k]:
            return R.exp(x)


        exe = unity.compile(main)
        exe(np.ones(16, np.float32))
        """,
    ),
    Mistake(
        "A list as an input",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe([[1.0] * 4], [[2.0] * 4])
        """,
        "input 'x': expected an array, got list",
        "Inputs are arrays: of numpy, or of whoever speaks DLPack, such as torch.",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe(np.array([[1.0] * 4], np.float32), np.array([[2.0] * 4], np.float32))
        """,
        hint="numpy.asarray(x, dtype) makes one; whatever has __dlpack__ is taken as it is",
    ),
    Mistake(
        "A function that the executable does not have",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe["forward"](np.ones((3, 4), np.float32), np.ones((3, 4), np.float32))
        """,
        "the executable has no function 'forward'; it has main",
        "Functions keep their names of the module; `exe` alone calls `main`.",
        FUNCTION
        + """
        exe = unity.compile(main)
        exe["main"](np.ones((3, 4), np.float32), np.ones((3, 4), np.float32))
        """,
    ),
    Mistake(
        "An executable that is pickled",
        FUNCTION
        + """
        import pickle

        pickle.dumps(unity.compile(main))
        """,
        "an executable can't be pickled: it is machine code loaded in this process",
        "It holds machine code and memory. Its own file is checked when it is read.",
        FUNCTION
        + """
        unity.compile(main).save("main.unity")
        exe = unity.load("main.unity")
        """,
        hint="exe.save(path) writes it, unity.load(path) reads it in the other process",
    ),
    Mistake(
        "A file that is no executable",
        """
        with open("model.unity", "wb") as file:
            file.write(b"weights" * 100)
        unity.load("model.unity")
        """,
        "model.unity is no executable that Unity wrote (700 bytes)",
        "Nothing in a file is believed before it is checked.",
        FUNCTION
        + """
        unity.compile(main).save("model.unity")
        unity.load("model.unity")
        """,
        hint="executable.save(path) writes one, and it may be damaged or cut short; models are "
        "ONNX",
    ),
    Mistake(
        "An executable whose Python function is not named",
        """
        def double(x: np.ndarray, y: np.ndarray) -> None:
            y[...] = x * 2


        @script.function(pure=True)
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.call_python(double, (x,), out=f32[Tensor, n])


        unity.compile(main).save("main.unity")
        unity.load("main.unity")
        """,
        "can't load main.unity: it calls what this program has not named or registered\n  "
        "- the Python function '__main__.double': name it, load(path, hosts=[function]), "
        "or decorate it with unity.runtime.provide_host",
        "A file may not choose what Python code runs: who loads it does.",
        """
        def double(x: np.ndarray, y: np.ndarray) -> None:
            y[...] = x * 2


        @script.function(pure=True)
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.call_python(double, (x,), out=f32[Tensor, n])


        unity.compile(main).save("main.unity")
        unity.load("main.unity", hosts=[double])
        """,
    ),
)
