"""Relay's prelude: the types and functions that a module may use without declaring them.

Written anew after the names and types of TVM's ``prelude.rly``. Modules that TVM prints hold what
they use of it themselves; texts written by hand may name it alone.
"""

from __future__ import annotations

from dataclasses import replace

from .. import syntax

PRELUDE = """
type List[A] { Cons(A, List[A]), Nil }
type Option[A] { Some(A), None }
type Tree[A] { Rose(A, List[Tree[A]]) }

def @id[A](%x: A) -> A { %x }
def @compose[A, B, C](%f: fn(B) -> C, %g: fn(A) -> B) -> fn(A) -> C {
  fn (%x: A) -> C { %f(%g(%x)) }
}
def @hd[A](%xs: List[A]) -> A { match? (%xs) { Cons(%x, _) => %x } }
def @tl[A](%xs: List[A]) -> List[A] { match? (%xs) { Cons(_, %rest) => %rest } }
def @nth[A](%xs: List[A], %n: int32) -> A {
  if (%n == 0) { @hd(%xs) } else { @nth(@tl(%xs), %n - 1) }
}
def @length[A](%xs: List[A]) -> int32 {
  match (%xs) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0 }
}
def @update[A](%xs: List[A], %n: int32, %v: A) -> List[A] {
  if (%n == 0) { Cons(%v, @tl(%xs)) } else { Cons(@hd(%xs), @update(@tl(%xs), %n - 1, %v)) }
}
def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil }
}
def @foldl[A, B](%f: fn(A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) { Cons(%x, %rest) => @foldl(%f, %f(%acc, %x), %rest), Nil => %acc }
}
def @foldr[A, B](%f: fn(A, B) -> B, %acc: B, %xs: List[A]) -> B {
  match (%xs) { Cons(%x, %rest) => %f(%x, @foldr(%f, %acc, %rest)), Nil => %acc }
}
def @foldr1[A](%f: fn(A, A) -> A, %xs: List[A]) -> A {
  match? (%xs) {
    Cons(%x, Nil) => %x,
    Cons(%x, %rest) => %f(%x, @foldr1(%f, %rest))
  }
}
def @sum(%xs: List[int32]) -> int32 {
  match (%xs) { Cons(%x, %rest) => %x + @sum(%rest), Nil => 0 }
}
def @concat[A](%xs: List[A], %ys: List[A]) -> List[A] {
  match (%xs) { Cons(%x, %rest) => Cons(%x, @concat(%rest, %ys)), Nil => %ys }
}
def @filter[A](%f: fn(A) -> bool, %xs: List[A]) -> List[A] {
  match (%xs) {
    Cons(%x, %rest) => if (%f(%x)) { Cons(%x, @filter(%f, %rest)) } else { @filter(%f, %rest) },
    Nil => Nil
  }
}
def @zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  match (%xs) {
    Nil => Nil,
    Cons(%x, %xrest) => match (%ys) {
      Nil => Nil,
      Cons(%y, %yrest) => Cons((%x, %y), @zip(%xrest, %yrest))
    }
  }
}
def @rev[A](%xs: List[A]) -> List[A] {
  @foldl(fn (%acc: List[A], %x: A) -> List[A] { Cons(%x, %acc) }, Nil, %xs)
}
def @map_accuml[A, B, C](%f: fn(A, B) -> (A, C), %acc: A, %xs: List[B]) -> (A, List[C]) {
  let %step = fn (%state: (A, List[C]), %x: B) -> (A, List[C]) {
    let %made = %f(%state.0, %x);
    (%made.0, Cons(%made.1, %state.1))
  };
  let %done = @foldl(%step, (%acc, Nil), %xs);
  (%done.0, @rev(%done.1))
}
def @map_accumr[A, B, C](%f: fn(A, B) -> (A, C), %acc: A, %xs: List[B]) -> (A, List[C]) {
  let %step = fn (%x: B, %state: (A, List[C])) -> (A, List[C]) {
    let %made = %f(%state.0, %x);
    (%made.0, Cons(%made.1, %state.1))
  };
  @foldr(%step, (%acc, Nil), %xs)
}
def @unfoldl[A, B](%f: fn(A) -> Option[(A, B)], %seed: A) -> List[B] {
  let %step = fn (%s: A, %made: List[B]) -> List[B] {
    match (%f(%s)) { Some(%both) => %step(%both.0, Cons(%both.1, %made)), None => %made }
  };
  %step(%seed, Nil)
}
def @unfoldr[A, B](%f: fn(A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%f(%seed)) { Some(%both) => Cons(%both.1, @unfoldr(%f, %both.0)), None => Nil }
}
def @tmap[A, B](%f: fn(A) -> B, %tree: Tree[A]) -> Tree[B] {
  let %inner = fn (%x: Tree[A]) -> Tree[B] { @tmap(%f, %x) };
  match (%tree) { Rose(%v, %below) => Rose(%f(%v), @map(%inner, %below)) }
}
def @size[A](%tree: Tree[A]) -> int32 {
  let %inner = fn (%x: Tree[A]) -> int32 { @size(%x) };
  match (%tree) { Rose(_, %below) => 1 + @sum(@map(%inner, %below)) }
}
def @iterate[A](%f: fn(A) -> A, %n: int32) -> fn(A) -> A {
  if (%n == 0) { @id } else { @compose(%f, @iterate(%f, %n - 1)) }
}
"""


def with_prelude(
    module: syntax.Module, prelude: syntax.Module, used: frozenset[str]
) -> syntax.Module:
    """A module with those parts of the prelude that it uses and does not have.

    Args:
        module: What was read.
        prelude: The prelude, read.
        used: Functions, constructors and types of the prelude that the module names.
    """
    if not used:
        return module
    functions = dict(module.functions)
    queue = [name for name in used if name in prelude.functions]
    while queue:
        name = queue.pop()
        if name not in functions:
            functions[name] = prelude.functions[name]
            queue += _called(functions[name])
    types = {**prelude.types, **module.types}
    return replace(module, functions=functions, types=types)


def _called(function: syntax.Function) -> list[str]:
    found: list[str] = []
    seen: set[int] = set()
    stack: list[syntax.Expr] = [function]
    while stack:
        expr = stack.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, syntax.GlobalVar):
            found.append(expr.name)
        stack += syntax.children(expr)
    return found
