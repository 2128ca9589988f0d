"""Time steps, while loops, conditions, predicates, ragged and triangular loops, nested blocks."""

from __future__ import annotations

from .program import Program

CONTROL: dict[str, Program] = {
    "time": Program(
        "a: f32[Buffer, 6], c: f32[Buffer, 3, 6]",
        """
t = T.alloc((6,), "float32")
for r in range(3):
    for i in range(6):
        with T.block("p"):
            vi = T.axis.spatial(6, i)
            t[vi] = a[vi] * 2.0
    for i in range(6):
        with T.block("q"):
            vr, vi = T.axis.remap("SS", r, i)
            c[vr, vi] = t[vi] + 1.0
    for i in range(6):
        with T.block("u"):
            vi = T.axis.spatial(6, i)
            a[vi] = a[vi] + 3.0
""",
    ),
    "time2": Program(
        "a: f32[Buffer, 6], c: f32[Buffer, 6]",
        """
t = T.alloc((6,), "float32")
for i in range(6):
    with T.block("p"):
        vi = T.axis.spatial(6, i)
        t[vi] = a[vi] * 2.0
for r in range(3):
    for i in range(6):
        with T.block("q"):
            vi = T.axis.spatial(6, i)
            c[vi] = c[vi] + t[vi]
    for i in range(6):
        with T.block("u"):
            vi = T.axis.spatial(6, i)
            a[vi] = a[vi] + 3.0
""",
    ),
    "while1": Program(
        "a: f32[Buffer, 6], s: i32[Buffer, 1], c: f32[Buffer, 6]",
        """
t = T.alloc((6,), "float32")
s[0] = 0
for i in range(6):
    with T.block("p"):
        vi = T.axis.spatial(6, i)
        t[vi] = a[vi] * 2.0
while s[0] < 3:
    for i in range(6):
        with T.block("q"):
            vi = T.axis.spatial(6, i)
            c[vi] = c[vi] + t[vi]
    for i in range(6):
        with T.block("u"):
            vi = T.axis.spatial(6, i)
            a[vi] = a[vi] + 3.0
    s[0] = s[0] + 1
""",
    ),
    "while2": Program(
        "a: f32[Buffer, 6], s: i32[Buffer, 1], c: f32[Buffer, 6]",
        """
t = T.alloc((6,), "float32")
s[0] = 0
while s[0] < 3:
    for i in range(6):
        with T.block("p"):
            vi = T.axis.spatial(6, i)
            t[vi] = a[vi] * 2.0
    for i in range(6):
        with T.block("q"):
            vi = T.axis.spatial(6, i)
            c[vi] = t[vi]
    for i in range(6):
        with T.block("u"):
            vi = T.axis.spatial(6, i)
            a[vi] = a[vi] + c[vi]
    s[0] = s[0] + 1
""",
    ),
    "while3": Program(
        "a: f32[Buffer, 6], s: i32[Buffer, 1], c: f32[Buffer, 6]",
        """
t = T.alloc((6,), "float32")
for i in range(6):
    with T.block("p"):
        vi = T.axis.spatial(6, i)
        t[vi] = a[vi] * 2.0
for i in range(6):
    with T.block("w"):
        vi = T.axis.spatial(6, i)
        while c[vi] < 4.0:
            c[vi] = c[vi] + 1.0
for i in range(6):
    with T.block("q"):
        vi = T.axis.spatial(6, i)
        c[vi] = c[vi] + t[vi]
""",
    ),
    "pred1": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        T.where(k > 0)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
""",
    ),
    "pred2": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        T.where(i + k < 6)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
""",
    ),
    "pred3": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4], f: i32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        T.where(f[i] > 1)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
for i in range(4):
    with T.block("e"):
        vi = T.axis.spatial(4, i)
        f[vi] = 2 - f[vi]
""",
    ),
    "pred4": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        T.where(k < 4 and i > 0)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
""",
    ),
    "if1": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    if k > 1:
        with T.block("b"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += a[vi, vk]
""",
    ),
    "if2": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
for i in range(8):
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        t[vi] = a[vi] * 2.0
for i in range(8):
    if i < 4:
        with T.block("q"):
            vi = T.axis.spatial(8, i)
            c[vi] = t[vi] + 1.0
""",
    ),
    "if3": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
for i in range(8):
    if i < 4:
        with T.block("p"):
            vi = T.axis.spatial(8, i)
            t[vi] = a[vi] * 2.0
    else:
        with T.block("p2"):
            vi = T.axis.spatial(8, i)
            t[vi] = a[vi] * 3.0
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        c[vi] = t[vi] + 1.0
""",
    ),
    "if4": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i in range(4):
    if i < 2:
        with T.block("z"):
            vi = T.axis.spatial(4, i)
            c[vi] = 0.0
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        c[vi] += a[vi, vk]
""",
    ),
    "if5": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8], d: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
for i in range(8):
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        t[vi] = a[vi] * 2.0
if d[0] > 0.0:
    for i in range(8):
        with T.block("q"):
            vi = T.axis.spatial(8, i)
            c[vi] = t[vi] + 1.0
""",
    ),
    "if6": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        if vi > 3:
            c[vi] = a[vi]
for i in range(8):
    with T.block("r"):
        vi = T.axis.spatial(8, i)
        a[vi] = c[vi] * 2.0
""",
    ),
    "begin": Program(
        "a: f32[Buffer, 10], c: f32[Buffer, 10]",
        """
t = T.alloc((10,), "float32")
for i in range(2, 8):
    with T.block("p"):
        vi = T.axis.spatial((2, 8), i)
        t[vi] = a[vi + 1] * 2.0
for i in range(3, 7):
    with T.block("q"):
        vi = T.axis.spatial((3, 7), i)
        c[vi] = t[vi] + t[9 - vi]
""",
    ),
    "beginreduce": Program(
        "a: f32[Buffer, 4, 10], c: f32[Buffer, 4]",
        """
for i in range(4):
    for k in range(2, 9):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce((2, 9), k)
            with T.init():
                c[vi] = 0.0
            c[vi] += a[vi, vk]
""",
    ),
    "triangle": Program(
        "a: f32[Buffer, 6, 6], c: f32[Buffer, 6]",
        """
for i in range(6):
    for k in range(i + 1):
        with T.block("b"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.reduce(6, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += a[vi, vk]
""",
    ),
    "triangle2": Program(
        "a: f32[Buffer, 6, 6], c: f32[Buffer, 6, 6]",
        """
t = T.alloc((6, 6), "float32")
for i in range(6):
    for j in range(i, 6):
        with T.block("p"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = a[vi, vj] * 2.0
for i in range(6):
    for j in range(i, 6):
        with T.block("q"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = t[vi, vj] + 1.0
""",
    ),
    "ragged": Program(
        "a: f32[Buffer, 4, 4], c: f32[Buffer, 4], l: i64[Buffer, 4]",
        """
for i in range(4):
    for k in range(l[i]):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(4, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += a[vi, vk]
""",
    ),
    "growing": Program(
        "a: f32[Buffer, 4, 4], c: f32[Buffer, 4, 4], l: i64[Buffer, 1]",
        """
for i in range(4):
    for k in range(l[0]):
        with T.block("b"):
            vi, vk = T.axis.remap("SS", i, k)
            c[vi, vk] = a[vi, vk]
    with T.block("g"):
        l[0] = T.min(l[0] + 1, 4)
""",
    ),
    "shrinking": Program(
        "a: f32[Buffer, 4], c: f32[Buffer, 4], l: i64[Buffer, 1]",
        """
for k in range(l[0]):
    with T.block("b"):
        vk = T.axis.spatial(4, k)
        c[vk] = a[vk]
        l[0] = 0
""",
    ),
    "lets": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4, 6]",
        """
for i in range(4):
    half = i // 2
    for j in range(6):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(6, j)
            vh = T.axis.spatial(2, half)
            c[vi, vj] = a[vh, vj]
""",
    ),
    "nested": Program(
        "a: f32[Buffer, 8, 6], c: f32[Buffer, 8]",
        """
for i in range(4):
    with T.block("o"):
        vo = T.axis.spatial(4, i)
        for ii, k in T.grid(2, 6):
            with T.block("b"):
                vi = T.axis.spatial(8, vo * 2 + ii)
                vk = T.axis.reduce(6, k)
                with T.init():
                    c[vi] = 0.0
                c[vi] += a[vi, vk]
""",
    ),
    "nestedtmp": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
t = T.alloc((2,), "float32")
for i in range(4):
    with T.block("o"):
        vo = T.axis.spatial(4, i)
        for ii in range(2):
            with T.block("b"):
                vi = T.axis.spatial(2, ii)
                t[vi] = a[vo * 2 + vi]
        for ii in range(2):
            with T.block("d"):
                vi = T.axis.spatial(2, ii)
                c[vo * 2 + vi] = t[1 - vi]
""",
    ),
    "nestedalloc": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
for i in range(4):
    with T.block("o"):
        vo = T.axis.spatial(4, i)
        t = T.alloc((2,), "float32")
        for ii in range(2):
            with T.block("b"):
                vi = T.axis.spatial(2, ii)
                t[vi] = a[vo * 2 + vi]
        for ii in range(2):
            with T.block("d"):
                vi = T.axis.spatial(2, ii)
                c[vo * 2 + vi] = t[1 - vi]
""",
    ),
    "opaqueblock": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
for r in range(2):
    with T.block("o"):
        for i in range(8):
            c[i] = c[i] + a[i]
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        a[vi] = c[vi]
""",
    ),
    "loose": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8], s: f32[Buffer, 1]",
        """
for i in range(8):
    s[0] = s[0] + 1.0
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        c[vi] = a[vi] + s[0]
""",
    ),
    "repeat": Program(
        "a: f32[Buffer, 6], c: f32[Buffer, 6]",
        """
for r in range(3):
    for i in range(6):
        with T.block("p"):
            vi = T.axis.spatial(6, i)
            c[vi] = c[vi] + a[vi]
""",
    ),
    "asserted": Program(
        "a: f32[Buffer, n], c: f32[Buffer, n]",
        """
assert n > 0, "empty"
t = T.alloc((n,), "float32")
for i in range(n):
    with T.block("p"):
        vi = T.axis.spatial(n, i)
        t[vi] = a[vi]
for i in range(n):
    with T.block("q"):
        vi = T.axis.spatial(n, i)
        c[vi] = t[vi]
""",
        ({"n": 3}, {"n": 5}),
    ),
}
