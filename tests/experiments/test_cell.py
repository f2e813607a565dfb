"""What decides a result decides its name, and nothing else does."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.cell import Cell, bertie, in_order

from bertie.errors import InputError

Make = Callable[..., Cell]


def test_every_part_of_a_configuration_is_in_the_digest(make_cell: Make, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one")
    (tmp_path / "other").write_text("two")
    cell = replace(make_cell("base", 1, seed=1), inputs={"text": text})
    assert cell.digest == replace(make_cell("base", 1, seed=1), inputs={"text": text}).digest
    changed = [
        replace(cell, name="other"),
        replace(cell, seed=2),
        replace(cell, commands=[*cell.commands, ("true",)]),
        replace(cell, needs={"corpus": make_cell("corpus", 1)}),
        replace(cell, needs={"corpus": make_cell("corpus", 2)}),
        replace(cell, inputs={"text": tmp_path / "other"}),
        replace(cell, inputs={}),
    ]
    assert len({one.digest for one in [cell, *changed]}) == len(changed) + 1
    assert replace(cell, minutes=9, resumes=False).digest == cell.digest, "how long it takes is no configuration"


def test_needs_come_first_and_once(make_cell: Make) -> None:
    corpus = make_cell("corpus", 1, needs={"vocabulary": make_cell("vocabulary", 1)})
    cells = [make_cell("base", 1, seed, {"corpus": corpus}) for seed in (1, 2)]
    assert [cell.title for cell in in_order(cells)] == ["vocabulary", "corpus", "base, seed 1", "base, seed 2"]


def test_a_missing_input_is_a_user_error(make_cell: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="BERTIE_SHARED"):
        _ = replace(make_cell("base", 1), inputs={"text": tmp_path / "none"}).digest


def test_commands_of_bertie() -> None:
    assert bertie("pretrain", "--seed", 3) == ("{python}", "-m", "bertie.cli.app", "pretrain", "--seed", "3")


def test_a_part_is_told_and_is_no_configuration(make_cell: Make) -> None:
    cell = replace(make_cell("base", 1, seed=2), part="SST-2")
    assert cell.title == "base: SST-2, seed 2"
    assert cell.digest == make_cell("base", 1, seed=2).digest
