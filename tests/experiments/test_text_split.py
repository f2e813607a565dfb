"""Text to learn from and text to measure on: every document is in one of them."""

import gzip
import json
from pathlib import Path

from experiments.text_split import HELD_OUT, TRAIN, main


def lines_of(path: Path) -> list[bytes]:
    with gzip.open(path, "rb") as lines:
        return list(lines)


def test_every_document_is_on_one_side(tmp_path: Path) -> None:
    documents = [json.dumps({"text": f"document {number}"}).encode() + b"\n" for number in range(1000)]
    for name, lines in (("a", documents), ("b", documents[::-1][:500])):
        with gzip.open(tmp_path / f"{name}.gz", "wb") as stream:
            stream.writelines(lines)
        main([str(tmp_path / f"{name}.gz"), "--one-in", "10", "--out", str(tmp_path / name)])
    train, held_out = (lines_of(tmp_path / "a" / name) for name in (TRAIN, HELD_OUT))
    assert sorted([*train, *held_out]) == sorted(documents)
    assert 60 < len(held_out) < 140
    assert set(lines_of(tmp_path / "b" / HELD_OUT)) <= set(held_out)  # whatever the order and the other documents
    assert set(lines_of(tmp_path / "b" / TRAIN)) <= set(train)
