"""The names that a TVMScript module imports, as they are when Python runs its annotations."""

from __future__ import annotations


class Word:
    """A name of TVMScript: calling it, subscripting it or taking an attribute gives another.

    Python evaluates annotations such as ``T.Buffer((n, 4), "float32")`` while it defines a
    function; their meaning is read from the text.
    """

    def __call__(self, *_args: object, **_named: object) -> Word:
        """Anything may be called."""
        return self

    def __getitem__(self, _item: object) -> Word:
        """Anything may be subscripted."""
        return self

    def __getattr__(self, name: str) -> Word:
        """Anything has attributes."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def _same(self, _other: object) -> Word:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _same
