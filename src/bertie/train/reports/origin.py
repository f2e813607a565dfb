"""Says what a report is about: the model, what it was trained from and on, with which options, and when."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bertie.errors import FolderError
from bertie.tasks.labelled import Labelled
from bertie.train.folder.run_folder import MODEL, OPTIONS, read_object
from bertie.train.reports.run_comparison import flattened


@dataclass(frozen=True)
class Origin:
    facts: Mapping[str, str]
    options: Mapping[str, str]  # of the training; empty where its run folder is not at hand


def origin_of(
    model: str, card: Mapping[str, Any], measured: Labelled, recipe: Mapping[str, Any], now: datetime | None = None
) -> Origin:
    """`model` is the folder, or the name, that the model was loaded from, `card` its bertie.json. The options are those
    of the run that ended in it, where it is still in a run folder."""
    folder, encoder, run = Path(model), recipe["encoder"], dict[str, Any]()
    options_file = (folder.parent if folder.name == MODEL else folder) / OPTIONS
    with suppress(FolderError, OSError):  # the figures do not depend on it
        run = read_object(options_file) if options_file.is_file() else {}
    size = f", {encoder['stack']['depth']} layers of width {encoder['width']:,}" if "depth" in encoder["stack"] else ""
    base = card.get("base") or ("none, it started with random weights" if card else "not stated in the folder")
    trained_on = [one["train"] for one in run.get("data", [])]
    facts = {
        "model": model,
        "base": str(base),
        "recipe": f"{recipe['name']}{size}",
        "measured on": format_rows(measured.rows.name, measured.rows.num_rows, measured.columns),
        "trained on": "; ".join(format_rows(*rows) for rows in trained_on),
        "date": f"{now or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }
    options: dict[str, str] = {}
    for name, value in flattened(run.get("options", {})).items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            options[name] = ", ".join(map(str, value))
        elif value is not None:
            options[name] = f"{value:g}" if isinstance(value, float) else str(value)
    return Origin(
        {name: value for name, value in facts.items() if value},
        {name: value for name, value in options.items() if value},
    )


def format_rows(name: str, num_rows: int, columns: Mapping[str, str]) -> str:
    """ "dev.tsv, 300 rows (text is sentence)": columns that are not named as their roles are."""
    renamed = ", ".join(f"{role} is {column}" for role, column in columns.items() if role != column)
    return f"{name}, {num_rows:,} rows" + (f" ({renamed})" if renamed else "")
