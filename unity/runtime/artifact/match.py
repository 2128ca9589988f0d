"""Whether an artifact's code can run here: the processor, its features, the system."""

from __future__ import annotations

from unity.errors import UnityError
from unity.machine.target import Target
from unity.runtime.host import host_features, host_triple

_NOT_FOR_COMPUTING = frozenset(
    {
        "cldemote", "clflushopt", "clwb", "clzero", "enqcmd", "fsgsbase", "hreset", "invpcid", "kl",
        "mwaitx", "pconfig", "pku", "prefetchi", "prfchw", "ptwrite", "rdpid", "rdpru", "rdrnd",
        "rdseed", "rtm", "serialize", "sgx", "shstk", "tsxldtrk", "uintr", "usermsr", "waitpkg",
        "wbnoinvd", "widekl",
    }
)  # fmt: skip
"""What code only has that asks for it by name; ours never does."""


def check_target(target: Target, where: str) -> None:
    """See whether code for a target can run in this process.

    Raises:
        UnityError: It can't; the message says what is missing.
    """
    here = host_triple()
    if _system(target.triple) != _system(here):
        raise UnityError(
            f"{where} is for {target.triple}, this is {here}",
            hint="compile the model for this machine",
        )
    present = host_features()
    missing = [
        f for f in target.features if f not in _NOT_FOR_COMPUTING and not present.get(f, False)
    ]
    if missing:
        raise UnityError(
            f"{where} needs what this processor has not: {', '.join(missing)}",
            hint="compile it here, or for a target with these features left out",
        )


def why_unfit(target: Target) -> UnityError | None:
    """Why an executable for a target can't run in this process; None if it can."""
    try:
        check_target(target, "the executable")
    except UnityError as error:
        return error
    return None


def _system(triple: str) -> tuple[str, ...]:
    """Processor, system and interface; the vendor says nothing."""
    arch, *rest = triple.split("-")
    alike = {"arm64": "aarch64", "amd64": "x86_64"}
    return (alike.get(arch, arch), *(part.rstrip("0123456789.") for part in rest[1:]))
