"""New words for an old tokenizer: one piece each, old ids kept, and the reason where it cannot be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from bertie.errors import TokenizerError
from bertie.text import load_tokenizer
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.vocab.building import build_vocabulary
from bertie.text.vocab.counting import count_words
from bertie.text.vocab.extension import extend_tokenizer, find_words, word_counting
from bertie.text.vocab.vocab_options import VocabOptions

OLD_TEXTS = ["ka to mi, it's 19!", "unrel, Batost ingo", "使用语言模型。", ""]


@pytest.fixture(scope="module")
def built(documents: list[str], as_slice: Callable[..., Any]) -> Callable[[str], PipelineTokenizer]:
    def build(kind: str) -> PipelineTokenizer:
        return build_vocabulary([as_slice(*documents)], VocabOptions(kind=kind, size=330, special=("[ENT]",)))[0]

    return build


@pytest.mark.parametrize(("kind", "space"), [("wordpiece", ""), ("byte-bpe", "Ġ")])
def test_new_words_are_one_piece(
    kind: str, space: str, built: Callable[[str], PipelineTokenizer], tmp_path: Path
) -> None:
    base = built(kind)
    base.pipeline.add_tokens(["[LATE]"])  # an added token with an id past the vocabulary
    base = PipelineTokenizer(base.pipeline, base.settings)
    words = ["zebrafish", "zebrafinch", "microbiome"]
    words = [word for word in words if base.special.unk not in base.encode(" " + word).ids] or ["mirelka", "mirelto"]
    extension = extend_tokenizer(base, words)
    assert extension.words == tuple(space + word for word in words)
    extended = extension.tokenizer
    assert extended.size == base.size + len(extension.origins)
    assert extended.id_of("[LATE]") == base.id_of("[LATE]") == base.size - 1
    for text in OLD_TEXTS:
        assert extended.encode(text).ids.tolist() == base.encode(text).ids.tolist()
    for word in words:
        new = extended.id_of(space + word)
        assert new is not None and new >= base.size
        text = f"ka {word}, to"
        assert extended.encode(text).ids.tolist().count(new) == 1
        old = base.encode(f"ka {word}").ids.tolist()
        assert list(extension.origins[new]) == old[len(base.encode("ka").ids) - 1 : -1]
    extended.save(tmp_path)
    theirs, again = AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(tmp_path)
    assert again is not None and again.digest == extended.digest
    for text in [*OLD_TEXTS, *(f"ka {word}s [LATE] {word}" for word in words)]:
        assert theirs(text)["input_ids"] == extended.encode(text).ids.tolist()


def test_merges_share_their_steps(built: Callable[[str], PipelineTokenizer]) -> None:
    base = built("byte-bpe")
    words = ["qxzv", "qxz", "qxzvw", "qx"]
    extension = extend_tokenizer(base, words)
    assert extension.words == ("Ġqxzv", "Ġqxz", "Ġqxzvw", "Ġqx")
    for word in words:
        tokens = [extension.tokenizer.token_of(id) for id in extension.tokenizer.encode(f"a {word}").ids]
        assert f"Ġ{word}" in tokens


def test_words_that_cannot_be_one_piece_are_told(built: Callable[[str], PipelineTokenizer]) -> None:
    extension = extend_tokenizer(built("wordpiece"), ["ka-to", "ka", "k" * 101, "kamireltoka"])
    assert extension.words == ("kamireltoka",)
    assert extension.skipped == {
        "ka-to": "the tokenizer sees 3 words in it: ka - to",
        "ka": "it is one piece already",
        "k" * 101: "it is longer than 100 characters",
    }


@pytest.mark.parametrize(
    ("kind", "reason"), [("unigram", "probabilities"), ("characters", "single"), ("words", "list")]
)
def test_other_kinds_are_refused(kind: str, reason: str, built: Callable[[str], PipelineTokenizer]) -> None:
    with pytest.raises(TokenizerError, match=f"a {kind} tokenizer cannot be extended: .*{reason}"):
        extend_tokenizer(built(kind), ["a"])


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe"])
def test_words_found_are_those_whose_splitting_costs_most(
    kind: str, built: Callable[[str], PipelineTokenizer], as_slice: Callable[..., Any]
) -> None:
    base = built(kind)
    text = "kakatostmiingo 19 " * 9 + "relrelstunmi " * 6 + "unstkamirelto " * 2 + "unseenkatorel"
    counts = count_words([as_slice(text)], word_counting(base, 10**9)).words
    assert find_words(base, counts, 2) == ["kakatostmiingo", "relrelstunmi"]
    assert len(find_words(base, counts, 10)) == 3  # once is not frequent
    assert extend_tokenizer(base, find_words(base, counts, 2)).skipped == {}
