import json
from pathlib import Path

import pytest

from bertie.data.build.journal import Journal
from bertie.data.frozen_corpus import SAMPLES
from bertie.data.manifest import Manifest, TokenizerEntry, added
from bertie.disk import sealed, write_file
from bertie.errors import FolderError

TOKENIZER = TokenizerEntry(digest="abc", kind="wordpiece", size=100, unk=1)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    manifest = Manifest(tokenizer=TOKENIZER, counts={"documents read": 3}, dropped={"duplicate documents": 1})
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no such folder"):
        Manifest.read(tmp_path / "absent")
    with pytest.raises(FolderError, match="this is not a corpus"):
        Manifest.read(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(FolderError, match="cannot be read"):
        Manifest.read(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(FolderError, match="version 99"):
        Manifest.read(tmp_path)
    (tmp_path / "manifest.json").write_bytes(sealed(json.dumps({"version": 98}, indent=1)))
    with pytest.raises(FolderError, match=r"version 98, .*build the corpus again with this version"):
        Manifest.read(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"version": 2, "tokenizer": 5}))
    with pytest.raises(FolderError, match="was changed after it was written"):
        Manifest.read(tmp_path)
    (tmp_path / "manifest.json").write_bytes(sealed(json.dumps({"version": 2, "tokenizer": 5}, indent=1)))
    with pytest.raises(FolderError, match="tokenizer"):
        Manifest.read(tmp_path)


def test_every_changed_byte_is_refused(tmp_path: Path) -> None:
    manifest = Manifest(tokenizer=TOKENIZER, counts={"documents read": 3}, dropped={"duplicate documents": 1})
    manifest.write(tmp_path)
    path = tmp_path / "manifest.json"
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in (0, 5):  # the latter turns letters into capitals, and blanks into nothing
            path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
            with pytest.raises(FolderError, match=r"manifest\.json: .*(changed|cannot be read).*from a copy"):
                Manifest.read(tmp_path)
    for changed in (content + b" ", content[:-1], content.replace(b"\n", b"\r\n")):
        path.write_bytes(changed)
        with pytest.raises(FolderError, match="was changed after it was written"):
            Manifest.read(tmp_path)


def test_a_folder_without_a_manifest_is_called_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "frozen").mkdir()
    (tmp_path / "frozen" / SAMPLES).touch()
    with pytest.raises(FolderError, match="frozen samples, not a corpus"):
        Manifest.read(tmp_path / "frozen")
    with Journal(tmp_path / "begun") as journal:
        journal.start({}, {}, lambda stage, part, facts: True)
    with pytest.raises(FolderError, match="the build is not finished"):
        Manifest.read(tmp_path / "begun")


def test_a_failed_write_leaves_the_file_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "a", b"first")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError):
        write_file(tmp_path / "a", b"second")
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_bytes() == b"first"


def test_counts_add_key_by_key() -> None:
    assert added({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": 1, "b": 5, "c": 4}
