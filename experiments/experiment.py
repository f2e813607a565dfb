"""Experiments: a setting enters, a table of cells leaves, with what is to be told of their results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.cell import Cell, Result

Rows = Mapping[str, Sequence[Result]]  # by the name of the configuration: its seeds


@dataclass(frozen=True)
class Setting:
    """What may be chosen from outside."""

    data: Path  # the folder with real text
    minutes: float | None = None  # instead of what an experiment would take: for trying it
    seeds: tuple[int, ...] | None = None  # likewise

    def minutes_or(self, usual: float) -> float:
        return usual if self.minutes is None else self.minutes

    def seeds_or(self, *usual: int) -> tuple[int, ...]:
        return self.seeds or usual


@dataclass(frozen=True)
class Column:
    heading: str
    figure: str
    form: str = ".3f"


@dataclass(frozen=True)
class Curves:
    """One chart: the curve of this name in every result."""

    curve: str
    title: str
    across: str
    percent: bool = False


@dataclass(frozen=True)
class Experiment:
    about: str
    cells: Callable[[Setting], Sequence[Cell]]
    columns: Sequence[Column]
    charts: Sequence[Curves] = ()
    conclude: Callable[[Rows], Sequence[str]] = field(default=lambda rows: ())  # sentences under the table
    alone: bool = True  # a benchmark beside it would spoil its figures; not where it counts tokens and CPU time
