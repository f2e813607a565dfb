"""What fails inside the library `tokenizers` is one sentence, whether it raises or panics."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertie.errors import TokenizerError
from bertie.text.tokenizers.panics import explained, opening
from bertie.text.tokenizers.tokenizer import load_tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

Write = Callable[[dict[str, object]], Path]
PIECES = ["[UNK]", "[CLS]", "[SEP]", "a", "##a", "b"]


class PanicException(BaseException):
    """As Rust code raises it in Python."""


def content(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(wordpiece_tokenizer(PIECES).pipeline.to_str())
    return {**plain, **changes}


def test_a_regular_expression_that_gives_up(write: Write) -> None:
    split = {"type": "Split", "pattern": {"Regex": "(a+)+c"}, "behavior": "Isolated", "invert": False}
    tokenizer = load_tokenizer(write({"tokenizer.json": content(pre_tokenizer=split)}))
    assert tokenizer is not None
    for encode in (
        lambda: tokenizer.encode("a" * 60),
        lambda: tokenizer.encode_ids(["a" * 60]),
        lambda: tokenizer.encode_pieces(["a" * 60]),
        lambda: tokenizer.encode_words(["a" * 60]),
    ):
        with pytest.raises(TokenizerError, match=r"tokenizer.json: fails in `tokenizers` \(.*retry-limit"):
            encode()


def test_a_vocabulary_without_its_unknown_token(write: Write) -> None:
    model = {**content()["model"], "vocab": {"a": 0, "b": 1}}
    tokenizer = load_tokenizer(write({"tokenizer.json": content(model=model, added_tokens=[], post_processor=None)}))
    assert tokenizer is not None
    assert tokenizer.encode_ids(["a b"]).ids.tolist() == [0, 1]
    with pytest.raises(TokenizerError, match=r"Missing \[UNK\] token.*; the vocabulary needs its unknown token"):
        tokenizer.encode_ids(["c"])


@pytest.mark.parametrize("id", [2**32 - 2, 10**19, -1, "5", None, True, 1.5])
@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json"])
def test_an_id_that_would_fill_the_memory(write: Write, name: str, id: object) -> None:
    model = content()["model"]
    model["vocab"]["b"] = id
    files: dict[str, object] = {"tokenizer.json": content(model=model)}
    if name == "vocab.json":
        files = {"vocab.json": model["vocab"], "merges.txt": []}
    with pytest.raises(TokenizerError, match=rf"{name}: gives 'b' the id .*; it has 6 pieces"):
        load_tokenizer(write(files))


@pytest.mark.parametrize("error", [Exception("no"), PanicException("no")])
def test_what_the_library_raises_is_explained(error: BaseException) -> None:
    @explained
    def fail(self: object) -> None:
        raise error

    with pytest.raises(TokenizerError, match=r"fails in `tokenizers` \(no\)"):
        fail(None)
    with pytest.raises(TokenizerError, match=r"here: `tokenizers` cannot read it \(no\)"), opening("here"):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TypeError("a bug"), TokenizerError("said already")])
def test_what_others_raise_is_not(error: BaseException) -> None:
    @explained
    def fail(self: object) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        fail(None)
    assert caught.value is error
