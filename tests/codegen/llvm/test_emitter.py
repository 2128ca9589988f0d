"""What is read twice is read once, as long as nothing may have been written there."""

from __future__ import annotations

from unity.codegen.llvm import host_target
from unity.codegen.llvm.abilities import abilities
from unity.codegen.llvm.emitter import Emitter, Unit

LOAD = "load float, ptr {}, align 4"


def emitter() -> Emitter:
    """A function without instructions."""
    return Emitter(Unit(abilities(host_target()), ""))


def reads(em: Emitter, pointer: str) -> str:
    """The register that has what lies at a pointer."""
    return em.read(LOAD.format(pointer), pointer)


def test_equal_loads_of_a_block_are_one() -> None:
    em = emitter()
    first = reads(em, "%a")
    em.hint("call void @llvm.prefetch.p0(ptr %a, i32 0, i32 2, i32 1)")
    assert reads(em, "%a") == first
    em.label("after")
    assert reads(em, "%a") != first


def test_a_store_may_reach_any_parameter_but_no_storage_of_the_function() -> None:
    em = emitter()
    own, other = (em.alloca("float", 1, 4) for _ in range(2))
    before = [reads(em, p) for p in ("%a", own, other)]
    em.write("store float 0.0, ptr %b, align 4", "%b")
    assert reads(em, "%a") != before[0]
    assert [reads(em, p) for p in (own, other)] == before[1:]


def test_a_store_to_storage_of_the_function_reaches_that_alone() -> None:
    em = emitter()
    own, other = (em.alloca("float", 1, 4) for _ in range(2))
    before = [reads(em, p) for p in ("%a", own, other)]
    em.write(f"store float 0.0, ptr {own}, align 4", own)
    assert [reads(em, p) for p in ("%a", other)] == [before[0], before[2]]
    assert reads(em, own) != before[1]


def test_what_may_do_anything_ends_all() -> None:
    em = emitter()
    own = em.alloca("float", 1, 4)
    before = [reads(em, p) for p in ("%a", own)]
    em.do("call void @somewhere()")
    after = [reads(em, p) for p in ("%a", own)]
    em.effect("call i32 @elsewhere()")
    assert not {*before} & {*after} | {*after} & {reads(em, p) for p in ("%a", own)}
