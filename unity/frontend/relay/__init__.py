"""Relay models into modules: `from_relay` reads a file and translates it to our operators.

`syntax` is Relay as data, which every reader gives; `read` tells the kinds of files apart. `text`
reads Relay's text, `saved` what else TVM saves (JSON, parameters, archives), and `schema` knows
the operators: what they are called with, and the attributes that a file leaves out.

`translator` turns it into a module of ours: `operators` has a converter for each operator, or the
reason why it is refused, and `relay_call` is what a converter sees of a call.
"""

from typing import TYPE_CHECKING

from unity.lazy import exports

if TYPE_CHECKING:
    from .entry import from_relay
    from .recognized import is_relay

__all__ = ["from_relay", "is_relay"]
__getattr__ = exports(__name__, {"from_relay": ".entry", "is_relay": ".recognized"})
