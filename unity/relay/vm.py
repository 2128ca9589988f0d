"""Relay's virtual machine under its names; programs run as they always do."""

from __future__ import annotations

from .building import Library, build
from .graph_executor import GraphModule
from .nd import Device, NDArray, array


def compile(  # noqa: A001
    mod: object, target: object = None, target_host: object = None, params: object = None
) -> Library:
    """Compile a model, sizes that only data tell included."""
    values = params if isinstance(params, dict) else None
    return build(mod, target, params=values)


class VirtualMachine:
    """A compiled model, called with all its inputs."""

    def __init__(self, exe: Library, device: Device | None = None) -> None:
        self._module = GraphModule(exe)

    def set_input(self, func_name: str, *args: object, **named: object) -> None:
        """Set the inputs of the entry."""
        for place, value in enumerate(args):
            self._module.set_input(place, value)
        for name, value in named.items():
            self._module.set_input(name, value)

    def run(self, *args: object, **named: object) -> NDArray | list[NDArray]:
        """Compute its outputs."""
        self.set_input("main", *args, **named)
        self._module.run()
        found = [array(self._module.get_output(i)) for i in range(self._module.get_num_outputs())]
        return found if len(found) > 1 else found[0]

    def invoke(self, func_name: str, *args: object, **named: object) -> NDArray | list[NDArray]:
        """Compute the outputs of a function, which is the entry."""
        return self.run(*args, **named)
