from pathlib import Path

import pytest

from bertie.data.build.journal import FILE, FOLDER, Journal
from bertie.errors import UserError


def test_notes_are_there_again_and_a_line_cut_by_a_kill_is_not(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({"a": 1})
        journal.note("tokens", "000001-000000", {"bytes": 5})
        journal.note("tokens", "000000-000000", {"bytes": 6})
    path = tmp_path / FOLDER / FILE
    path.write_bytes(path.read_bytes() + b'{"stage":"tokens","par')
    with Journal(tmp_path) as journal:
        journal.start({"a": 1})
        assert journal.finished("tokens") == [("000000-000000", {"bytes": 6}), ("000001-000000", {"bytes": 5})]
        journal.note("tokens", "000002-000000", {"bytes": 7})
    with Journal(tmp_path) as journal:
        journal.start({"a": 1})
        assert journal.done("tokens", "000002-000000") == {"bytes": 7}
        assert journal.done("signatures", "000002-000000") is None


def test_other_settings_are_refused_with_what_differs(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({"--language": "en", "tokenizer": "x"})
    with Journal(tmp_path) as journal, pytest.raises(UserError, match='--language was "en" and is now "zh"') as refusal:
        journal.start({"--language": "zh", "tokenizer": "x"})
    assert "tokenizer" not in refusal.value.what and "--restart" in str(refusal.value)


def test_a_second_build_is_kept_out(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(UserError, match="another build"), Journal(tmp_path):
        pass
    with Journal(tmp_path):
        pass


def test_a_build_that_never_began_leaves_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path):
        pass
    with Journal(tmp_path / "new"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_half_a_line_of_a_full_disk_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path) as journal:
        journal.start({})
        before = (tmp_path / FOLDER / FILE).read_bytes()
        monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError):
            journal.note("tokens", "0", {})
        assert (tmp_path / FOLDER / FILE).read_bytes() == before
