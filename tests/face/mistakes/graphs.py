"""Mistakes in graph functions."""

from __future__ import annotations

from .mistake import Mistake

GRAPHS = (
    Mistake(
        "An operator that there is not",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.nn.rellu(x)
        """,
        "there is no operator 'nn.rellu'",
        "`dir(R)` and `dir(R.nn)` list the operators; mypy and pyright know them, too.",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.nn.relu(x)
        """,
        hint="did you mean nn.relu, nn.relu6, nn.prelu?",
    ),
    Mistake(
        "An operator by torch's name",
        """
        @script.function
        def main(x: f32[Tensor, n, m]) -> f32[Tensor, m, n]:
            return R.transpose(x)
        """,
        "there is no operator 'transpose'",
        "Operators have Relax's names where Relax has them; the table of operators tells what ONNX "
        "and torch call each.",
        """
        @script.function
        def main(x: f32[Tensor, n, m]) -> f32[Tensor, m, n]:
            return R.permute_dims(x)
        """,
        hint="it is called permute_dims here",
    ),
    Mistake(
        "An attribute that an operator does not have",
        """
        @script.function
        def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n]:
            return R.sum(x, dim=1)
        """,
        "sum has no parameter 'dim'",
        "Nothing that is unknown is dropped: it may have been meant.",
        """
        @script.function
        def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n]:
            return R.sum(x, axis=1)
        """,
        hint="sum(x, axis=None, keepdims=False)",
    ),
    Mistake(
        "An attribute of another type",
        """
        @script.function
        def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
            return R.nn.softmax(x, axis="last")
        """,
        "nn.softmax: 'axis' must be an int, got 'last'",
        "Each attribute has a type; `help(R.nn.softmax)` tells the defaults.",
        """
        @script.function
        def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
            return R.nn.softmax(x, axis=-1)
        """,
        hint="nn.softmax(x, axis=-1)",
    ),
    Mistake(
        "Factors that do not fit",
        """
        @script.function
        def main(x: f32[Tensor, n, 4], w: f32[Tensor, 8, 2]) -> f32[Tensor, n, 2]:
            return R.matmul(x, w)
        """,
        "matmul: the inner dims of float32(n, 4) and float32(8, 2) differ: got 8, expected 4",
        "Shapes are checked while a program is read, with what is known of symbols.",
        """
        @script.function
        def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4, 2]) -> f32[Tensor, n, 2]:
            return R.matmul(x, w)
        """,
    ),
    Mistake(
        "Two symbols that may differ",
        """
        @script.function
        def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, n]:
            return x + y
        """,
        "add: shapes (n,) and (m,) do not broadcast: axis -1 is n and m",
        "n and m are any two sizes. That they are one is either said by one symbol, or asserted "
        "where the program runs.",
        """
        @script.function
        def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, n]:
            z = R.match_cast(y, f32[Tensor, n])
            return x + z
        """,
        hint="dims must be equal, or one of them 1; if they are equal at run time, say so with "
        "match_cast",
    ),
    Mistake(
        "Tensors of two dtypes",
        """
        @script.function
        def main(x: f32[Tensor, n], k: i64[Tensor, n]) -> f32[Tensor, n]:
            return x * k
        """,
        "multiply: operands must have one dtype, got float32, int64",
        "Tensors are not converted silently; Python's numbers take the tensor's dtype.",
        """
        @script.function
        def main(x: f32[Tensor, n], k: i64[Tensor, n]) -> f32[Tensor, n]:
            return x * R.astype(k, "float32")
        """,
        hint="convert with astype",
    ),
    Mistake(
        "A result of another type than declared",
        """
        @script.function
        def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n]:
            return R.nn.relu(x)
        """,
        "returns f32[Tensor, n, 4], declared is f32[Tensor, n]",
        "Annotations are checked, not trusted.",
        """
        @script.function
        def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
            return R.nn.relu(x)
        """,
        hint="correct the annotation, or assert what is only known at run time with R.match_cast",
    ),
    Mistake(
        "A parameter without a type",
        """
        @script.function
        def main(x) -> f32[Tensor, n]:
            return R.nn.relu(x)
        """,
        "the parameter 'x' has no annotation",
        "Types of parameters are what everything else is derived from.",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.nn.relu(x)
        """,
        hint="write x: f32[Tensor, n, 128]",
    ),
    Mistake(
        "A kernel called like a function",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * 2.0


        @script.function
        def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            return double(x)
        """,
        "'double' is a prim_func: it can't be called like a function",
        "A kernel writes into buffers. `R.call_tir` says what it is given and what is allocated "
        "for its outputs.",
        """
        @script.prim_func
        def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
            for i in range(4):
                y[i] = x[i] * 2.0


        @script.function
        def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            return R.call_tir(double, (x,), out=f32[Tensor, 4])
        """,
        hint="write R.call_tir(double, (...), out=f32[Tensor, ...])",
    ),
    Mistake(
        "A plain Python function called",
        """
        def double(x: Tensor) -> Tensor:
            return x + x


        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return double(x)
        """,
        "'double' is a plain Python function: it can't be called in a program",
        "A decorated function is read, not run; what it calls is read as well.",
        """
        @script.function
        def double(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return x + x


        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return double(x)
        """,
        hint="decorate it with @script.function or @script.prim_func, or compute its value "
        "outside and use that by name",
    ),
    Mistake(
        "A tensor whose elements are assigned",
        """
        @script.function
        def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            x[0] = 1.0
            return x
        """,
        "can't assign to 'x[0]'",
        "Values of graph functions don't change: the compiler decides which memory they share.",
        """
        @script.function
        def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            return R.scatter_nd(x, R.const([[0]]), R.const([1.0]))
        """,
        hint="values of a graph function don't change; make a new one",
    ),
    Mistake(
        "An element that may not be there",
        """
        @script.function
        def main(x: f32[Tensor, n, 4]) -> f32[Tensor, 4]:
            return x[0]
        """,
        "index 0 of axis 0, which has n: it is not known to be there",
        "n may be 0. A symbol with a least value says that it is not.",
        """
        k = dim("k", min=1)


        @script.function
        def main(x: f32[Tensor, k, 4]) -> f32[Tensor, 4]:
            return x[0]
        """,
        hint='dim("n", min=1) says how many there are at least',
    ),
    Mistake(
        "A name of one branch alone",
        """
        @script.function
        def main(x: f32[Tensor, n], s: f32[Tensor, ()]) -> f32[Tensor, n]:
            if s > 0.0:
                y = x * s
            return y
        """,
        "'y' is only assigned in one branch of the if above",
        "Which branch runs is known only then; behind the if, there is what both assign.",
        """
        @script.function
        def main(x: f32[Tensor, n], s: f32[Tensor, ()]) -> f32[Tensor, n]:
            y = x
            if s > 0.0:
                y = x * s
            return y
        """,
        hint="assign it in both, or before",
    ),
    Mistake(
        "A whole tensor as a condition",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            if x > 0.0:
                y = x
            else:
                y = -x
            return y
        """,
        "a condition must be a scalar bool, got a tensor",
        "A branch is taken or not. What is chosen element by element is `R.where`.",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.where(x > 0.0, x, -x)
        """,
        hint="compare first, as in R.greater(x, y), and reduce to rank 0",
    ),
    Mistake(
        "A size that is no integer",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, m]:
            return R.reshape(x, (n / 2, 2))
        """,
        "a dim must be an integer expression, got 'n / 2'",
        "Dims are integers: / has no meaning for them, // rounds down.",
        """
        @script.function
        def main(x: f32[Tensor, n * 2]) -> f32[Tensor, n, 2]:
            return R.reshape(x, (n, 2))
        """,
        hint="dims take + - * // % and min, max with integers and other dims; in a function "
        "float(n) / 2 is a number",
    ),
    Mistake(
        "A function without a result",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            y = R.nn.relu(x)
        """,
        "'main' returns nothing",
        "A graph function is a value of its parameters.",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            y = R.nn.relu(x)
            return y
        """,
        hint="end it with return y",
    ),
    Mistake(
        "A word of the language run by Python",
        """
        y = R.nn.relu(np.ones(4, np.float32))
        """,
        "R.nn.relu is read by the parser and can't be run by Python",
        "R and T are read inside decorated functions. A decorated function is called with arrays.",
        """
        @script.function
        def relu(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.nn.relu(x)


        y = relu(np.ones(4, np.float32))
        """,
        hint="write it inside a function decorated with @script.function",
    ),
    Mistake(
        "A dtype of numpy as a type",
        """
        @script.function
        def main(x: np.float32) -> f32[Tensor, n]:
            return x
        """,
        "expected a type, got the class float32",
        "A type is a dtype with what has it, and its dims: `f32[Tensor, n, 4]`.",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return x
        """,
        hint='types look like f32[Tensor, n, 128]; a number is R.Prim("int64")',
    ),
    Mistake(
        "An else behind a loop",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            for _ in range(3):
                x = x + 1.0
            else:
                x = -x
            return x
        """,
        "for ... else is not part of the language",
        "Python runs it where no break left the loop, which is easily read as something else.",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            for _ in range(3):
                x = x + 1.0
            return -x
        """,
        hint="write these statements behind the loop; where a break skips them, let a variable "
        "tell of it and ask that by an if",
    ),
    Mistake(
        "A new symbol that no size tells",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:
            return R.match_cast(x, f32[Tensor, m // 2])

        main(np.ones(4, np.float32))
        """,
        "the VM can't run this module\n  - no size in match_cast ...",
        "A symbol gets its value where an axis is that symbol alone or linear in it: 2 * m, m + n.",
        """
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:
            return R.match_cast(x, f32[Tensor, 2 * m])

        main(np.ones(4, np.float32))
        """,
    ),
)
