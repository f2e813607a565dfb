"""JSON of folders that anybody may have written: read within bounds, or refused in one sentence."""

import os
from pathlib import Path

import pytest

from bertie.errors import FolderError, TokenizerError
from bertie.json_files import DEEPEST, check_regular, read_json, read_object, read_regular, shown


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"a": [1, 2.5, null, true, "x"]}', {"a": [1, 2.5, None, True, "x"]}),
        ('{"a": 1, "a": 1}', {"a": 1}),
        ("[" * DEEPEST + "]" * DEEPEST, None),
    ],
)
def test_plain_files_are_read(tmp_path: Path, text: str, content: object) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")
    found = read_json(tmp_path / "a.json")
    assert content is None or found == content


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", r"a.json:1: is not valid JSON \(Expecting property name"),
        (b'{"a": 1,\n\n"b"}', r"a.json:3: is not valid JSON"),
        (b"", r"a.json:1: is not valid JSON \(Expecting value\)"),
        (b"\xff", r"a.json: is not valid JSON \(not UTF-8 at byte 0\)"),
        (b'{"a": 1, "a": 2}', r"a.json: is not valid JSON \(the key 'a' has two values\)"),
        (b"1" + b"0" * 10_000, r"a.json: is not valid JSON \(Exceeds the limit"),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), r"a.json: is nested too deeply"),
        (b'{"a":' * 100_000, r"a.json: is nested too deeply"),
        (b"[" + b"0," * 2_600_000 + b"[" * 2_600_000, r"a.json: has .* bytes|a.json: has more than 5,000,000 values"),
        (b" " * (8 * 2**20 + 1), r"a.json: has 8,388,609 bytes, more than the 8,388,608 that are read"),
    ],
    ids=str,
)
def test_what_is_no_json_is_one_sentence(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(FolderError, match=told) as caught:
        read_json(tmp_path / "a.json")
    assert "\n" not in str(caught.value)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    for name, told in (
        ("folder", "is a folder, not a file"),
        ("pipe", "is a pipe, not a file"),
        ("device", "is a device, not a file"),
        ("loop", r"cannot be read \(Too many levels"),
        ("nothing", "has no nothing"),
    ):
        for read in (check_regular, read_regular, read_json, read_object):
            with pytest.raises(FolderError, match=told):
                read(tmp_path / name)


def test_the_caller_chooses_the_error_and_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1, 2, 3]")
    with pytest.raises(TokenizerError, match="has 9 bytes"):
        read_json(tmp_path / "a.json", limit=8, error=TokenizerError)
    with pytest.raises(FolderError, match="is not a JSON object"):
        read_object(tmp_path / "a.json")


def test_values_are_shown_in_few_letters() -> None:
    assert shown("a") == "'a'"
    assert shown(10**5000) == "a number of 5,001 digits"
    assert len(shown("a" * 1000)) < 70
