"""Files of Relay models, whatever kind they are, into Relay's syntax: `read_relay`.

What is in a file decides, not what it is called. Compiled libraries and bytecode are recognized and
refused: a model's program is no longer in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.script.parser.source import remember

from .saved.archive import archived, is_archive
from .saved.bundle import is_bundle, refuse_bundle
from .saved.module import module_of_json
from .saved.params import LIST_MAGIC, read_params
from .syntax import Ignored, Module
from .text import parse_module

SAVING = (
    "on the installation of TVM that made it, save the module that relay.build was given:\n"
    '  open("model.relay", "w").write(mod.astext(show_meta_data=True))\n'
    '  open("model.json", "w").write(tvm.ir.save_json(mod))  # or this\n'
    '  open("model.params", "wb").write(relay.save_param_dict(params))'
)
"""What to do with a file that holds no program, line by line."""
_COMPILED = (
    (b"\x7fELF", "a compiled library (ELF)"),
    (b"\xcf\xfa\xed\xfe", "a compiled library (Mach-O)"),
    (b"\xce\xfa\xed\xfe", "a compiled library (Mach-O)"),
    (b"\xca\xfe\xba\xbe", "a compiled library (Mach-O)"),
    (b"MZ", "a compiled library (DLL)"),
    (b"!<arch>", "an archive of object files"),
    (0xD225DE2F4214151D.to_bytes(8, "little"), "bytecode of Relay's virtual machine"),
    (0xD225DE2F4214151E.to_bytes(8, "little"), "bytecode of Relay's virtual machine"),
)


_OTHER_TEXTS = (
    ("= primfn(", "a kernel of TVM as its printer shows it", SAVING),
    ("T.prim_func", "TVMScript", "unity.script.tvmscript reads it"),
    ("I.ir_module", "TVMScript", "unity.script.tvmscript reads it"),
    ("R.function", "TVMScript", "unity.script.tvmscript reads it"),
)
"""Texts that go by the same names: a mark, what they are, and what to do."""
_LOOKED_AT = 2000


def read_relay(
    source: str | Path | bytes,
    params: str | Path | Mapping[str, Array] | None = None,
    *,
    constants: Sequence[Array] = (),
) -> Module:
    """Read a Relay model.

    Args:
        source: The path of a file: text (0.0.4 or 0.0.5), JSON of ``tvm.ir.save_json``, or a Model
            Library Format archive; or such a file's bytes; or text itself, if it has several lines.
        params: Values for parameters of `main`: the path of a parameter dictionary, or arrays.
        constants: What ``meta[relay.Constant][i]`` stands for in a text without its metadata.

    Returns:
        The module, with `Module.params`.

    Raises:
        UnityError: The file is none of these, or damaged; the place is told.
    """
    name, data = _contents(source)
    module = _read(name, data, constants)
    given = {} if params is None else _params(params)
    if not given:
        return module
    main = module.functions.get("main")
    known = {var.name for var in main.params} if main is not None else set[str]()
    for parameter in given:
        if parameter not in known:
            raise UnityError(
                f"{name}: main has no parameter {parameter!r}, which the parameters give",
                hint=f"it has {', '.join(sorted(known)[:20])}" if known else None,
            )
    return replace(module, params={**module.params, **given})


def _read(name: str, data: bytes, constants: Sequence[Array]) -> Module:
    for magic, what in _COMPILED:
        if data.startswith(magic):
            raise UnityError(f"{name} is {what}, which holds no model to read", hint=SAVING)
    if data.startswith(LIST_MAGIC.to_bytes(8, "little")):
        raise UnityError(
            f"{name} holds parameters alone", hint="give the model, and this file as params="
        )
    if is_archive(data):
        found = archived(name, data)
        module = _text(found.name, found.text, constants)
        known = {var.name for f in module.functions.values() for var in f.params}
        rest = tuple(
            Ignored("the archive", f"the parameter {k}") for k in found.params.keys() - known
        )
        params = {k: v for k, v in found.params.items() if k in known}
        return replace(module, params=params, ignored=(*module.ignored, *rest))
    if data.lstrip()[:1] == b"{" and not data.lstrip()[1:].lstrip().startswith((b"%", b"let")):
        if is_bundle(data):
            raise refuse_bundle(name, data, SAVING)
        return module_of_json(name, data)
    return _text(name, data, constants)


def _text(name: str, data: bytes, constants: Sequence[Array]) -> Module:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnityError(
            f"{name} is no Relay model: byte {error.start} is no text", hint=SAVING
        ) from None
    if "\0" in text:
        raise UnityError(f"{name} is no Relay model: it holds zeros, as binary files do")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not Path(name).is_file():
        remember(name, text)
    for mark, what, hint in _OTHER_TEXTS:
        if mark in text[:_LOOKED_AT]:
            raise UnityError(f"{name} is {what}, no Relay model", hint=hint)
    return parse_module(name, text, constants)


def _contents(source: str | Path | bytes) -> tuple[str, bytes]:
    if isinstance(source, bytes):
        return f"<relay {hash(source) & 0xFFFFFFFF:08x}>", source
    if isinstance(source, str) and "\n" in source:
        return f"<relay {hash(source) & 0xFFFFFFFF:08x}>", source.encode()
    try:
        return str(source), Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise UnityError(f"can't read {str(source)[:200]!r}: {error}") from None


def _params(params: str | Path | Mapping[str, Array]) -> Mapping[str, Array]:
    return params if isinstance(params, Mapping) else read_params(params)
