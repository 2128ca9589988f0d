"""Mistakes in models, and in what is asked of them."""

from __future__ import annotations

from .mistake import Mistake

HEAD = """
        from onnx import TensorProto, helper

        X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
        Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])


"""
MODEL = """
        graph = helper.make_graph([node], "model", [X], [Y])
        unity.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
        """

IMPORTING = (
    Mistake(
        "A file that is not there",
        """
        unity.compile("resnet.onnx")
        """,
        "can't read 'resnet.onnx': No such file or directory",
        "Paths are relative to where Python was started.",
        """
        from pathlib import Path

        import unity.demo

        unity.compile(Path(unity.demo.__file__).parent / "digits.onnx")
        """,
    ),
    Mistake(
        "Weights of torch instead of a model",
        """
        with open("model.pt", "wb") as file:
            file.write(b"weights" * 100)
        unity.compile("model.pt")
        """,
        "model.pt is a model of torch, not an ONNX model",
        "A file of weights has no program. torch exports one: `torch.onnx.export`.",
        """
        from pathlib import Path

        import unity.demo

        unity.compile(Path(unity.demo.__file__).parent / "digits.onnx")
        """,
        hint="export it: torch.onnx.export(model, args, 'model.onnx')",
    ),
    Mistake(
        "An operator that nobody defines",
        HEAD
        + """
        node = helper.make_node("Relu7", ["x"], ["y"], "first")
"""
        + MODEL,
        "model needs what Unity does not implement\n  - node 'first' (Relu7), domain "
        "ai.onnx, opset 17",
        "All that a model has and Unity lacks is told at once, before anything is compiled. "
        "A converter may be registered for operators of your own.",
        HEAD
        + """
        node = helper.make_node("Relu", ["x"], ["y"], "first")
"""
        + MODEL,
    ),
    Mistake(
        "A node whose operands do not fit",
        HEAD
        + """
        node = helper.make_node("MatMul", ["x", "x"], ["y"], "first")
"""
        + MODEL,
        "model: node 'first' (MatMul): matmul: the inner dims of float32(2, 3) and "
        "float32(2, 3) differ: got 2, expected 3",
        "The place is the node, by its name in the model.",
        HEAD
        + """
        node = helper.make_node("Add", ["x", "x"], ["y"], "first")
"""
        + MODEL,
    ),
    Mistake(
        "A node that reads what nobody makes",
        HEAD
        + """
        node = helper.make_node("Add", ["x", "bias"], ["y"], "first")
"""
        + MODEL,
        "model: node 'first' (Add) reads 'bias', which nothing makes",
        "Every value is an input, an initializer, or the output of an earlier node.",
        HEAD
        + """
        node = helper.make_node("Add", ["x", "x"], ["y"], "first")
"""
        + MODEL,
    ),
    Mistake(
        "An axis out of range",
        HEAD
        + """
        node = helper.make_node("Softmax", ["x"], ["y"], "first", axis=5)
"""
        + MODEL,
        "model: node 'first' (Softmax): axis 5 is out of range for rank 2",
        "Axes are counted from 0, or from -1 backward.",
        HEAD
        + """
        node = helper.make_node("Softmax", ["x"], ["y"], "first", axis=-1)
"""
        + MODEL,
    ),
)
