"""Walking and rewriting programs: one import for both levels."""

from .leaves import Leaves, leaves, prim_loads, variables
from .substitute import substitute_prim, substitute_stmt, with_shape
from .visit_graph import (
    bodies_of,
    free_vars,
    graph_children,
    map_body,
    map_expr,
    map_type_dims,
    substitute_symbols,
    substitute_symbols_in_type,
    substitute_vars,
    type_symbols,
    walk_bindings,
    walk_constants,
)
from .visit_prim import map_prim, prim_children, rewrite_loads, rewrite_prim, walk_prim
from .visit_stmt import (
    map_stmt,
    map_stmts,
    rewrite_stmt,
    stmt_children,
    stmt_exprs,
    stmt_loads,
    walk_stmt,
    with_loop_body,
)

__all__ = [
    "Leaves",
    "bodies_of",
    "free_vars",
    "graph_children",
    "leaves",
    "map_body",
    "map_expr",
    "map_prim",
    "map_stmt",
    "map_stmts",
    "map_type_dims",
    "prim_children",
    "prim_loads",
    "rewrite_loads",
    "rewrite_prim",
    "rewrite_stmt",
    "stmt_children",
    "stmt_exprs",
    "stmt_loads",
    "substitute_prim",
    "substitute_stmt",
    "substitute_symbols",
    "substitute_symbols_in_type",
    "substitute_vars",
    "type_symbols",
    "variables",
    "walk_bindings",
    "walk_constants",
    "walk_prim",
    "walk_stmt",
    "with_loop_body",
    "with_shape",
]
