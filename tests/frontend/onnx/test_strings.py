"""What looks into strings and files, as onnxruntime or the reference evaluator computes it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from tests.conformance.suite import by_interpreter
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx

WORDS = np.array(["The quick", "brown  fox", "", "jumps over the"], object)
HEAD = '<ir_version: 9, opset_import: ["" : 20]>'


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{HEAD} {text}")


SPLIT = parsed("""
g (string[n] x) => (string[n, m] parts, int64[n] counts, string[n] first) {
  parts, counts = StringSplit (x)
  zero = Constant <value_int: int = 0> ()
  first = Gather <axis: int = 1> (parts, zero)
}""")
JOINED = parsed("""
g (string[n] x, int64 k) => (string y, bool[n] m) {
  tail = Constant <value_strings: strings = ["!"]> ()
  loud = StringConcat (x, tail)
  m = RegexFullMatch <pattern: string = "[a-z ]+!"> (loud)
  y = Gather <axis: int = 0> (loud, k)
}""")


@pytest.mark.parametrize("model", [SPLIT, JOINED])
def test_as_the_reference_evaluator(model: onnx.ModelProto) -> None:
    feeds: dict[str, object] = {"x": WORDS}
    if model is JOINED:
        feeds["k"] = np.array(1)
    want = ReferenceEvaluator(model).run(None, feeds)
    got = by_interpreter(from_onnx(model), list(feeds.values()))
    for one, other in zip(got, want, strict=True):
        assert np.asarray(one).tolist() == np.asarray(other).tolist()


def test_calls_by_name_and_from_an_artifact(tmp_path: Path) -> None:
    exe = unity.compile(JOINED)
    exe.save(tmp_path / "joined.unity")
    for run in (exe, unity.load(tmp_path / "joined.unity")):
        found = run.run({"x": WORDS, "k": np.array(3)})
        assert found["y"] == "jumps over the!"
        assert found["m"].tolist() == [False, True, False, True]
        with pytest.raises(UnityError, match=r"main takes 2 inputs \(x, k\), got 1: missing k"):
            run(WORDS)


def test_normalized_words_are_counted() -> None:
    words = parsed("""
    g (string[n] x) => (float[3] y) {
      low = StringNormalizer <case_change_action: string = "LOWER",
        stopwords: strings = ["the"]> (x)
      y = TfIdfVectorizer <max_gram_length: int = 1, max_skip_count: int = 0,
        min_gram_length: int = 1, mode: string = "TF", ngram_counts: ints = [0],
        ngram_indexes: ints = [0, 1, 2], pool_strings: strings = ["fox", "the", "dog"]> (low)
    }""")
    given = np.array(["Fox", "THE", "fox", "Dog"], object)
    (got,) = by_interpreter(from_onnx(words), [given])
    np.testing.assert_array_equal(np.asarray(got), np.array([2, 0, 1], np.float32))


def test_numbers_that_are_written_out() -> None:
    model = parsed("g (string[n] x) => (float[n] y) { y = Cast <to: int = 1> (x) }")
    exe = unity.compile(model)
    np.testing.assert_array_equal(
        exe(np.array(["1.5", "-inf", "2e3"])), np.array([1.5, -np.inf, 2000], np.float32)
    )
    with pytest.raises(UnityError, match="a string is no number of float32"):
        exe(np.array(["one"]))


def test_integers_that_are_written_out_are_exact() -> None:
    model = parsed("g (string[n] x) => (int64[n] y) { y = Cast <to: int = 7> (x) }")
    exe = unity.compile(model)
    given = np.array(["9007199254740993", "-9223372036854775808", "2.7"])
    np.testing.assert_array_equal(exe(given), np.array([2**53 + 1, -(2**63), 2]))
    for text in ("9223372036854775808", "inf"):
        with pytest.raises(UnityError, match="a string is no number of int64"):
            exe(np.array([text]))


def test_what_the_program_makes_is_not_looked_into() -> None:
    model = parsed("""
    g (string[n] x, int64 k) => (string[a, b] y) {
      one = Gather <axis: int = 0> (x, k)
      y, z = StringSplit (one)
    }""")
    with pytest.raises(UnsupportedError, match="strings or files that the program itself makes"):
        from_onnx(model)


def test_a_pattern_that_is_none_is_refused() -> None:
    model = parsed(
        'g (string[n] x) => (bool[n] y) { y = RegexFullMatch <pattern: string = "("> (x) }'
    )
    with pytest.raises(UnsupportedError, match=r"the pattern '\('"):
        from_onnx(model)


def test_images_need_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed("g (uint8[n] x) => (uint8[h, w, 3] y) { y = ImageDecoder (x) }")
    exe = unity.compile(model)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(
        UnsupportedError, match=r"needs the package pillow[\s\S]*unity-mlc\[images\]"
    ):
        exe(np.zeros(4, np.uint8))
