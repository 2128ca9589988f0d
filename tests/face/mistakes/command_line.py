"""Mistakes on the command line, where the model of `unity demo` lies beside."""

from __future__ import annotations

from .mistake import Mistake

COMMANDS = (
    Mistake(
        "A file of another kind to write to",
        "unity compile digits.onnx -o digits.exe",
        "can't write 'digits.exe': the suffix says what is written",
        "What is written is told by the name: an executable, a library for C, or a folder.",
        "unity compile digits.onnx -o digits.unity",
        hint="NAME.unity, NAME.so, or a folder: digits.exe/",
    ),
    Mistake(
        "Outputs to a file of another kind",
        "unity run digits.onnx -o scores.txt",
        "can't write 'scores.txt': the suffix says what is written",
        "Several arrays are written under their names, as numpy's archives have them.",
        "unity run digits.onnx -o scores.npz",
        hint="NAME.npz",
    ),
    Mistake(
        "A size of a symbol that the model does not have",
        "unity run digits.onnx --dim n=4",
        "no symbol n",
        "`unity inspect` prints the symbols.",
        "unity run digits.onnx --dim batch=4",
        hint="the model's symbols: batch",
    ),
    Mistake(
        "An input that the model does not have",
        "unity run digits.onnx -i picture=digit.npy",
        "the model has no input picture",
        "Inputs that are not given are generated.",
        "unity run digits.onnx -i image=digit.npy",
        hint="its inputs: image",
    ),
    Mistake(
        "A pass that there is not",
        "unity inspect digits.onnx --after Fuse",
        "the pipeline has no pass 'Fuse'",
        "`--passes` lists them.",
        "unity inspect digits.onnx --after FuseOps",
        hint="did you mean FuseAttention, FuseOps, FuseTir, FuseReaders? --passes lists them",
    ),
    Mistake(
        "A kernel that there is not",
        "unity inspect digits.onnx --kernel conv",
        "no kernel 'conv'",
        "`--kernels` lists them.",
        "unity inspect digits.onnx --kernels",
        hint="did you mean fused_conv2d_blocked_add_relu, fused_conv2d_winograd_add_relu?",
    ),
    Mistake(
        "A peer that is not known",
        "unity bench digits.onnx --vs tensorrt",
        "no peer 'tensorrt'",
        "Peers are compared on the same inputs, in turns.",
        "unity bench digits.onnx --repeat 1",
        hint="there are: onnxruntime",
    ),
)
