"""Collects what is wrong with the rows that are left out: counts by kind and a readable summary, so that nothing is
left out silently."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bertie.data.rows.rows import Row, RowError, Rows


@dataclass
class Faults:
    """Counts by kind, and the first few of each kind with their places."""

    num_shown: int = 3
    counts: Counter[str] = field(default_factory=Counter)
    shown: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, where: str, what: str) -> None:
        self.counts[kind] += 1
        shown = self.shown.setdefault(kind, [])
        if len(shown) < self.num_shown:
            shown.append(f"{where}: {what}")

    def add_error(self, error: RowError) -> None:
        self.add(error.kind, str(error.where), error.what)

    def __str__(self) -> str:
        """Nothing where there is no fault."""
        if not self.counts:
            return ""
        lines = [f"{_rows(self.counts.total())} left out:"]
        for kind, count in self.counts.most_common():
            shown = self.shown[kind]
            more = f", the first {len(shown)} of them" if count > len(shown) else ""
            lines.append(f"  {kind}: {count:,}{more}")
            lines += [f"    {fault}" for fault in shown]
        return "\n".join(lines)


def good_rows(rows: Rows, faults: Faults) -> Iterator[Row]:
    """The rows that can be read; the others are counted in `faults`."""
    for number in range(rows.num_rows):
        try:
            row = rows.row(number)
        except RowError as error:
            faults.add_error(error)
        else:
            yield row


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"
