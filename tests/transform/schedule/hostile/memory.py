"""Buffers with two writers, read again, written again, strided, used in part, of unknown size."""

from __future__ import annotations

from .program import Program

MEMORY: dict[str, Program] = {
    "twowriters": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
for i in range(4):
    with T.block("p"):
        vi = T.axis.spatial(4, i)
        t[vi] = a[vi] * 2.0
for i in range(4):
    with T.block("p2"):
        vi = T.axis.spatial(4, i)
        t[vi + 4] = a[vi + 4] * 3.0
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        c[vi] = t[7 - vi] + 1.0
""",
    ),
    "rewrite": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8], d: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
for i in range(8):
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        t[vi] = a[vi] * 2.0
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        c[vi] = t[vi] + 1.0
for i in range(8):
    with T.block("p2"):
        vi = T.axis.spatial(8, i)
        t[vi] = c[7 - vi] * 3.0
for i in range(8):
    with T.block("q2"):
        vi = T.axis.spatial(8, i)
        d[vi] = t[vi] + a[vi]
""",
    ),
    "war": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8], d: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
for i in range(8):
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        t[vi] = a[vi] * 2.0
for i in range(8):
    with T.block("k"):
        vi = T.axis.spatial(8, i)
        a[vi] = 1.0
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        d[vi] = t[vi] + c[vi]
for i in range(8):
    with T.block("q2"):
        vi = T.axis.spatial(8, i)
        c[vi] = d[vi] + a[vi]
""",
    ),
    "samenest": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4, 6]",
        """
t = T.alloc((4, 6), "float32")
for i in range(4):
    for j in range(6):
        with T.block("p"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = a[vi, vj] * 2.0
    for j in range(6):
        with T.block("q"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = t[vi, 5 - vj] + 1.0
""",
    ),
    "carried": Program(
        "a: f32[Buffer, 5, 6], c: f32[Buffer, 4, 6]",
        """
for i in range(4):
    for j in range(6):
        with T.block("p"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] * 2.0
    for j in range(6):
        with T.block("q"):
            vi, vj = T.axis.remap("SS", i, j)
            a[vi + 1, vj] = c[vi, 5 - vj] + 1.0
""",
    ),
    "partial": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
for i in range(4):
    with T.block("p"):
        vi = T.axis.spatial(8, i * 2)
        t[vi] = a[vi] * 2.0
for i in range(4):
    with T.block("q"):
        vi = T.axis.spatial(8, i * 2)
        c[vi] = t[vi] + 1.0
""",
    ),
    "guard": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 10]",
        """
t = T.alloc((10,), "float32")
for i in range(10):
    with T.block("p"):
        vi = T.axis.spatial(10, i)
        t[vi] = T.select(vi > 0 and vi < 9, a[vi - 1], 0.0)
for i in range(10):
    with T.block("q"):
        vi = T.axis.spatial(10, i)
        c[vi] = T.select(vi < 9, t[vi + 1], 1.0) + t[vi]
""",
    ),
    "twostores": Program(
        "a: f32[Buffer, 8], c: f32[Buffer, 8], d: f32[Buffer, 8]",
        """
t = T.alloc((8,), "float32")
u = T.alloc((8,), "float32")
for i in range(8):
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        t[vi] = a[vi] + 1.0
        u[7 - vi] = a[vi] * 2.0
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        c[vi] = t[vi] + u[vi]
        d[vi] = t[7 - vi]
""",
    ),
    "strided": Program(
        "a: f32[Buffer, 8, 8], c: f32[Buffer, 8]",
        """
t = T.alloc((8, 8), "float32", strides=(9, 1))
for i, j in T.grid(8, 8):
    with T.block("p"):
        vi, vj = T.axis.remap("SS", i, j)
        t[vi, vj] = a[vi, vj] * 2.0
for i, k in T.grid(8, 8):
    with T.block("q"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] += t[vk, 7 - vi]
""",
    ),
    "chainreduce": Program(
        "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
        """
t = T.alloc((4, 6), "float32")
u = T.alloc((4,), "float32")
for i, j in T.grid(4, 6):
    with T.block("p"):
        vi, vj = T.axis.remap("SS", i, j)
        t[vi, vj] = a[vi, vj] * 2.0
for i, k in T.grid(4, 6):
    with T.block("s"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            u[vi] = 0.0
        u[vi] += t[vi, 5 - vk]
for i in range(4):
    with T.block("q"):
        vi = T.axis.spatial(4, i)
        c[vi] = u[vi] * c[vi]
""",
    ),
    "symbolic": Program(
        "a: f32[Buffer, n, m], c: f32[Buffer, n], d: f32[Buffer, n]",
        """
for i, k in T.grid(n, m):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
for i in range(n):
    with T.block("e"):
        vi = T.axis.spatial(n, i)
        d[vi] = c[vi] + d[vi]
""",
        ({"n": 3, "m": 4}, {"n": 0, "m": 2}, {"n": 2, "m": 0}, {"n": 5, "m": 1}),
    ),
    "symchain": Program(
        "a: f32[Buffer, n + 2], c: f32[Buffer, n]",
        """
t = T.alloc((n + 2,), "float32")
u = T.alloc((n + 1,), "float32")
for i in range(n + 2):
    with T.block("p"):
        vi = T.axis.spatial(n + 2, i)
        t[vi] = a[vi] * 2.0
for i in range(n + 1):
    with T.block("q"):
        vi = T.axis.spatial(n + 1, i)
        u[vi] = t[vi] + t[vi + 1]
for i in range(n):
    with T.block("r"):
        vi = T.axis.spatial(n, i)
        c[vi] = u[vi] * u[vi + 1]
""",
        ({"n": 3}, {"n": 0}, {"n": 6}),
    ),
    "rolled": Program(
        "a: f32[Buffer, 6], c: f32[Buffer, 6]",
        """
t = T.alloc((2,), "float32")
u = T.alloc((6,), "float32")
for i in range(6):
    with T.block("p"):
        vi = T.axis.spatial(6, i)
        t[vi % 2] = a[vi] * 2.0
    with T.block("q"):
        vi = T.axis.spatial(6, i)
        u[vi] = t[vi % 2] + 1.0
for i in range(6):
    with T.block("e"):
        vi = T.axis.spatial(6, i)
        c[vi] = u[vi] * u[vi]
""",
    ),
    "matmul": Program(
        "a: f32[Buffer, 4, 5], b: f32[Buffer, 5, 6], c: f32[Buffer, 4, 6], d: f32[Buffer, 4, 6]",
        """
for i, j, k in T.grid(4, 6, 5):
    with T.block("b"):
        vi, vj, vk = T.axis.remap("SSR", i, j, k)
        with T.init():
            c[vi, vj] = 0.0
        c[vi, vj] += a[vi, vk] * b[vk, vj]
for i, j in T.grid(4, 6):
    with T.block("e"):
        vi, vj = T.axis.remap("SS", i, j)
        d[vi, vj] = T.max(c[vi, vj], 0.0)
""",
    ),
    "softmax": Program(
        "a: f32[Buffer, 3, n], c: f32[Buffer, 3, n]",
        """
x = T.alloc((3,), "float32")
e = T.alloc((3, n), "float32")
z = T.alloc((3,), "float32")
for i, k in T.grid(3, n):
    with T.block("mx"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            x[vi] = -1000.0
        x[vi] = T.max(x[vi], a[vi, vk])
for i, k in T.grid(3, n):
    with T.block("ex"):
        vi, vk = T.axis.remap("SS", i, k)
        e[vi, vk] = T.exp(a[vi, vk] - x[vi])
for i, k in T.grid(3, n):
    with T.block("sm"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            z[vi] = 0.0
        z[vi] = z[vi] + e[vi, vk]
for i, k in T.grid(3, n):
    with T.block("dv"):
        vi, vk = T.axis.remap("SS", i, k)
        c[vi, vk] = e[vi, vk] / z[vi]
""",
        ({"n": 4}, {"n": 1}, {"n": 0}),
    ),
    "lines": Program(
        "a: f32[Buffer, 6, 5], w: f32[Buffer, 2, 2], c: f32[Buffer, 5, 4]",
        """
t = T.alloc((5, 4), "float32")
for i, j, p, q in T.grid(5, 4, 2, 2):
    with T.block("s"):
        vi, vj, vp, vq = T.axis.remap("SSRR", i, j, p, q)
        with T.init():
            t[vi, vj] = 0.0
        t[vi, vj] += a[vi + vp, vj + vq] * w[vp, vq]
for i, j in T.grid(5, 4):
    with T.block("out"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = T.max(t[vi, vj], 0.0)
""",
    ),
}
