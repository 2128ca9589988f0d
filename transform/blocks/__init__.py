"""Facts about blocks and the statements around them: what schedules and the lowering rely on.

Where a block stands (`tree`, `site`), whether it does what its signature says (`legality`), what
must come before what (`dependence`, `dataflow`), what may run elsewhere (`motion`), and a stage as
one formula over its axes (`nest`, `access`).
"""
