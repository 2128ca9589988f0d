"""Target strings of TVM, ``llvm -mcpu=skylake-avx512``, as targets of ours."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from logging import getLogger
from types import TracebackType
from typing import Self

from unity.codegen.llvm.host import host_target, vector_shape
from unity.errors import UnityError
from unity.machine import target as machine

log = getLogger("unity")

_BASE = ("cx16", "fxsr", "mmx", "popcnt", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3")
_AVX = (*_BASE, "avx", "xsave")
_AVX2 = (*_AVX, "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_AVX512 = (*_AVX2, "adx", "aes", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_VNNI = (*_AVX512, "avx512vnni")
_ICELAKE = (*_VNNI, "avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vpopcntdq")
_AMX = (*_ICELAKE, "amx-bf16", "amx-int8", "amx-tile", "avx512bf16", "avx512fp16", "avxvnni")
CPUS: Mapping[str, tuple[str, ...]] = {
    "x86-64": ("cx16", "fxsr", "mmx", "sse", "sse2"),
    **dict.fromkeys(("x86-64-v2", "nehalem", "westmere", "corei7", "silvermont"), _BASE),
    **dict.fromkeys(("sandybridge", "ivybridge", "corei7-avx", "btver2"), _AVX),
    **dict.fromkeys(
        ("x86-64-v3", "haswell", "broadwell", "skylake", "core-avx2", "alderlake", "znver1",
         "znver2", "znver3"),
        _AVX2,
    ),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "skx"), _AVX512),
    "cascadelake": _VNNI,
    "cooperlake": (*_VNNI, "avx512bf16"),
    **dict.fromkeys(("icelake-server", "icelake-client", "tigerlake", "rocketlake"), _ICELAKE),
    "znver4": (*_ICELAKE, "avx512bf16"),
    **dict.fromkeys(("sapphirerapids", "graniterapids"), _AMX),
    **dict.fromkeys(("cortex-a53", "cortex-a57", "cortex-a72", "generic"), ("neon",)),
    **dict.fromkeys(("cortex-a76", "neoverse-n1"), ("dotprod", "fullfp16", "neon")),
}  # fmt: skip
"""The features of what ``-mcpu`` names, as far as code is chosen by them."""
_SILENT = ("libs", "link-params", "opt-level", "mfloat-abi", "mabi", "vector-width", "runtime",
           "system-lib")  # fmt: skip
"""Options that say nothing here, which is told."""
_READ = (
    "mcpu",
    "mattr",
    "mtriple",
    "target",
    "num-cores",
    "device",
    "keys",
    "model",
    "tag",
    "host",
)


class Target:
    """A target as a script names it.

    Args:
        target: A string, ``"llvm -mcpu=haswell"``, or a dict with ``kind``.
        host: What TVM compiled host code for; the same here.
    """

    def __init__(self, target: object = "llvm", host: object = None) -> None:
        self.text = _text(target)
        words = shlex.split(self.text)
        self.kind = words[0] if words else ""
        if self.kind not in ("llvm", "cpu"):
            raise UnityError(
                f"the target {self.text!r} is of the kind {self.kind!r}",
                hint='programs run on CPUs: "llvm", "llvm -mcpu=haswell", '
                '"llvm -mtriple=aarch64-linux-gnu"',
            )
        self.attrs = _options(words[1:])

    def __str__(self) -> str:
        """As it was given."""
        return self.text

    __repr__ = __str__

    @property
    def mcpu(self) -> str:
        """What ``-mcpu`` says."""
        return self.attrs.get("mcpu", "")

    def __enter__(self) -> Self:
        """The target of a block; `relay.build` is given its own."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def ours(self) -> machine.Target:
        """It as a target of ours.

        Raises:
            UnityError: It names a cpu that is not known.
        """
        ignored = [name for name in self.attrs if name in _SILENT]
        if ignored:
            log.warning("of the target %r, -%s says nothing here", self.text, ", -".join(ignored))
        host = host_target()
        threads = int(self.attrs["num-cores"]) if "num-cores" in self.attrs else host.threads
        triple = self.attrs.get("mtriple") or self.attrs.get("target") or _triple(self.attrs, host)
        own = self.mcpu in ("", "native") and "mattr" not in self.attrs
        if own and triple == host.triple:
            return replace(host, threads=threads)
        features = set(_features(self.mcpu, triple, host))
        for word in self.attrs.get("mattr", "").split(","):
            (features.discard if word[:1] == "-" else features.add)(word.lstrip("+-"))
        known = tuple(sorted(features - {""}))
        bits, registers = vector_shape(triple, known)
        named = self.mcpu if self.mcpu != "native" else host.cpu
        cpu = named or ("x86-64" if triple.startswith("x86_64") else "generic")
        return machine.Target(
            "cpu", triple, cpu, known, bits, registers,
            host.l1_bytes, host.l2_bytes, host.l3_bytes, threads,
        )  # fmt: skip


def target_of(target: object) -> machine.Target:
    """The target of ours that a script means: a string, a `Target`, one of ours, or None."""
    if isinstance(target, machine.Target):
        return target
    if isinstance(target, Mapping) and "kind" not in target and len(target) == 1:
        (target,) = target.values()  # {"cpu": "llvm"}, or by a device's number
    if target is None:
        return host_target()
    return (target if isinstance(target, Target) else Target(target)).ours()


def _text(target: object) -> str:
    match target:
        case Target():
            return target.text
        case str():
            return target.strip()
        case {"kind": str(kind), **options}:
            words = (
                f"-{k}={','.join(map(str, v)) if isinstance(v, list) else v}"
                for k, v in options.items()
            )
            return " ".join([kind, *words])
        case _:
            raise UnityError(f"{target!r} is no target", hint='"llvm -mcpu=haswell"')


def _options(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("-"):
            name, _, value = word.lstrip("-").partition("=")
            found[name] = value
        elif name:
            found[name] = word
    known = (*_READ, *_SILENT)
    odd = [n for n in found if n not in known]
    if odd:
        raise UnityError(f"a target has no option -{odd[0]}", hint=f"they are -{', -'.join(known)}")
    return found


def _triple(attrs: Mapping[str, str], host: machine.Target) -> str:
    if attrs.get("device") == "arm_cpu" and not host.triple.startswith(("aarch64", "arm64")):
        return "aarch64-unknown-linux-gnu"
    if attrs.get("mcpu", "").startswith(("cortex", "neoverse")):
        return "aarch64-unknown-linux-gnu"
    return host.triple


def _features(cpu: str, triple: str, host: machine.Target) -> tuple[str, ...]:
    if not cpu:
        return host.features if triple == host.triple else ()
    if cpu in ("native", host.cpu) and triple == host.triple:
        return host.features
    if cpu not in CPUS:
        raise UnityError(f"the cpu {cpu!r} is not known", hint=f"known are {', '.join(CPUS)}")
    return CPUS[cpu]
