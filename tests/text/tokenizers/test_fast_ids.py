"""The native path gives the ids of `tokenizers`, or is not taken."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bertie.text import load_tokenizer
from bertie.text.tokenizers.fast_ids import FastIds, agrees, load_fast_ids
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.settings import Settings
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer, words_tokenizer

Draw = Callable[[int, int], list[str]]

needs_nanotoken = pytest.mark.skipif(importlib.util.find_spec("nanotoken") is None, reason="nanotoken is not installed")
# All ways of cleaning text that a WordPiece folder can ask for.
CLEANINGS = [
    (True, None, True),
    (False, None, True),
    (True, False, True),
    (False, True, False),
    (True, None, False),
]


def differences(tokenizer: PipelineTokenizer, texts: list[str], add_special: bool = True) -> list[str]:
    """Texts whose ids on the native path are not those of `tokenizers`."""
    assert tokenizer.fast_ids is not None
    ids, lengths = tokenizer.fast_ids.encode(texts, add_special)
    expected_ids, expected_lengths = tokenizer._encode_batch(texts, add_special)
    if np.array_equal(lengths, expected_lengths) and np.array_equal(ids, expected_ids):
        return []
    rows = zip(
        np.split(ids, np.cumsum(lengths)[:-1]),
        np.split(expected_ids, np.cumsum(expected_lengths)[:-1]),
        texts,
        strict=True,
    )
    return [text for row, expected, text in rows if not np.array_equal(row, expected)]


@needs_nanotoken
@pytest.mark.parametrize("cleaning", CLEANINGS)
def test_random_texts_get_equal_ids(
    cleaning: tuple[bool, bool | None, bool], pieces: list[str], random_texts: Draw
) -> None:
    lowercase, strip_accents, split_ideographs = cleaning
    tokenizer = wordpiece_tokenizer(
        pieces, lowercase=lowercase, strip_accents=strip_accents, split_ideographs=split_ideographs
    )
    assert differences(tokenizer, random_texts(CLEANINGS.index(cleaning), 6_000)) == []


VOCABULARIES = ("uncased", "cased", "chinese", "multilingual-cased")


@needs_nanotoken
@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_million_random_texts_get_equal_ids(name: str, lowercase: bool, shared: Path, random_texts: Draw) -> None:
    lines = (shared / "vocab" / f"bert-base-{name}" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokenizer = wordpiece_tokenizer(lines[:-1], lowercase=lowercase)
    for part in range(5):
        seed = 1000 + 10 * VOCABULARIES.index(name) + 100 * lowercase + part
        assert differences(tokenizer, random_texts(seed, 25_000)) == []


@needs_nanotoken
@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character_gets_equal_ids(lowercase: bool, pieces: list[str]) -> None:
    tokenizer = wordpiece_tokenizer(pieces, lowercase=lowercase)
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(f"a{c}e {c} " for c in characters[start : start + 8]) for start in range(0, len(characters), 8)]
    assert differences(tokenizer, texts) == []


@needs_nanotoken
def test_the_folder_of_a_real_encoder_takes_the_native_path(minilm: Path) -> None:
    tokenizer = load_tokenizer(minilm)
    assert isinstance(tokenizer, PipelineTokenizer)
    assert tokenizer.fast_ids is not None


@needs_nanotoken
def test_added_tokens_get_equal_ids(write: Callable[..., Path], pieces: list[str], random_texts: Draw) -> None:
    added = {
        str(len(pieces)): {"content": "<mark>", "special": False, "lstrip": True, "normalized": True},
        str(len(pieces) + 1): {"content": "Lyon", "special": True, "single_word": True, "normalized": False},
    }
    folder = write({"vocab.txt": pieces, "tokenizer_config.json": {"added_tokens_decoder": added}})
    tokenizer = load_tokenizer(folder)
    assert isinstance(tokenizer, PipelineTokenizer)
    texts = [text.replace("the", " <mark>").replace("Paris", "Lyon") for text in random_texts(99, 2_000)]
    assert differences(tokenizer, texts) == []


def test_without_nanotoken_the_ids_are_the_same(monkeypatch: pytest.MonkeyPatch, pieces: list[str]) -> None:
    texts = ["Paris is the capital", "", "[MASK] 今天"]
    expected = wordpiece_tokenizer(pieces).encode_ids(texts, max_length=4)
    monkeypatch.setitem(sys.modules, "nanotoken", None)
    tokenizer = wordpiece_tokenizer(pieces)
    found = tokenizer.encode_ids(texts, max_length=4)
    assert tokenizer.fast_ids is None
    for name in ("ids", "lengths", "num_truncated"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
        assert getattr(found, name).dtype == np.int64


def test_a_refused_tokenizer_falls_back(monkeypatch: pytest.MonkeyPatch, pieces: list[str]) -> None:
    class RefusalError(ValueError):
        pass

    def refuse(_: str) -> None:
        raise RefusalError("no")

    module = SimpleNamespace(Tokenizer=SimpleNamespace(from_json=refuse), UnsupportedTokenizerError=RefusalError)
    monkeypatch.setitem(sys.modules, "nanotoken", module)
    assert load_fast_ids(wordpiece_tokenizer(pieces).pipeline) is None


def test_a_differing_native_tokenizer_is_not_used(pieces: list[str]) -> None:
    tokenizer = wordpiece_tokenizer(pieces)

    class Almost:
        """Right but for one token of one text."""

        def __init__(self, wrong: bool):
            self.wrong = wrong  # whether the texts with their special tokens, or those without, are the wrong ones

        def encode_batch(self, texts: list[str], add_special_tokens: bool) -> SimpleNamespace:
            ids, lengths = tokenizer._encode_batch(texts, add_special_tokens)
            ids[-2] += self.wrong == add_special_tokens
            return SimpleNamespace(ids=ids, offsets=np.concatenate([[0], np.cumsum(lengths)]))

    assert not agrees(FastIds(Almost(True)), tokenizer.pipeline)
    assert not agrees(FastIds(Almost(False)), tokenizer.pipeline)


def test_other_kinds_do_not_ask(pieces: list[str]) -> None:
    assert words_tokenizer(pieces).fast_ids is None


def test_splitting_special_tokens_stays_with_tokenizers(pieces: list[str]) -> None:
    tokenizer = wordpiece_tokenizer(pieces, settings=Settings({"split_special_tokens": True}))
    assert tokenizer.fast_ids is None
    mask = tokenizer.special.mask
    assert mask not in tokenizer.encode_ids(["a [MASK]"]).ids
    assert mask not in tokenizer.encode("a [MASK]").ids


@pytest.mark.parametrize("native", [True, False])
def test_a_lone_surrogate_names_the_text(native: bool, pieces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from bertie.errors import InputError

    if not native:
        monkeypatch.setitem(sys.modules, "nanotoken", None)
    tokenizer = wordpiece_tokenizer(pieces)
    with pytest.raises(InputError, match=r"text 2 holds the lone surrogate U\+DC80 at character 1"):
        tokenizer.encode_ids(["a", "b", "c\udc80"])
    with pytest.raises(InputError, match="text 1 is bytes, not a string"):
        tokenizer.encode_ids(["a", b"b"])  # type: ignore[list-item]
