"""Opening a folder: which file counts, and what is said about a broken one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.errors import TokenizerError
from bertie.text import load_tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

Write = Callable[..., Path]


def test_a_folder_without_tokenizer_files_has_none(write: Write) -> None:
    assert load_tokenizer(write({"config.json": {}, "tokenizer_config.json": {"do_lower_case": True}})) is None


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="nowhere: no such file or folder; give a model folder"):
        load_tokenizer(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json"])
def test_a_file_opens_like_its_folder(name: str, write: Write, pieces: list[str]) -> None:
    pipeline = wordpiece_tokenizer(pieces, lowercase=False).pipeline
    files = {
        "vocab.txt": pieces,
        "tokenizer.json": pipeline.to_str(),
        "tokenizer_config.json": {"do_lower_case": False},
    }
    folder = write({key: files[key] for key in (name, "tokenizer_config.json")})
    by_folder, by_file = load_tokenizer(folder), load_tokenizer(folder / name)
    assert by_folder is not None
    assert by_file is not None
    assert by_folder.digest == by_file.digest == wordpiece_tokenizer(pieces, lowercase=False).digest


def test_the_digest_tells_settings_and_vocabularies_apart(pieces: list[str]) -> None:
    tokenizers = [
        wordpiece_tokenizer(pieces),
        wordpiece_tokenizer(pieces, lowercase=False),
        wordpiece_tokenizer(pieces, split_ideographs=False),
        wordpiece_tokenizer([*pieces, "more"]),
        wordpiece_tokenizer([*pieces[:-2], pieces[-1], pieces[-2]]),
    ]
    assert len({tokenizer.digest for tokenizer in tokenizers}) == len(tokenizers)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tokenizer.json": '{"model": {"type": '}, r"tokenizer.json:1: is not valid JSON .* download it again"),
        ({"tokenizer.json": "[1, 2]"}, r"tokenizer.json: contains no tokenizer: it has no `model`"),
        ({"tokenizer.json": {"model": {"type": "Magic"}}}, r"tokenizer.json: `tokenizers` cannot read it"),
        ({"tokenizer.json": b"\xff\xfe{}"}, r"tokenizer.json: is not valid JSON \(not UTF-8 at byte 0\)"),
        ({"vocab.txt": ["[UNK]", "a", "b", "a"]}, r"vocab.txt: the piece 'a' is listed twice, on lines 2 and 4"),
        ({"vocab.txt": ["[PAD]", "a"]}, r"vocab.txt: the vocabulary has no unknown token \[UNK\]; add a line with it"),
        ({"vocab.txt": b""}, r"vocab.txt: the vocabulary is empty"),
        ({"vocab.txt": b"[UNK]\na\n\xe9\n"}, r"vocab.txt:3: not UTF-8"),
        ({"merges.txt": ["#version: 0.2"]}, r"vocab.json is missing beside merges.txt; a byte-level BPE needs both"),
        ({"vocab.json": {"a": 0}}, r"merges.txt is missing beside vocab.json"),
        ({"vocab.json": ["a"], "merges.txt": []}, r"vocab.json: does not map pieces to ids"),
        ({"vocab.json": {"a": 0, "b": 1}, "merges.txt": ["a b"]}, r"merges.txt:1: 'a b' is not a merge of two pieces"),
        ({"spiece.model": b"no model"}, r"spiece.model: `sentencepiece` cannot read it"),
        ({"vocab.txt": ["[UNK]"], "tokenizer_config.json": "{"}, r"tokenizer_config.json:1: is not valid JSON"),
        (
            {"vocab.txt": ["[UNK]"], "tokenizer_config.json": "[]"},
            r"tokenizer_config.json: contains a list where an object",
        ),
        (
            {"vocab.txt": ["[UNK]", "a"], "added_tokens.json": {"<x>": 7}},
            r"the added token '<x>' should have the id 7 but the next free id is 2",
        ),
        (
            {"vocab.txt": ["[UNK]", "a"], "tokenizer_config.json": {"unk_token": "<oov>"}},
            r"the vocabulary has no unknown token <oov>",
        ),
    ],
)
def test_a_broken_folder_is_explained(files: dict[str, object], message: str, write: Write) -> None:
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(write(files))


def test_a_file_of_another_kind_is_refused(write: Write) -> None:
    with pytest.raises(TokenizerError, match=r"notes.md: not a tokenizer file; give one of tokenizer.json, vocab.txt"):
        load_tokenizer(write({"notes.md": "hello"}) / "notes.md")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(512, 512), (512.0, 512), (1e30, None), (10**18, None), (None, None), (0, None), (True, None)],
)
def test_an_absurd_limit_is_no_limit(limit: object, expected: int | None, write: Write, pieces: list[str]) -> None:
    folder = write({"vocab.txt": pieces, "tokenizer_config.json": {"model_max_length": limit}})
    tokenizer = load_tokenizer(folder)
    assert tokenizer is not None
    assert tokenizer.max_length == expected
