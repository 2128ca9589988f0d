"""What Relay's operators take: arguments, attributes, and the defaults of these."""

from .check import Field, Signature, complete, names, signature

__all__ = ["Field", "Signature", "complete", "names", "signature"]
