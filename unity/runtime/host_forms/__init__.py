"""What callers give and get in place of tensors: `forms`, some of them `trees` and `sequences`.

`steps` are what is done with strings and files before a program runs.
"""

from .forms import NO_FORMS, HostCall, HostForms, Maps, forms_of

__all__ = ["NO_FORMS", "HostCall", "HostForms", "Maps", "forms_of"]
