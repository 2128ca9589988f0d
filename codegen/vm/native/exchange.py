"""``unity_exchange``: tensors of other libraries as arguments of an entry, results in kind.

An entry that is given something other than arrays comes here before it gives up. Tensors whose type
is in the runtime's table (`unity.runtime.arrays.exchange`) are viewed as arrays, by their library's
C function, and the entry is called again with these; what it gives back becomes tensors of the
first one's kind. A view costs about 0.2 us where Python takes 5. Whatever is unusual (another
device, strides, a type that no parameter has, an exception) is left to the slow way.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.codegen import dlpack
from unity.codegen.dlpack import type_word
from unity.codegen.vm.native.prelude import api
from unity.runtime import native_info as n
from unity.runtime.arrays import exchange as x

MOST = 1024  # arguments, which lie on the stack


def exchange_text(dtypes: Sequence[str]) -> str:
    """The text of ``ptr unity_exchange(entry, self, args, count, names)`` and what it calls.

    Args:
        dtypes: The dtype table of the module: those that tensors may have.
    """
    return "\n".join([_descr_text(dtypes), _in_order_text(), _given_text(), _EXCHANGE])


def _of(name: str, known_as: str) -> str:
    place = f"getelementptr (ptr, ptr @unity_python, i64 {api(name)})"
    return f"  %{known_as} = load ptr, ptr {place}"


def _descr_text(dtypes: Sequence[str]) -> str:
    """The dtype object of a DLDataType's word, null for what no parameter has."""
    words = {i: type_word(name) for i, name in enumerate(dtypes)}
    cases = [f"i32 {word}, label %d{i}" for i, word in words.items() if word is not None]
    blocks = [
        f"d{i}:\n  %v{i} = load ptr, ptr getelementptr (ptr, ptr @unity_dtypes, i64 {i})\n"
        f"  ret ptr %v{i}"
        for i, word in words.items()
        if word is not None
    ]
    return "\n".join(
        [
            "define internal ptr @unity_descr(i32 %word) nounwind {",
            "entry:",
            f"  switch i32 %word, label %none [ {' '.join(cases)} ]",
            *blocks,
            "none:\n  ret ptr null\n}",
        ]
    )


def _in_order_text() -> str:
    """Whether a tensor's elements lie one after the other, as an array's do in C."""
    return f"""\
define internal i1 @unity_in_order(ptr %tensor) nounwind {{
entry:
  %rank_at = getelementptr i8, ptr %tensor, i64 {dlpack.NDIM}
  %rank = load i32, ptr %rank_at
  %shape_at = getelementptr i8, ptr %tensor, i64 {dlpack.SHAPE}
  %shape = load ptr, ptr %shape_at
  %strides_at = getelementptr i8, ptr %tensor, i64 {dlpack.STRIDES}
  %strides = load ptr, ptr %strides_at
  %compact = icmp eq ptr %strides, null
  br i1 %compact, label %yes, label %next
next:
  %left = phi i32 [ %rank, %entry ], [ %axis, %fits ]
  %step = phi i64 [ 1, %entry ], [ %over, %fits ]
  %more = icmp sgt i32 %left, 0
  br i1 %more, label %one, label %yes
one:
  %axis = sub i32 %left, 1
  %where = sext i32 %axis to i64
  %size_at = getelementptr i64, ptr %shape, i64 %where
  %size = load i64, ptr %size_at
  %stride_at = getelementptr i64, ptr %strides, i64 %where
  %stride = load i64, ptr %stride_at
  %right = icmp eq i64 %stride, %step
  %short = icmp sle i64 %size, 1
  %good = or i1 %right, %short
  br i1 %good, label %fits, label %no
fits:
  %over = mul i64 %step, %size
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}"""


def _given_text() -> str:
    """A result as a tensor: what a row gives for an array, whose reference it takes."""
    return f"""\
define internal ptr @unity_given(ptr %row, ptr %result) nounwind {{
entry:
  %args = alloca ptr
  %kind_at = getelementptr i8, ptr %result, i64 {n.OBJECT_TYPE}
  %kind = load ptr, ptr %kind_at
{_of("ndarray", "ndarray")}
  %array = icmp eq ptr %kind, %ndarray
  br i1 %array, label %turn, label %as_it_is
as_it_is:
  ret ptr %result
turn:
  store ptr %result, ptr %args
{_of("PyObject_Vectorcall", "vectorcall")}
{_of("Py_DecRef", "drop")}
  %give_at = getelementptr i8, ptr %row, i64 {x.GIVE}
  %give = load ptr, ptr %give_at
  %made = call ptr %vectorcall(ptr %give, ptr %args, i64 1, ptr null)
  %well = icmp ne ptr %made, null
  br i1 %well, label %end, label %again
again:
{_of("PyErr_Clear", "clear")}
  call void %clear()
  %otherwise_at = getelementptr i8, ptr %row, i64 {x.OTHERWISE}
  %otherwise = load ptr, ptr %otherwise_at
  %second = call ptr %vectorcall(ptr %otherwise, ptr %args, i64 1, ptr null)
  br label %end
end:
  %outcome = phi ptr [ %made, %turn ], [ %second, %again ]
  call void %drop(ptr %result)
  ret ptr %outcome
}}"""


_EXCHANGE = f"""\
define internal ptr @unity_exchange(ptr %entry_function, ptr %self, ptr %args, i64 %count,
    ptr %names) nounwind {{
entry:
  %tensor = alloca [6 x i64]
  %asked = alloca ptr
{_of("exchange", "table")}
{_of("Py_IncRef", "hold")}
{_of("Py_DecRef", "drop")}
{_of("ndarray", "ndarray")}
  %first = load ptr, ptr %table
  %any = icmp ne ptr %first, null
  %unnamed = icmp eq ptr %names, null
  %few = icmp ule i64 %count, {MOST}
  %known = and i1 %any, %unnamed
  %can = and i1 %known, %few
  br i1 %can, label %begin, label %slow
begin:
  %arrays = alloca ptr, i64 %count
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %after, %taken ]
  %row = phi ptr [ null, %begin ], [ %row_now, %taken ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %all
one:
  %given_at = getelementptr ptr, ptr %args, i64 %i
  %given = load ptr, ptr %given_at
  %kind_at = getelementptr i8, ptr %given, i64 {n.OBJECT_TYPE}
  %kind = load ptr, ptr %kind_at
  br label %search
search:
  %r = phi i64 [ 0, %one ], [ %r_next, %other ]
  %at = getelementptr [{x.ROW_BYTES} x i8], ptr %table, i64 %r
  %type_at = getelementptr i8, ptr %at, i64 {x.KIND}
  %type = load ptr, ptr %type_at
  %same = icmp eq ptr %type, %kind
  br i1 %same, label %found, label %other
other:
  %r_next = add i64 %r, 1
  %last = icmp eq i64 %r_next, {x.ROWS}
  br i1 %last, label %keep, label %search
keep:
  call void %hold(ptr %given)
  br label %taken
found:
  %refuse_at = getelementptr i8, ptr %at, i64 {x.REFUSE_IF}
  %refuse = load ptr, ptr %refuse_at
  %always = icmp eq ptr %refuse, null
  br i1 %always, label %describe, label %ask
ask:
  store ptr %given, ptr %asked
{_of("PyObject_VectorcallMethod", "method")}
  %answer = call ptr %method(ptr %refuse, ptr %asked, i64 1, ptr null)
  %answered = icmp ne ptr %answer, null
  br i1 %answered, label %heard, label %raised
heard:
{_of("False", "false")}
  %fine = icmp eq ptr %answer, %false
  call void %drop(ptr %answer)
  br i1 %fine, label %describe, label %undo
describe:
  %take_at = getelementptr i8, ptr %at, i64 {x.DESCRIBE}
  %take = load ptr, ptr %take_at
  %failed = call i32 %take(ptr %given, ptr %tensor)
  %described = icmp eq i32 %failed, 0
  br i1 %described, label %look, label %raised
look:
  %device_at = getelementptr i8, ptr %tensor, i64 {dlpack.DEVICE}
  %device = load i32, ptr %device_at
  %here = icmp eq i32 %device, {dlpack.CPU}
  %data = load ptr, ptr %tensor
  %filled = icmp ne ptr %data, null
  %word_at = getelementptr i8, ptr %tensor, i64 {dlpack.DTYPE}
  %word = load i32, ptr %word_at
  %descr = call ptr @unity_descr(i32 %word)
  %named = icmp ne ptr %descr, null
  %ordered = call i1 @unity_in_order(ptr %tensor)
  %good0 = and i1 %here, %filled
  %good1 = and i1 %named, %ordered
  %good = and i1 %good0, %good1
  br i1 %good, label %view, label %undo
view:
  call void %hold(ptr %descr)
  %offset_at = getelementptr i8, ptr %tensor, i64 {dlpack.BYTE_OFFSET}
  %offset = load i64, ptr %offset_at
  %place = getelementptr i8, ptr %data, i64 %offset
  %rank_at = getelementptr i8, ptr %tensor, i64 {dlpack.NDIM}
  %rank = load i32, ptr %rank_at
  %shape_at = getelementptr i8, ptr %tensor, i64 {dlpack.SHAPE}
  %shape = load ptr, ptr %shape_at
{_of("PyArray_NewFromDescr", "new")}
  %array = call ptr %new(ptr %ndarray, ptr %descr, i32 %rank, ptr %shape, ptr null, ptr %place, \
i32 {n.WRITABLE_FLAGS}, ptr null)
  %made = icmp ne ptr %array, null
  br i1 %made, label %base, label %raised
base:
  call void %hold(ptr %given)
{_of("PyArray_SetBaseObject", "set_base")}
  %kept = call i32 %set_base(ptr %array, ptr %given)
  %based = icmp eq i32 %kept, 0
  br i1 %based, label %viewed, label %unbased
unbased:
  call void %drop(ptr %array)
  br label %raised
viewed:
  br label %taken
taken:
  %value = phi ptr [ %given, %keep ], [ %array, %viewed ]
  %row_here = phi ptr [ null, %keep ], [ %at, %viewed ]
  %value_at = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %value, ptr %value_at
  %is_first = icmp eq ptr %row, null
  %row_now = select i1 %is_first, ptr %row_here, ptr %row
  %after = add i64 %i, 1
  br label %next
all:
  %none = icmp eq ptr %row, null
  br i1 %none, label %undo, label %call
call:
  %result = call ptr %entry_function(ptr %self, ptr %arrays, i64 %count, ptr null)
  br label %undo
raised:
{_of("PyErr_Clear", "clear")}
  call void %clear()
  br label %undo
undo:
  %outcome = phi ptr [ null, %all ], [ %result, %call ], [ null, %raised ], [ null, %heard ], \
[ null, %look ]
  %done = phi i1 [ false, %all ], [ true, %call ], [ false, %raised ], [ false, %heard ], \
[ false, %look ]
  br label %drop_next
drop_next:
  %d = phi i64 [ 0, %undo ], [ %d_after, %drop_one ]
  %d_more = icmp ult i64 %d, %i
  br i1 %d_more, label %drop_one, label %dropped
drop_one:
  %held_at = getelementptr ptr, ptr %arrays, i64 %d
  %held = load ptr, ptr %held_at
  call void %drop(ptr %held)
  %d_after = add i64 %d, 1
  br label %drop_next
dropped:
  br i1 %done, label %give, label %slow
slow:
{_of("PyObject_Vectorcall", "vectorcall")}
  %slowly = call ptr %vectorcall(ptr %self, ptr %args, i64 %count, ptr %names)
  ret ptr %slowly
give:
  %succeeded = icmp ne ptr %outcome, null
  br i1 %succeeded, label %in_kind, label %as_it_is
as_it_is:
  ret ptr %outcome
in_kind:
  %give_at = getelementptr i8, ptr %row, i64 {x.GIVE}
  %giver = load ptr, ptr %give_at
  %gives = icmp ne ptr %giver, null
  br i1 %gives, label %one_or_more, label %as_it_is
one_or_more:
  %outcome_kind_at = getelementptr i8, ptr %outcome, i64 {n.OBJECT_TYPE}
  %outcome_kind = load ptr, ptr %outcome_kind_at
{_of("tuple", "tuple")}
  %several = icmp eq ptr %outcome_kind, %tuple
  br i1 %several, label %items, label %single
single:
  %tensor_out = call ptr @unity_given(ptr %row, ptr %outcome)
  ret ptr %tensor_out
items:
{_of("PyTuple_Size", "length_of")}
{_of("PyTuple_New", "new_tuple")}
{_of("PyTuple_GetItem", "item_of")}
{_of("PyTuple_SetItem", "set_item")}
  %length = call i64 %length_of(ptr %outcome)
  %tuple_out = call ptr %new_tuple(i64 %length)
  %room = icmp ne ptr %tuple_out, null
  br i1 %room, label %item_next, label %lost
item_next:
  %k = phi i64 [ 0, %items ], [ %k_after, %put ]
  %k_more = icmp ult i64 %k, %length
  br i1 %k_more, label %item, label %complete
item:
  %borrowed = call ptr %item_of(ptr %outcome, i64 %k)
  call void %hold(ptr %borrowed)
  %turned = call ptr @unity_given(ptr %row, ptr %borrowed)
  %turned_well = icmp ne ptr %turned, null
  br i1 %turned_well, label %put, label %broken
put:
  call i32 %set_item(ptr %tuple_out, i64 %k, ptr %turned)
  %k_after = add i64 %k, 1
  br label %item_next
complete:
  call void %drop(ptr %outcome)
  ret ptr %tuple_out
broken:
  call void %drop(ptr %tuple_out)
  br label %lost
lost:
  call void %drop(ptr %outcome)
  ret ptr null
}}"""
