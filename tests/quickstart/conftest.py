from collections.abc import Callable

import pytest

from bertie.quickstart.entries import Entry


@pytest.fixture
def made() -> Callable[..., Entry]:
    """`made("csv.reader", "Reads rows.", "More.")`: an entry of a function, or of what `kind` says."""

    def make(name: str, summary: str, rest: str = "", kind: str = "function") -> Entry:
        return Entry(name, name.partition(".")[0], name.rpartition(".")[0] or name, kind, summary, rest)

    return make
