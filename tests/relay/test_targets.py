"""Target strings of TVM's kind llvm are targets of ours."""

from __future__ import annotations

import logging

import pytest

from unity.codegen.llvm.host import host_target
from unity.errors import UnityError
from unity.relay.target import CPUS, Target, target_of


def test_this_machine() -> None:
    assert target_of(None) == target_of("llvm") == host_target()
    assert target_of("llvm -num-cores 3").threads == 3
    assert target_of({"kind": "llvm", "mcpu": "native"}) == host_target()
    assert target_of(host_target()) == host_target()


@pytest.mark.parametrize(
    ("text", "bits", "has", "lacks"),
    [
        ("llvm -mcpu=x86-64 -mtriple=x86_64-linux-gnu", 128, "sse2", "avx"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2", 256, "fma", "avx512f"),
        (
            "llvm -keys=cpu -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512",
            512,
            "avx512f",
            "avx512vnni",
        ),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake", 512, "avx512vnni", "avx512bf16"),
        (
            "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx512f,-fma",
            512,
            "avx512f",
            "fma",
        ),
        ("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon", 128, "neon", "avx"),
        ("llvm -mcpu=cortex-a72", 128, "neon", "avx2"),
    ],
)
def test_features_follow_the_cpu(text: str, bits: int, has: str, lacks: str) -> None:
    found = target_of(text)
    assert found.vector_bits == bits
    assert found.has(has)
    assert not found.has(lacks)
    assert str(Target(text)) == text


def test_every_cpu_is_a_target() -> None:
    for cpu in CPUS:
        assert target_of(f"llvm -mcpu={cpu}").cpu == cpu or cpu == host_target().cpu


def test_what_says_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "unity"):
        target_of("llvm -libs=mkl,mlas -model=e5")
    assert "-libs says nothing here" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuda -arch=sm_80", "of the kind 'cuda'"),
        ("llvm -mcpu=pentium9", "the cpu 'pentium9' is not known"),
        ("llvm -mfast=1", "a target has no option -mfast"),
        (3, "3 is no target"),
    ],
)
def test_other_targets_are_refused(text: object, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        target_of(text)
