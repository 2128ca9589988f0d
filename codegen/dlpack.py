"""DLPack as C sees it: where a tensor's fields are, how it names dtypes, its declarations."""

from __future__ import annotations

from unity.ir.dtype import dtype

# Offsets in DLTensor of 64-bit systems.
DATA, DEVICE, NDIM, DTYPE, SHAPE, STRIDES, BYTE_OFFSET = 0, 8, 16, 20, 24, 32, 40
CPU = 1
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
_FLOAT8 = {"float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13}

DECLARATIONS = """\
#ifndef DLPACK_DLPACK_H_ /* dlpack.h has the same, included before this */
typedef struct { int32_t device_type; int32_t device_id; } DLDevice; /* device_type 1: the cpu */
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL for C order */
  uint64_t byte_offset;
} DLTensor;
#endif
"""


def type_word(name: str) -> int | None:
    """A dtype as the 32 bits of a DLDataType; None if DLPack has none of that layout.

    >>> hex(type_word("float32") or 0), type_word("int4")
    ('0x12002', None)
    """
    of = dtype(name)
    code = _FLOAT8.get(name, _CODES.get(of.kind))
    if code is None or of.bits < 8:  # ours take a byte each
        return None
    return code | of.bits << 8 | 1 << 16
