"""The bytecode: what an executable holds beside its kernels' machine code and its constants' data.

A `Program` is plain data (JSON through `program_json`; `verify` tells whether what was read refers
to what is there). A function has registers (tensors, scalars, shapes, arenas, closures) and symbol
slots (sizes, int64: `sizes`). Tuples never live in registers: where one crosses a call or a return,
it is a tree of registers.
"""

from .instructions import AllocArena as AllocArena
from .instructions import AllocTensor as AllocTensor
from .instructions import Assert as Assert
from .instructions import Branch as Branch
from .instructions import CallClosure as CallClosure
from .instructions import CallFunction as CallFunction
from .instructions import CallHost as CallHost
from .instructions import CallKernel as CallKernel
from .instructions import Copy as Copy
from .instructions import Element as Element
from .instructions import Fill as Fill
from .instructions import Instruction as Instruction
from .instructions import Jump as Jump
from .instructions import LoadConst as LoadConst
from .instructions import MakeClosure as MakeClosure
from .instructions import MakeLiteral as MakeLiteral
from .instructions import MakeScalar as MakeScalar
from .instructions import MakeShape as MakeShape
from .instructions import Match as Match
from .instructions import Move as Move
from .instructions import Print as Print
from .instructions import ReadScalar as ReadScalar
from .instructions import ReadShape as ReadShape
from .instructions import Reg as Reg
from .instructions import Reshape as Reshape
from .instructions import Return as Return
from .instructions import RunScan as RunScan
from .instructions import SetSlot as SetSlot
from .instructions import StoreScalar as StoreScalar
from .instructions import Tree as Tree
from .instructions import Update as Update
from .instructions import View as View
from .instructions import leaves as leaves
from .program import EXTERN as EXTERN
from .program import Arguments as Arguments
from .program import ConstantInfo as ConstantInfo
from .program import FunctionCode as FunctionCode
from .program import KernelInfo as KernelInfo
from .program import ParamInfo as ParamInfo
from .program import Program as Program
from .program import SymbolInfo as SymbolInfo
from .program import literal_of as literal_of
from .specs import ObjectSpec as ObjectSpec
from .specs import Rank as Rank
from .specs import ScalarSpec as ScalarSpec
from .specs import ShapeSpec as ShapeSpec
from .specs import Spec as Spec
from .specs import TensorSpec as TensorSpec
from .specs import TupleSpec as TupleSpec
from .specs import leaf_specs as leaf_specs
from .specs import spec_sizes as spec_sizes
