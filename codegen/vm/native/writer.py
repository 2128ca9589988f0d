"""What is written of an entry: its text, the runtime's objects, and the ways out of it.

The parts of an entry (`arguments`, `results`, and `entry` itself) write to it in turn.
"""

from __future__ import annotations

from unity.codegen.vm.native.layout import Layout
from unity.codegen.vm.native.prelude import api
from unity.codegen.vm.native.text import Text


class EntryWriter:
    """State while an entry is written.

    Attributes:
        index: The function's index in the program.
        layout: Its plan.
        dtypes: The dtype table of the module, added to.
        t: The text so far.
        blocks: How many blocks `go_on_if` began.
    """

    def __init__(self, index: int, layout: Layout, dtypes: list[str]) -> None:
        self.index, self.layout, self.dtypes = index, layout, dtypes
        self.t = Text()
        self.blocks = 0

    def api(self, name: str) -> str:
        """A function or type of the runtime's table."""
        return self.t.load("ptr", "@unity_python", api(name), "ptr")

    def dtype(self, name: str) -> str:
        """A numpy dtype object."""
        if name not in self.dtypes:
            self.dtypes.append(name)
        return self.t.load("ptr", "@unity_dtypes", self.dtypes.index(name), "ptr")

    def go_on_if(self, condition: str, otherwise: str) -> None:
        """Leave for `otherwise` unless the condition holds."""
        following = f"b{self.blocks}"
        self.blocks += 1
        self.t.do(f"br i1 {condition}, label %{following}, label %{otherwise}")
        sizes = dict(self.t.sizes)
        self.t.block(following)
        self.t.sizes.update(sizes)  # the block before is this one's only predecessor
