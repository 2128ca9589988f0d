"""Executables as shared libraries for C: `Executable.export_library`.

`entry` writes the functions that C calls (`bind` what they do with inputs, `prelude` what they
share), `header` what C is told of them, `constants` the weights, and `shared_object` compiles and
links it all.
"""

from typing import TYPE_CHECKING

from unity.lazy import exports

if TYPE_CHECKING:
    from .shared_object import export_library

__all__ = ["export_library"]
__getattr__ = exports(__name__, {"export_library": ".shared_object"})
