"""A function that C will call while its LLVM IR is written: what fails leaves with a code."""

from __future__ import annotations

from unity.codegen import dlpack
from unity.codegen.vm.native.text import Text
from unity.ir.dtype import dtype
from unity.runtime import bytecode as bc

from .faults import FAULTS
from .messages import Messages


class CFunction:
    """State while a function is written: what fails leaves with a code."""

    def __init__(self, messages: Messages) -> None:
        self.t, self.messages = Text(), messages
        self.fails: list[int] = []
        self.blocks = 0

    def require(self, condition: str, message: str) -> None:
        """Leave with a message unless the condition holds."""
        code = self.messages.code(message)
        self.fails.append(code)
        self.leave_unless(condition, f"fail{code}")

    def leave_unless(self, condition: str, label: str) -> None:
        """Leave for a block unless the condition holds."""
        following = f"c{self.blocks}"
        self.blocks += 1
        self.t.do(f"br i1 {condition}, label %{following}, label %{label}")
        sizes = dict(self.t.sizes)
        self.t.block(following)
        self.t.sizes.update(sizes)  # the block before is this one's only predecessor

    def hand_on(self, code: str) -> None:
        """Leave with the result of a call unless it is 0."""
        good = self.t.let(f"icmp eq i32 {code}, 0")
        label = f"bad{self.blocks}"
        self.leave_unless(good, label)
        rest = self.t.lines.pop()
        self.t.lines += [f"{label}:", f"  ret i32 {code}", rest]

    def tensor(self, tensor: str, spec: bc.TensorSpec, what: str) -> None:
        """Check all of a tensor but its sizes."""
        assert spec.dtype is not None
        rank = len(spec.shape or ())
        texts = [f.format(dtype=spec.dtype, rank=rank) for f in FAULTS]
        codes = [self.messages.code(f"{what} {text}") for text in texts]
        word = dlpack.type_word(spec.dtype)
        size = dtype(spec.dtype).bytes
        fault = self.t.let(
            f"call i32 @unity_c_fault(ptr {tensor}, i32 {rank}, i32 {word}, i64 {size})"
        )
        first = self.t.let(f"add i32 {fault}, {codes[0] - 1}")
        none = self.t.let(f"icmp eq i32 {fault}, 0")
        self.hand_on(self.t.let(f"select i1 {none}, i32 0, i32 {first}"))

    def data(self, tensor: str) -> str:
        """Where a tensor's elements are."""
        base = self.t.load("ptr", tensor, dlpack.DATA)
        return self.t.at(base, self.t.load("i64", tensor, dlpack.BYTE_OFFSET))

    def finished(self, header: str) -> str:
        """The text of the function."""
        for code in self.fails:
            self.t.block(f"fail{code}")
            self.t.do(f"ret i32 {code}")
        return "\n".join([f"{header} nounwind {{", *self.t.lines, "}"])
