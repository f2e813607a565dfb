from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bertie.data.build.journal import FILE, FOLDER, INPUT, WRONG, Journal, checksum_of
from bertie.errors import UserError


def never(stage: str, part: str, facts: Mapping[str, Any]) -> bool:
    pytest.fail("nothing is to be forgotten here")


def test_notes_are_there_again_and_a_line_cut_by_a_kill_is_not(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({"a": 1}, {}, never)
        journal.note("tokens", "000001-000000", {"bytes": 5})
        journal.note("tokens", "000000-000000", {"bytes": 6})
    path = tmp_path / FOLDER / FILE
    path.write_bytes(path.read_bytes() + b'{"stage":"tokens","par')
    with Journal(tmp_path) as journal:
        journal.start({"a": 1}, {}, never)
        assert journal.finished("tokens") == [("000000-000000", {"bytes": 6}), ("000001-000000", {"bytes": 5})]
        journal.note("tokens", "000002-000000", {"bytes": 7})
    with Journal(tmp_path) as journal:
        journal.start({"a": 1}, {}, never)
        assert journal.done("tokens", "000002-000000") == {"bytes": 7}
        assert journal.done("signatures", "000002-000000") is None


def test_other_settings_are_refused_with_what_differs(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({"`language`": "en", "tokenizer": "x"}, {}, never)
    with Journal(tmp_path) as journal, pytest.raises(UserError, match='`language` was "en" and is now "zh"') as refusal:
        journal.start({"`language`": "zh", "tokenizer": "x"}, {}, never)
    assert "tokenizer" not in refusal.value.what and "`restart`" in str(refusal.value)


def test_a_second_build_is_kept_out(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(UserError, match="another process is using"), Journal(tmp_path):
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
        journal.start({}, {}, never)
        before = (tmp_path / FOLDER / FILE).read_bytes()
        monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError):
            journal.note("tokens", "0", {})
        assert (tmp_path / FOLDER / FILE).read_bytes() == before


def test_another_input_is_refused_until_it_was_found_wrong(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({}, {"the file a": "1"}, never)
        journal.note("tokens", "0", {"slice": "old"})
        journal.note("tokens", "1", {"slice": "same"})
    with Journal(tmp_path) as journal, pytest.raises(UserError, match='the file a was "1" and is now "2"'):
        journal.start({}, {"the file a": "2"}, never)
    with Journal(tmp_path) as journal:
        journal.start({}, {"the file a": "1"}, never)
        journal.note(*WRONG, {})
    with Journal(tmp_path) as journal:
        journal.start({}, {"the file a": "2"}, lambda stage, part, facts: facts.get("slice") == "same")
        assert list(journal.notes) == [("tokens", "1")]
    with Journal(tmp_path) as journal:
        journal.start({}, {"the file a": "2"}, never)
        assert list(journal.notes) == [("tokens", "1")], "what was forgotten stays so"
    with Journal(tmp_path) as journal, pytest.raises(UserError, match="is now"):
        journal.start({}, {"the file a": "3"}, never)


def test_many_differences_are_told_as_a_number(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({}, {f"the file {number}": "1" for number in range(9)}, never)
    with Journal(tmp_path) as journal, pytest.raises(UserError, match=r"the file 4 was .*; and 4 more; use"):
        journal.start({}, {}, never)


def test_clearing_leaves_the_lock_and_what_is_to_be_kept(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({}, {}, never)
        (journal.folder / "signatures-00-documents.u64").touch()
        (journal.folder / "drops").mkdir()
        (journal.folder / INPUT).mkdir()
        journal.clear(keep=INPUT)
        assert sorted(path.name for path in journal.folder.iterdir()) == [INPUT, "lock"]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({"a": 1}, {}, never)
        journal.note("tokens", "0", {"bytes": 5})
        journal.note("tokens", "1", {"bytes": 6})
    path = tmp_path / FOLDER / FILE
    path.write_bytes(path.read_bytes().replace(b'"bytes":5', b'"bytes":7'))
    with (
        Journal(tmp_path) as journal,
        pytest.raises(UserError, match=r"journal\.jsonl:2: .* is damaged; give `restart`"),
    ):
        journal.start({"a": 1}, {}, never)


def test_files_that_are_not_as_noted_are_named(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.start({}, {}, never)
        (journal.folder / "drops").mkdir()
        path = journal.folder / "drops" / "0.drops"
        path.write_bytes(b"drops")
        journal.note("merge", "duplicates", {"checksums": {"drops/0.drops": checksum_of(path)}})
        journal.check_files()
        path.write_bytes(b"props")
        with pytest.raises(UserError, match=r"0\.drops: a file of the unfinished build is damaged; give `restart`"):
            journal.check_files()
        path.unlink()
        with pytest.raises(UserError, match="is damaged"):
            journal.check_files()
