"""The files of a run folder that are written once: whole, or one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.errors import FolderError
from bertie.train.folder.run_folder import begin, write_summary


@pytest.mark.parametrize("act", [lambda folder: begin(folder, {}, "a = 1"), lambda folder: write_summary(folder, {})])
def test_a_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None]
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(FolderError, match="the disk is full; free some space, then run it again: it continues"):
        act(tmp_path)
    assert list(tmp_path.iterdir()) == []
