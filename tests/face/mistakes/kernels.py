"""Mistakes in prim funcs."""

from __future__ import annotations

from .mistake import Mistake

KERNELS = (
    Mistake(
        "A name that nobody defined",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = xx[i] * 2.0
        """,
        "unknown name 'xx'",
        "Inside a prim func there are its parameters, what it binds, and what its file captures: "
        "symbols, numbers, decorated functions.",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * 2.0
        """,
        hint="did you mean x?",
    ),
    Mistake(
        "Too few indices",
        """
        @script.prim_func
        def clear(y: f32[Buffer, n, 4]) -> None:
            for i in range(n):
                y[i] = 0.0
        """,
        "y has 2 dims, got 1 index",
        "A buffer is read and written element by element: one index for each of its dims.",
        """
        @script.prim_func
        def clear(y: f32[Buffer, n, 4]) -> None:
            for i, j in T.grid(n, 4):
                y[i, j] = 0.0
        """,
        hint="its shape is (n, 4)",
    ),
    Mistake(
        "A slice in a kernel",
        """
        @script.prim_func
        def clear(y: f32[Buffer, 4]) -> None:
            y[0:4] = 0.0
        """,
        "y is accessed one element at a time, got a slice",
        "Kernels have no operations on whole arrays; loops say in which order elements are met.",
        """
        @script.prim_func
        def clear(y: f32[Buffer, 4]) -> None:
            for i in T.vectorized(4):
                y[i] = 0.0
        """,
        hint="loop over it; slices are for T.reads and T.writes",
    ),
    Mistake(
        "A name bound twice",
        """
        @script.prim_func
        def total(x: f32[Buffer, 4], y: f32[Buffer, ()]) -> None:
            s = 0.0
            for i in range(4):
                s = s + x[i]
            y[()] = s
        """,
        "the name 's' is defined twice",
        "A name in a prim func stands for one value, as in mathematics. What changes is memory.",
        """
        @script.prim_func
        def total(x: f32[Buffer, 4], y: f32[Buffer, ()]) -> None:
            y[()] = 0.0
            for i in range(4):
                y[()] = y[()] + x[i]
        """,
        hint="names in a prim_func stand for one value; keep changing values in a buffer",
    ),
    Mistake(
        "Operands of two dtypes",
        """
        @script.prim_func
        def scale(x: f32[Buffer, 4], k: i32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * k[i]
        """,
        "the operands are float32 and int32, expected one dtype",
        "No dtype is converted silently; literals alone take the other operand's.",
        """
        @script.prim_func
        def scale(x: f32[Buffer, 4], k: i32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * T.cast("float32", k[i])
        """,
        hint='convert one: T.cast("float32", ...)',
    ),
    Mistake(
        "A literal that the dtype can't hold",
        """
        @script.prim_func
        def fill(y: i32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = 1.5
        """,
        "the literal 1.5 is no int32",
        "A literal takes the dtype of what it meets, if it is a number of it.",
        """
        @script.prim_func
        def fill(y: i32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = 2
        """,
        hint='convert the other side, T.cast("float32", ...), or write T.imm("int32", ...)',
    ),
    Mistake(
        "Integers divided by /",
        """
        @script.prim_func
        def halve(x: i32[Buffer, 4], y: i32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] / 2
        """,
        "/ is for floats, got int32",
        "The quotient of integers has to be rounded: // rounds down, T.truncdiv toward zero.",
        """
        @script.prim_func
        def halve(x: i32[Buffer, 4], y: i32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] // 2
        """,
        hint="write // , or T.cast the operands",
    ),
    Mistake(
        "A condition that is no bool",
        """
        @script.prim_func
        def mask(k: i32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                if k[i]:
                    y[i] = 1.0
        """,
        "a condition must be a bool, got int32",
        "Numbers have no truth value in a program; a comparison says what is meant.",
        """
        @script.prim_func
        def mask(k: i32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                if k[i] != 0:
                    y[i] = 1.0
        """,
        hint="compare it with something",
    ),
    Mistake(
        "A size that no parameter tells",
        """
        @script.prim_func
        def fill(y: f32[Buffer, n]) -> None:
            for i in range(m):
                y[i] = 0.0
        """,
        "the symbol 'm' is undefined: no parameter's shape has it",
        "A symbol is known by the shape of a buffer that has it; others have to be given.",
        """
        @script.prim_func
        def fill(y: f32[Buffer, n], m: T.size) -> None:
            for i in range(m):
                y[i] = 0.0
        """,
        hint="use it in a buffer's shape, or add a parameter m: T.size",
    ),
    Mistake(
        "A reduction that is not declared",
        """
        @script.prim_func
        def total(x: f32[Buffer, 4, 8], y: f32[Buffer, 4]) -> None:
            for i, k in T.grid(4, 8):
                with T.block("total"):
                    vi, vk = T.axis.remap("SS", i, k)
                    with T.init():
                        y[vi] = 0.0
                    y[vi] = y[vi] + x[vi, vk]
        """,
        "the block 'total' has an init but no reduce axis",
        "An init runs before the first step of a reduction, so one axis must be of kind R. The "
        "kinds are what schedules rely on: S axes may run in any order, R axes are summed over.",
        """
        @script.prim_func
        def total(x: f32[Buffer, 4, 8], y: f32[Buffer, 4]) -> None:
            for i, k in T.grid(4, 8):
                with T.block("total"):
                    vi, vk = T.axis.remap("SR", i, k)
                    with T.init():
                        y[vi] = 0.0
                    y[vi] = y[vi] + x[vi, vk]
        """,
        hint="make an axis of kind R: T.axis.reduce(extent, k)",
    ),
    Mistake(
        "An operator of graph functions in a kernel",
        """
        @script.prim_func
        def relu(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = R.nn.relu(x[i])
        """,
        "R.nn.relu is for functions, this is a prim_func",
        "R works on whole tensors, T on scalars.",
        """
        @script.prim_func
        def relu(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = T.max(x[i], 0.0)
        """,
        hint="the scalar functions of kernels are T's: T.exp(x), T.max(x, 0.0)",
    ),
    Mistake(
        "A scalar function that there is not",
        """
        @script.prim_func
        def grow(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = T.expp(x[i])
        """,
        "T.expp is no expression of the language",
        "`dir(T)` lists all words of kernels, and `help(T.exp)` tells of one.",
        """
        @script.prim_func
        def grow(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = T.exp(x[i])
        """,
        hint="did you mean T.exp, T.exp2, T.expm1?",
    ),
    Mistake(
        "An argument that a word does not take",
        """
        @script.prim_func
        def fill(y: f32[Buffer, 8]) -> None:
            for i in T.serial(0, 8, step=2):
                y[i] = 0.0
        """,
        "T.serial has no parameter 'step'",
        "What a word takes is its signature; nothing else is ignored.",
        """
        @script.prim_func
        def fill(y: f32[Buffer, 8]) -> None:
            for i in T.serial(0, 4):
                y[i * 2] = 0.0
        """,
        hint="T.serial(begin, end=None, *, attrs=None)",
    ),
    Mistake(
        "A kernel that returns",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4]) -> f32[Tensor, 4]:
            return x * 2.0
        """,
        "a prim_func returns nothing",
        "A kernel writes buffers that it is given, outputs last; who calls it allocates them.",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * 2.0
        """,
        hint="write -> None, and a buffer parameter for each output",
    ),
    Mistake(
        "A kernel called for its value",
        """
        @script.prim_func
        def twice(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
            for i in range(n):
                b[i] = a[i] * 2.0


        @script.prim_func
        def four_times(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
            b[0] = twice(a, b)
        """,
        "'twice' is a function of the program: kernels call kernels only, as a statement, and "
        "those that are defined above",
        "A kernel is called as a statement, with the buffers it writes; its body stands there.",
        """
        @script.prim_func
        def twice(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
            for i in range(n):
                b[i] = a[i] * 2.0


        @script.prim_func
        def four_times(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
            twice(a, b)
            twice(b, b)
        """,
        hint="a graph function calls one behind the other: R.call_tir(...); "
        "T.call_extern calls a function of C",
    ),
)
