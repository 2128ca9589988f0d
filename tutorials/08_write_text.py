"""Tutorial 8: a decoder writes token by token, its caches kept and written in place.

Run it: ``python tutorials/08_write_text.py``. The decoder is one attention layer with random
weights; a model exported with ``past`` inputs and ``present`` outputs is used in the same way.
"""

from __future__ import annotations

import numpy as np

import unity
from unity import script
from unity.script import R, Tensor, dim, f32, i64

VOCAB, WIDTH = 50, 32
past = dim("past")
new = dim("new")


# %% What exporters write: keys and values of the new tokens are put behind those of the past, and
# both are results, to be handed in again with the next token.
@script.function
def main(
    ids: i64[Tensor, new],
    table: f32[Tensor, 50, 32],
    head: f32[Tensor, 32, 50],
    past_keys: f32[Tensor, past, 32],
    past_values: f32[Tensor, past, 32],
) -> tuple[f32[Tensor, new, 50], f32[Tensor, past + new, 32], f32[Tensor, past + new, 32]]:
    x = R.take(table, ids, axis=0)
    keys = R.concat((past_keys, R.tanh(x)), axis=0)
    values = R.concat((past_values, x), axis=0)
    scores = R.matmul(x, R.permute_dims(keys, (1, 0)))
    at = R.expand_dims(R.arange(past, past + new), axis=(1,))
    seen = R.less_equal(R.expand_dims(R.arange(0, past + new), axis=(0,)), at)
    weights = R.nn.softmax(R.where(seen, scores, -1e9), axis=-1)
    y = R.matmul(R.add(R.matmul(weights, values), x), head)
    return (y, keys, values)


# %% Run as it is, every call copies the whole caches to put a row behind them.
rng = np.random.default_rng(0)
table = rng.standard_normal((VOCAB, WIDTH), np.float32) * np.float32(0.5)
head = rng.standard_normal((WIDTH, VOCAB), np.float32)
plain = unity.compile(main)
keys = values = np.zeros((0, WIDTH), np.float32)
prompt = np.array([3, 14, 15, 9, 2])
logits, keys, values = plain(prompt, table, head, keys, values)

# %% With `caches`, the compiler finds them (or takes a dict of their names), and a session holds
# them, with room for as many rows as its capacity. A prompt is one run of many tokens.
executable = unity.compile(main, caches=True)
session = executable.session(capacity=64)
first = session.run({"ids": prompt, "table": table, "head": head})
np.testing.assert_allclose(first["output0"], logits, rtol=1e-4, atol=1e-4)
print(session)


# %% Then each token is a run of one. Nothing is copied; the row goes where it belongs.
def write(text: unity.Session, token: int, count: int) -> list[int]:
    """The most likely continuation."""
    found: list[int] = []
    for _ in range(count):
        out = text.run({"ids": np.array([token]), "table": table, "head": head})
        token = int(out["output0"][-1].argmax())
        found.append(token)
    return found


fork = session.fork()  # tries something else from here, with caches of its own
print("from 7: ", write(session, 7, 10))
print("from 11:", write(fork, 11, 10))

# %% Going back is free; so is starting over.
session.reset(len(prompt))
again = write(session, 7, 10)
session.reset()
session.run({"ids": np.array([*prompt, 7, *again[:-1]]), "table": table, "head": head})
print(session)

# %% The caches can be saved as plain arrays and taken up by another session.
saved = session.caches()
other = executable.session(capacity=len(prompt) + 10)
other.restore(saved)
assert other.length == session.length

# %% A full cache is an error that says so; `reserve` makes room.
try:
    write(other, again[-1], 1)
except unity.UnityError as error:
    print(error)
other.reserve(64)
assert write(other, again[-1], 3) == write(session, again[-1], 3)

# %% In the language, the caches are parameters with room, written by `nn.cache_append`; the
# attribute `aliases` says that their caller gives them away.
text = executable.ir()
print(text[: text.index("@script.prim_func")])
