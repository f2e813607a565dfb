from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertie.data.build import build_corpus
from bertie.data.build.merging import choose_kept
from bertie.data.manifest import Manifest
from bertie.text.tokenizers.tokenizer import Tokenizer


class Killed(BaseException):
    """Stands for kill -9: nothing after it happens."""


def test_hashes_are_kept_first_and_signatures_where_there_is_room(tmp_path: Path) -> None:
    sizes = {"a.npy": 50, "b.npy": 30, "c.u64": 40}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    paths = sorted(tmp_path.iterdir())
    found = {room: choose_kept(paths, room) for room in (10, 80, 200)}
    assert [entry.name for entry in found[10][0]] == ["c.u64"] and found[10][1] == 80
    assert [entry.name for entry in found[80][0]] == ["c.u64", "b.npy"] and found[80][1] == 50
    assert [entry.name for entry in found[200][0]] == ["c.u64", "a.npy", "b.npy"] and found[200][1] == 0


@pytest.mark.parametrize("moment", ["bertie.data.build.build_run.move_tools", "bertie.data.manifest.Manifest.write"])
def test_a_kill_after_the_signatures_were_left_out_loses_no_count(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    monkeypatch.setattr("bertie.data.build.build_run.SMALL", 0)
    monkeypatch.setattr("bertie.data.build.build_run.DISK_SHARE", 0.1)
    source = write_documents(random_documents(0, 10))
    build_corpus(tmp_path / "whole", [source], tokenizer)
    whole = Manifest.read(tmp_path / "whole")
    assert whole.counts["bytes of near signatures not kept"] > 0

    def die(*given: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(moment, die)
        build_corpus(tmp_path / "killed", [source], tokenizer)
    assert build_corpus(tmp_path / "killed", [source], tokenizer).manifest == whole
