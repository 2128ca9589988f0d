"""Blocks that promise too much: axes that are not independent, inits that come late or never."""

from __future__ import annotations

from .program import Program

PROMISES: dict[str, Program] = {
    "inplace": Program(
        "a: f32[Buffer, 8]",
        """
for i in range(8):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        a[vi] = a[vi] * 2.0
""",
    ),
    "shift": Program(
        "a: f32[Buffer, 9]",
        """
for i in range(8):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        a[vi + 1] = a[vi] + 1.0
""",
    ),
    "shift2": Program(
        "a: f32[Buffer, 8, 9]",
        """
for i, j in T.grid(8, 8):
    with T.block("b"):
        vi, vj = T.axis.remap("SS", i, j)
        a[vi, vj + 1] = a[7 - vi, vj] + 1.0
""",
    ),
    "race": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 4]",
        """
for i in range(8):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        c[vi // 2] = a[vi]
""",
    ),
    "race0": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, j in T.grid(4, 6):
    with T.block("b"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi] = a[vi, vj]
""",
    ),
    "last": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, j in T.grid(4, 6):
    with T.block("b"):
        vi, vj = T.axis.remap("SR", i, j)
        c[vi] = a[vi, vj]
""",
    ),
    "accum": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        c[vi] += a[vi, vk]
""",
    ),
    "horner": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] = c[vi] * 2.0 + a[vi, vk]
""",
    ),
    "horner2": Program(
        "a: f32[Buffer, 4, 3, 2], c: f32[Buffer, 4]",
        """
for i, k, l in T.grid(4, 3, 2):
    with T.block("b"):
        vi, vk, vl = T.axis.remap("SRR", i, k, l)
        with T.init():
            c[vi] = 1.0
        c[vi] = c[vi] * 2.0 + a[vi, vk, vl]
""",
    ),
    "crossed": Program(
        "a: f32[Buffer, 4, 3, 2], c: f32[Buffer, 4]",
        """
for i, k, l in T.grid(4, 3, 2):
    with T.block("b"):
        vi, vl, vk = T.axis.remap("SRR", i, l, k)
        with T.init():
            c[vi] = 1.0
        c[vi] = c[vi] * 2.0 + a[vi, vk, vl]
""",
    ),
    "minus": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 3.0
        c[vi] = a[vi, vk] - c[vi]
""",
    ),
    "initbias": Program(
        "a: f32[Buffer, 4, 6], d: f32[Buffer, 4], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = d[vi]
        c[vi] += a[vi, vk]
for i in range(4):
    with T.block("e"):
        vi = T.axis.spatial(4, i)
        d[vi] = c[vi] + 1.0
""",
    ),
    "prefix": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 9]",
        """
for i in range(8):
    with T.block("b"):
        vi = T.axis.opaque(8, i)
        c[vi + 1] = c[vi] + a[vi]
""",
    ),
    "half": Program(
        "a: f32[Buffer, 6], c: f32[Buffer, 6]",
        """
for i in range(12):
    with T.block("p"):
        vi = T.axis.spatial(6, i // 2)
        c[vi] = c[vi] + a[vi]
""",
    ),
    "halfreduce": Program(
        "a: f32[Buffer, 4, 3], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("p"):
        vi = T.axis.spatial(4, i)
        vk = T.axis.reduce(3, k // 2)
        with T.init():
            c[vi] = 0.0
        c[vi] = c[vi] + a[vi, vk]
""",
    ),
    "modreduce": Program(
        "a: f32[Buffer, 4, 3], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("p"):
        vi = T.axis.spatial(4, i)
        vk = T.axis.reduce(3, k % 3)
        with T.init():
            c[vi] = 0.0
        c[vi] = c[vi] + a[vi, vk]
""",
    ),
    "fused": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for f in range(24):
    with T.block("p"):
        vi = T.axis.spatial(4, f // 6)
        vk = T.axis.reduce(6, f % 6)
        with T.init():
            c[vi] = 0.0
        c[vi] = c[vi] + a[vi, vk]
""",
    ),
    "fusedback": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for f in range(24):
    with T.block("p"):
        vi = T.axis.spatial(4, f % 4)
        vk = T.axis.reduce(6, 5 - f // 4)
        with T.init():
            c[vi] = 0.0
        c[vi] = c[vi] + a[vi, vk]
""",
    ),
    "backk": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("p"):
        vi = T.axis.spatial(4, 3 - i)
        vk = T.axis.reduce(6, 5 - k)
        with T.init():
            c[vi] = 0.0
        c[vi] = c[vi] + a[vi, vk]
""",
    ),
    "scatter": Program(
        "a: f32[Buffer, 8], x: i64[Buffer, 8], c: f32[Buffer, 4]",
        """
for i in range(8):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        c[x[vi]] = a[vi]
""",
    ),
    "gather": Program(
        "a: f32[Buffer, 4], x: i64[Buffer, 8], c: f32[Buffer, 8]",
        """
t = T.alloc((4,), "float32")
for i in range(4):
    with T.block("p"):
        vi = T.axis.spatial(4, i)
        t[vi] = a[vi] + 1.0
for i in range(8):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        c[vi] = t[x[vi]]
""",
    ),
    "gatherbind": Program(
        "a: f32[Buffer, 4], x: i64[Buffer, 8], c: f32[Buffer, 4]",
        """
for i in range(8):
    with T.block("b"):
        vi = T.axis.spatial(4, x[i])
        c[vi] = c[vi] + a[vi]
""",
    ),
    "argmax": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4], d: i64[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = -100.0
            d[vi] = 0
        if a[vi, vk] > c[vi]:
            d[vi] = vk
            c[vi] = a[vi, vk]
""",
    ),
    "loopvar": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
for r in range(3):
    for i in range(8):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            c[vi] = c[vi] * 2.0 + a[(vi + r) % 8]
""",
    ),
    "loopvar2": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 3, 8]",
        """
t = T.alloc((8,), "float32")
for r in range(3):
    for i in range(8):
        with T.block("p"):
            vi = T.axis.spatial(8, i)
            t[vi] = a[(vi + r) % 8]
    for i in range(8):
        with T.block("q"):
            vr, vi = T.axis.remap("SS", r, i)
            c[vr, vi] = t[vi]
""",
    ),
    "loopvar3": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
for i in range(8):
    with T.block("b"):
        c[i] = a[7 - i]
""",
    ),
    "preddep": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
for i in range(7):
    with T.block("b"):
        vi = T.axis.spatial(7, i)
        T.where(c[i] > 0.0)
        c[vi + 1] = a[vi]
""",
    ),
    "diag": Program(
        "a: f32[Buffer, 6], c: f32[Buffer, 6, 6]",
        """
for i in range(6):
    with T.block("q"):
        vi = T.axis.spatial(6, i)
        c[vi, vi] = a[vi]
for i, j in T.grid(6, 6):
    with T.block("r"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = c[vi, vj] + 1.0
""",
    ),
    "unused_axis": Program(
        "a: f32[Buffer, 4], c: f32[Buffer, 4], d: f32[Buffer, 2, 4]",
        """
for h, i in T.grid(2, 4):
    with T.block("p"):
        vh, vi = T.axis.remap("SS", h, i)
        d[vh, vi] = c[vi] + a[vi]
for h, i in T.grid(2, 4):
    with T.block("q"):
        vh, vi = T.axis.remap("SS", h, i)
        c[vi] = d[vh, vi]
""",
    ),
    "initread": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = c[vi] * 2.0
        c[vi] += a[vi, vk]
""",
    ),
    "reduce2out": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4, 6], d: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            d[vi] = 0.0
        d[vi] = d[vi] + a[vi, vk]
        c[vi, vk] = d[vi]
""",
    ),
    "selfread": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
for i, k in T.grid(4, 6):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] = c[vi] + a[vi, vk] * c[3 - vi]
""",
    ),
    "declared": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
for i in range(8):
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        T.reads(a[vi])
        T.writes(c[vi])
        c[vi] = c[vi - T.min(vi, 1)] + a[vi]
""",
    ),
    "declared2": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8], d: f32[Buffer, 8]",
        """
for i in range(8):
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        T.reads(a[vi])
        T.writes(c[vi])
        c[vi] = a[vi]
        d[7 - vi] = a[vi] * 2.0
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        T.reads(c[vi])
        T.writes(a[vi])
        a[vi] = c[vi] + d[vi]
""",
    ),
    "interleaved": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4], d: f32[Buffer, 4]",
        """
for i in range(4):
    for k in range(6):
        with T.block("s"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += a[vi, vk]
        with T.block("u"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                d[vi] = 1.0
            d[vi] = d[vi] + c[vi]
""",
    ),
    "unit": Program(
        "a: f32[Buffer, 1, 6], c: f32[Buffer, 1, 1]",
        """
for i, j, k in T.grid(1, 1, 6):
    with T.block("s"):
        vi, vj, vk = T.axis.remap("SSR", i, j, k)
        with T.init():
            c[vi, vj] = 0.0
        c[vi, vj] += a[vj, vk]
""",
    ),
}
