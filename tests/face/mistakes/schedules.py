"""Mistakes in schedules, in programs built in Python, and in tuning."""

from __future__ import annotations

from .mistake import Mistake

HEAD = """
        from unity.transform.schedule import Schedule


        @script.prim_func
        def matmul(a: f32[Buffer, 64, 32], b: f32[Buffer, 32, 16], c: f32[Buffer, 64, 16]) -> None:
            for i, j, k in T.grid(64, 16, 32):
                with T.block("matmul"):
                    vi, vj, vk = T.axis.remap("SSR", i, j, k)
                    with T.init():
                        c[vi, vj] = 0.0
                    c[vi, vj] += a[vi, vk] * b[vk, vj]


        s = Schedule(matmul.func)
"""

SCHEDULES = (
    Mistake(
        "A decorated kernel scheduled",
        HEAD
        + """
        Schedule(matmul)
        """,
        "Schedule, argument 1 'func': expected a PrimFunc, got <kernel matmul(a, b, c)>",
        "A schedule transforms the IR, which what a decorator makes holds as `func`.",
        HEAD
        + """
        Schedule(matmul.func)
        """,
        hint="what @script.prim_func makes has it: Schedule(kernel.func)",
    ),
    Mistake(
        "A block that there is not",
        HEAD
        + """
        s.get_loops("matmull")
        """,
        "there is no block 'matmull'",
        "Blocks are named by what `T.block` was given.",
        HEAD
        + """
        s.get_loops("matmul")
        """,
        hint="the blocks are: matmul",
    ),
    Mistake(
        "A split whose factors miss the extent",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.split(i, (10, 6))
        """,
        "split, argument 2 'factors': their product 60 is not known to reach 64",
        "One factor may be None: it becomes what is left, and a tail is guarded.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.split(i, (None, 8))
        """,
        hint="one factor may be None: it becomes what is left",
    ),
    Mistake(
        "Loops fused that stand apart",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.fuse(i, k)
        """,
        "fuse, argument 1 'loops': 'k' does not stand directly in 'i'",
        "Loops that become one stand directly in each other.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.fuse(i, j)
        """,
    ),
    Mistake(
        "A block inlined that is no formula",
        HEAD
        + """
        s.compute_inline("matmul")
        """,
        "compute_inline, argument 1 'block': 'matmul' is more than the store of one formula",
        "What is inlined is written in place of its reads: one store, and no reduction.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.cache_write("matmul", 0, "local", at=j)
        """,
    ),
    Mistake(
        "A tensor intrinsic that there is not",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.tensorize(k, "dot")
        """,
        "tensorize, argument 2 'intrinsic': there is no tensor intrinsic 'dot'",
        "Intrinsics are registered with what they compute, which is compared with the loops.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.unroll(k)
        """,
        hint="those registered: amx_bf16_16x16x32, amx_bf16_32x32x32, ...",
    ),
    Mistake(
        "A reduction on threads",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.parallel(k)
        """,
        "parallel, argument 1 'loop': it drives a reduce axis of block 'matmul'",
        "Every step of a schedule is checked to be legal: the numbers stay as they are.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.parallel(i)
        """,
    ),
    Mistake(
        "A loop that is gone",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.split(i, (None, 8))
        s.parallel(i)
        """,
        "the loop 'i' is gone",
        "A step gives the loops it makes; those it took are no more.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        outer, inner = s.split(i, (None, 8))
        s.parallel(outer)
        """,
        hint="it was split, fused or moved; get_loops again",
    ),
    Mistake(
        "A loop reordered with itself",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.reorder(j, j)
        """,
        "reorder, argument 1 'loops': each loop must be given once",
        "Loops are named in the order they are to have, each once; others stay where they are.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.reorder(k, j)
        """,
    ),
    Mistake(
        "A loop split after it was vectorized",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        s.vectorize(j)
        s.split(j, (None, 8))
        """,
        "split, argument 1 'loop': it is vectorized already",
        "What a loop becomes is said last: its lanes are one instruction.",
        HEAD
        + """
        i, j, k = s.get_loops("matmul")
        outer, inner = s.split(j, (None, 8))
        s.vectorize(inner)
        """,
        hint="split it before",
    ),
    Mistake(
        "A value of another builder",
        """
        one, other = unity.GraphBuilder(), unity.GraphBuilder()
        x = one.param("x", f32[Tensor, 4])
        other.op("exp", x)
        """,
        "'x' is no variable of 'main', or is bound in another body",
        "Values belong to the function that is being built.",
        """
        one = unity.GraphBuilder()
        x = one.param("x", f32[Tensor, 4])
        unity.compile(one.finish(one.op("exp", x)))
        """,
        hint="operands are what this builder's param, op and emit gave: in this body, or in one "
        "around it",
    ),
    Mistake(
        "A dtype instead of a type",
        """
        b = unity.GraphBuilder()
        b.param("x", "float32")
        """,
        "expected a type, got 'float32'",
        "A parameter has a shape as well; `f32[Tensor, ...]` leaves it open.",
        """
        b = unity.GraphBuilder()
        b.param("x", f32[Tensor, n, 4])
        """,
        hint='types look like f32[Tensor, n, 128]; a number is R.Prim("int64")',
    ),
    Mistake(
        "A kernel to tune that the program does not have",
        """
        @script.function
        def main(x: f32[Tensor, 64, 64]) -> f32[Tensor, 64, 64]:
            return R.matmul(x, x)


        unity.tune(main, kernels=["conv2d"])
        """,
        "the program has no kernel 'conv2d' to tune",
        "Kernels are named by the operators that they compute; `exe.kernels` lists them.",
        """
        @script.function
        def main(x: f32[Tensor, 64, 64]) -> f32[Tensor, 64, 64]:
            return R.matmul(x, x)


        print(unity.compile(main).kernels)
        """,
        hint="it has matmul",
    ),
)
