"""What may be wrong with a tensor but its sizes: the function that finds it, and how it is told."""

from __future__ import annotations

from unity.codegen import dlpack

FAULTS = (
    "is NULL, or has no data",
    "is not on the cpu",
    "is not {dtype}",
    "has not {rank} axes",
    "is not in C order",
    "is not aligned to its elements",
)
"""By what `unity_c_fault` gives, which is 1 more."""


def fault_text() -> str:
    """``i32 unity_c_fault(tensor, rank, dtype, bytes of an element)``."""
    return _FAULT.format(
        ndim=dlpack.NDIM, device=dlpack.DEVICE, dtype=dlpack.DTYPE, shape=dlpack.SHAPE,
        strides=dlpack.STRIDES, offset=dlpack.BYTE_OFFSET, cpu=dlpack.CPU,
    )  # fmt: skip


_FAULT = """\
; 0, or 1 + the index of what is wrong with a tensor.
define internal i32 @unity_c_fault(ptr %tensor, i32 %rank, i32 %type, i64 %size) nounwind {{
entry:
  %null = icmp eq ptr %tensor, null
  br i1 %null, label %f1, label %device
device:
  %at.device = getelementptr i8, ptr %tensor, i64 {device}
  %where = load i32, ptr %at.device
  %here = icmp eq i32 %where, {cpu}
  br i1 %here, label %dtype, label %f2
dtype:
  %at.dtype = getelementptr i8, ptr %tensor, i64 {dtype}
  %word = load i32, ptr %at.dtype
  %same = icmp eq i32 %word, %type
  br i1 %same, label %ndim, label %f3
ndim:
  %at.ndim = getelementptr i8, ptr %tensor, i64 {ndim}
  %axes = load i32, ptr %at.ndim
  %fits = icmp eq i32 %axes, %rank
  br i1 %fits, label %order, label %f4
order:
  %at.shape = getelementptr i8, ptr %tensor, i64 {shape}
  %shape = load ptr, ptr %at.shape
  %at.strides = getelementptr i8, ptr %tensor, i64 {strides}
  %strides = load ptr, ptr %at.strides
  %plain = icmp eq ptr %strides, null
  %last = sext i32 %rank to i64
  br label %next
next:
  %i = phi i64 [ %last, %order ], [ %j, %step ]
  %count = phi i64 [ 1, %order ], [ %grown, %step ]
  %odd = phi i1 [ false, %order ], [ %odder, %step ]
  %end = icmp eq i64 %i, 0
  br i1 %end, label %counted, label %axis
axis:
  %j = sub i64 %i, 1
  %at.n = getelementptr i64, ptr %shape, i64 %j
  %n = load i64, ptr %at.n
  br i1 %plain, label %step, label %stride
stride:
  %at.s = getelementptr i64, ptr %strides, i64 %j
  %s = load i64, ptr %at.s
  br label %step
step:
  %actual = phi i64 [ %count, %axis ], [ %s, %stride ]
  %differs = icmp ne i64 %actual, %count
  %long = icmp ne i64 %n, 1
  %wrong = and i1 %differs, %long
  %odder = or i1 %odd, %wrong
  %grown = mul i64 %count, %n
  br label %next
counted:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %f0, label %ordered
ordered:
  br i1 %odd, label %f5, label %data
data:
  %base = load ptr, ptr %tensor
  %nothing = icmp eq ptr %base, null
  br i1 %nothing, label %f1, label %aligned
aligned:
  %at.offset = getelementptr i8, ptr %tensor, i64 {offset}
  %offset = load i64, ptr %at.offset
  %begin = ptrtoint ptr %base to i64
  %first = add i64 %begin, %offset
  %rest = urem i64 %first, %size
  %straight = icmp eq i64 %rest, 0
  br i1 %straight, label %f0, label %f6
f0:
  ret i32 0
f1:
  ret i32 1
f2:
  ret i32 2
f3:
  ret i32 3
f4:
  ret i32 4
f5:
  ret i32 5
f6:
  ret i32 6
}}
"""
