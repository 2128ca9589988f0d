"""What TVM's modules say of memory and devices: arenas and views here, one device."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.script import parse, print_module, tvmscript

X = np.arange(4, dtype=np.float32)


def run(module: IRModule) -> npt.NDArray[np.float32]:
    """What the interpreter and the compiled program say of the module, and of what it prints."""
    found = np.asarray(interpret(module, "main", [X]))
    np.testing.assert_allclose(np.asarray(unity.compile(module)(X)), found, rtol=1e-6)
    assert first_difference(module, parse(print_module(module))) is None
    return found


ALLOCATED = """
@I.ir_module
class Allocated:
    @T.prim_func
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"relax.force_pure": True})
        cls = Allocated
        STORAGE
        y = R.call_tir_inplace(cls.twice, (x, alloc), [1], R.Tensor((4,), "float32"))
        z = R.add(y, x)
        _: R.Tuple = R.vm.kill_object(y)
        _1 = R.memory.kill_tensor(alloc)
        return z
"""


@pytest.mark.parametrize(
    "storage",
    [
        'alloc = R.builtin.alloc_tensor(R.shape([4]), runtime_device_index=0, dtype="float32")',
        'storage: R.Any = R.memory.alloc_storage(R.shape([32]), 0, "global", "uint8")\n'
        '        alloc = R.memory.alloc_tensor(storage, 16, R.shape([4]), R.dtype("float32"))',
        'storage = R.vm.alloc_storage((2, 4), R.prim_value(0), "float32", "global")\n'
        '        alloc = R.vm.alloc_tensor(storage, offset=0, shape=(4,), dtype="float32")',
    ],
)
def test_storage_is_an_arena(storage: str) -> None:
    module = tvmscript.parse(ALLOCATED.replace("STORAGE", storage))
    np.testing.assert_array_equal(run(module), X * 3)


def test_views_of_the_same_elements() -> None:
    text = """
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((2, 2), "float32"), R.Any):
    y = R.memory.view(R.memory.ensure_zero_offset(x), R.shape([2, 2]), R.tuple(), R.prim_value(0))
    gv: R.Tuple(R.Tensor((2, 2), "float32"), R.Any) = (y, R.null_value())
    return gv
"""
    found = interpret(tvmscript.parse(text), "main", [X])
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(np.asarray(found[0]), X.reshape(2, 2))
    assert found[1] == ()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('R.memory.alloc_storage(R.shape([4]), 0, "ipc_memory", "uint8")', "no storage 'ipc_mem"),
        ('R.memory.alloc_storage(R.shape([4]), 1, "global", "uint8")', "Unity has one device"),
        ('R.memory.alloc_storage(x.shape, 0, "global", "uint8")', "sizes of what is allocated"),
        ('R.memory.alloc_storage(R.shape([4]), 0, "global", "real")', "real"),
        ('R.memory.alloc_storage(R.shape([4]), 0, "global")', "needs 'dtype'"),
        ('R.memory.view(x, (4,), "int32")', "Unity has no dtype='int32'"),
        ("R.memory.view(x, (2,), None, 8)", "Unity has no relative_byte_offset=8"),
        ("R.vm.kill_object(x)", "'x' is used after R.vm.kill_object"),
        ("R.memory.kill_tensor(R.exp(x))", "what is declared dead is a name"),
        ("R.memory.alloc_arena((4,))", "is not the same in TVM and in Unity"),
    ],
)
def test_memory_that_is_refused(statement: str, message: str) -> None:
    text = (
        f'@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    y = {statement}\n    return x\n'
    )
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(text)
    assert caught.value.span is not None


PLACED = """
@I.ir_module
class Placed:
    I.module_attrs({"layers": 3})
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("llvm", 1)]})

    @R.function
    def main(x: R.Tensor((4,), "float32", "llvm")) -> R.Tensor((4,), "float32", vdevice=OUT):
        y: x.ty = R.add(x, x)
        return R.to_vdevice(R.exp(y), OUT)
"""


@pytest.mark.parametrize("out", ['"llvm"', '"llvm:1"', '"llvm:1:global"', 'I.vdevice("llvm", 1)'])
def test_virtual_devices_of_the_cpu_are_kept(out: str) -> None:
    module = tvmscript.parse(PLACED.replace("OUT", out))
    assert dict(module.attrs.items()) == {
        "layers": 3,
        "vdevice": ("llvm:0:global", "llvm:1:global"),
    }
    np.testing.assert_allclose(run(module), np.exp(X + X), rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("OUT", '"llvm:2"', "the module has no virtual device 'llvm:2'"),
        ("OUT", '"cuda"', "the module has no virtual device 'cuda'"),
        ('I.vdevice("llvm", 1)', 'I.vdevice("cuda")', "Unity has no virtual device 'cuda'"),
        ('I.vdevice("llvm", 1)', 'I.vdevice({"kind": "cuda"})', "no virtual device 'cuda'"),
        ('I.vdevice("llvm", 1)', 'I.vdevice("llvm", 0, "shared")', "Unity has no virtual device"),
        ('I.vdevice("llvm", 1)', 'I.vdevice("llvm", id=1)', "no parameter 'id'"),
        ('"vdevice":', '"mesh":', "Unity has no infos 'mesh' of a module"),
        ('({"vdevice": [I.vdevice("llvm"), I.vdevice("llvm", 1)]})', "(1)", "takes a dict"),
    ],
)
def test_devices_that_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(PLACED.replace(old, new).replace("OUT", '"llvm"'))
    assert caught.value.span is not None
