"""Cells: where a tenant is, and lists over all of them."""

from __future__ import annotations

from ops.mutants.bug import Bug

BUGS = (
    Bug(
        "what a front heard last of a tenant is right, also when it is older",
        "brainq/cells/directory.py",
        "known.placement.epoch > placement.epoch",
        "known.placement.epoch > placement.epoch + 9",
        ("tests/unit/cells/test_directory.py",),
    ),
    Bug(
        "the directory is flipped over a later move",
        "brainq/store/repositories/cells.py",
        '_D.epoch == bindparam("epoch", type_=Integer()) - 1',
        '_D.epoch < bindparam("epoch", type_=Integer())',
        ("tests/unit/cells/test_directory.py",),
    ),
    Bug(
        "a page leaves out what another cell has of the same instant",
        "brainq/client/cell_lists.py",
        "cells.names.index(wiring.settings.cell) > cells.names.index(self.cell)",
        "cells.names.index(wiring.settings.cell) > len(cells.names)",
        ("tests/integration/test_cells.py",),
    ),
)
