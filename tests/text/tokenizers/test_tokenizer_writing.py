"""What is saved opens again here and in `transformers`, with the same ids."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertie.text import Tokenizer, load_tokenizer
from bertie.text.tokenizers.vocabulary import (
    byte_bpe_tokenizer,
    characters_tokenizer,
    wordpiece_tokenizer,
    words_tokenizer,
)

Draw = Callable[[int, int], list[str]]


def build(kind: str, pieces: list[str], byte_bpe: tuple[dict[str, int], list[str]]) -> Tokenizer:
    singles = [piece for piece in pieces if len(piece) == 1 or piece in pieces[:5]]
    if kind == "byte-bpe":
        return byte_bpe_tokenizer(byte_bpe[0], [tuple(line.split(" ")) for line in byte_bpe[1][1:]])  # type: ignore[misc]
    builders: dict[str, Callable[[], Tokenizer]] = {
        "wordpiece": lambda: wordpiece_tokenizer(pieces),
        "cased wordpiece": lambda: wordpiece_tokenizer(pieces, lowercase=False, split_ideographs=False),
        "characters": lambda: characters_tokenizer([*singles, " "]),
        "lower characters": lambda: characters_tokenizer([*singles, " "], lowercase=True),
        "words": lambda: words_tokenizer(pieces),
        "words at spaces": lambda: words_tokenizer(pieces, split="whitespace", lowercase=True),
    }
    return builders[kind]()


@pytest.mark.parametrize(
    "kind",
    ["wordpiece", "cased wordpiece", "byte-bpe", "characters", "lower characters", "words", "words at spaces"],
)
@pytest.mark.parametrize("with_config", [True, False])
def test_a_saved_tokenizer_is_the_same(
    kind: str,
    with_config: bool,
    tmp_path: Path,
    pieces: list[str],
    byte_bpe: tuple[dict[str, int], list[str]],
    random_texts: Draw,
    sentences: tuple[str, ...],
) -> None:
    from transformers import AutoTokenizer

    tokenizer = build(kind, pieces, byte_bpe)
    tokenizer.save(tmp_path)
    if with_config:
        (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    again, theirs = load_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert again is not None
    assert again.digest == tokenizer.digest
    assert (again.kind, again.size, again.special) == (tokenizer.kind, tokenizer.size, tokenizer.special)
    for text in [*sentences, "the [MASK] <mask> cat", *random_texts(31, 50)]:
        expected = tokenizer.encode(text, "the cat")
        assert again.encode(text, "the cat").ids.tolist() == expected.ids.tolist()
        found = theirs(text, "the cat", return_token_type_ids=True)
        assert found["input_ids"] == expected.ids.tolist()
        assert found["token_type_ids"] == expected.segments.tolist()
    for role, key in {"pad": "pad", "unk": "unk", "first": "cls", "separator": "sep", "mask": "mask"}.items():
        assert getattr(theirs, f"{key}_token_id") == getattr(tokenizer.special, role)


def test_a_pair_keeps_its_types_in_transformers(tmp_path: Path, pieces: list[str]) -> None:
    from transformers import AutoTokenizer

    wordpiece_tokenizer(pieces).save(tmp_path)
    assert 1 in AutoTokenizer.from_pretrained(tmp_path)("the cat", "sat")["token_type_ids"]


def test_a_foreign_folder_is_saved_with_its_settings(minilm: Path, tmp_path: Path, random_texts: Draw) -> None:
    from transformers import AutoTokenizer

    tokenizer = load_tokenizer(minilm)
    assert tokenizer is not None
    tokenizer.save(tmp_path / "new" / "folder")
    again, theirs = load_tokenizer(tmp_path / "new" / "folder"), AutoTokenizer.from_pretrained(tmp_path / "new/folder")
    assert again is not None
    assert again.digest == tokenizer.digest
    assert again.max_length == tokenizer.max_length == theirs.model_max_length
    config: dict[str, Any] = json.loads((tmp_path / "new/folder/tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["tokenizer_class"] == "BertTokenizer"
    assert "name_or_path" not in config
    assert (tmp_path / "new/folder/vocab.txt").read_bytes() == (minilm / "vocab.txt").read_bytes()
    for text in random_texts(32, 50):
        assert theirs(text)["input_ids"] == tokenizer.encode(text).ids.tolist()


def test_the_vocabulary_file_alone_gives_the_same_tokenizer(tmp_path: Path, pieces: list[str]) -> None:
    tokenizer = wordpiece_tokenizer(pieces, lowercase=False, strip_accents=True)
    tokenizer.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    again = load_tokenizer(tmp_path)
    assert again is not None
    assert again.digest == tokenizer.digest
