"""What callers give and get in place of tensors: `forms`, of which `trees` and `sequences` are some."""

from .forms import NO_FORMS, HostCall, HostForms, Maps, forms_of

__all__ = ["NO_FORMS", "HostCall", "HostForms", "Maps", "forms_of"]
