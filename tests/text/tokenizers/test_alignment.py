"""Words in, words out: one place for every word, whatever the tokenizer makes of it."""

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.errors import SpecError, TokenizerError
from bertie.text.tokenizers.alignment import Aligner, Alignment, Windows, read_line, window_spans
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.tokenizers.unigram import SentencePieceTokenizer
from bertie.text.tokenizers.vocabulary import byte_bpe_tokenizer, wordpiece_tokenizer

ODD_WORDS = (
    *(
        "the",
        "cat",
        "“unaffable”",
        "didn't",
        "naïve",
        "cafe\u0301",
        "\u0301",
        "Ｆｕｌｌ－ｗｉｄｔｈ",
        "１９",
        "使用语言",
    ),
    *("😀", "👨\u200d👩\u200d👧", "❤\ufe0f", "\u200b", "\u200d\u2060", "\ufeff", "\u00ad", "a\u200bb", "\x07", "\x00"),
    *("[MASK]", "<mask>", "[SEP]", "...", "—", "'", "''", "``", "x" * 120, "▁", "Ġ", "##ing"),
)
SPACES = (" ", "  ", "\t", " \t ", "\u3000", "\u00a0", "   ")
KINDS = ("wordpiece", "byte-bpe", "unigram")


@pytest.fixture(scope="module")
def tokenizer_of(
    pieces: list[str], byte_bpe: tuple[dict[str, int], list[str]], spiece: bytes
) -> Callable[[str], Tokenizer]:
    @functools.cache
    def make(kind: str) -> Tokenizer:
        if kind == "wordpiece":
            return wordpiece_tokenizer(pieces)
        if kind == "unigram":
            return SentencePieceTokenizer(spiece)
        vocabulary, merges = byte_bpe
        return byte_bpe_tokenizer(vocabulary, [tuple(merge.split(" ")) for merge in merges[1:]])  # type: ignore[misc]

    return make


def check(windows: Windows, words: Sequence[str], max_length: int) -> None:
    """What holds for every line."""
    assert windows.num_words == len(words)
    every = [list(range(row.first, row.first + len(row.places))) for row in windows.rows]
    assert windows.join(every) == list(range(len(words)))  # each word once, in order
    for row, numbers in zip(windows.rows, every, strict=True):
        assert len(row.ids) == len(row.words) <= max_length
        first_tokens = [int(np.flatnonzero(row.words == number)[0]) for number in numbers]
        assert row.places.tolist() == first_tokens
        inside = row.words[row.words >= 0]
        assert inside.tolist() == sorted(inside.tolist())


def kept_ids(windows: Windows) -> list[int]:
    """The tokens of all words as they are answered, without special ones."""
    ids: list[int] = []
    for row in windows.rows:
        answered = np.arange(row.first, row.first + len(row.places))[row.answered]
        ids += row.ids[np.isin(row.words, answered)].tolist()
    return ids


@pytest.mark.parametrize("kind", KINDS)
@given(words=st.lists(st.sampled_from(ODD_WORDS) | st.text(max_size=3), max_size=25), max_length=st.integers(3, 40))
def test_every_word_has_one_place(
    kind: str, words: list[str], max_length: int, tokenizer_of: Callable[[str], Tokenizer]
) -> None:
    tokenizer = tokenizer_of(kind)
    windows = Aligner(tokenizer, max_length)(words)
    check(windows, words, max_length)
    if not words:
        return
    tokens = tokenizer.encode_words(words)
    alone = tokens.words[~tokens.special]
    without = set(range(len(words))) - set(alone.tolist())
    assert windows.num_without_tokens == len(without)
    room = max_length - int(tokens.special.sum())
    assert windows.num_truncated == sum(max(0, int((alone == word).sum()) - room) for word in range(len(words)))
    if not windows.num_truncated:
        expected = {word: tokens.ids[tokens.words == word].tolist() for word in range(len(words))}
        filled = [id for word in range(len(words)) for id in expected[word] or [tokenizer.special.unk]]
        assert kept_ids(windows) == filled


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.lists(st.tuples(st.sampled_from(ODD_WORDS), st.sampled_from(SPACES)), max_size=20),
    st.sampled_from(("", *SPACES)),
)
def test_offsets_slice_the_line(
    kind: str, tokenizer_of: Callable[[str], Tokenizer], parts: list[tuple[str, str]], before: str
) -> None:
    line = read_line(before + "".join(word + space for word, space in parts))
    assert line.words == line.text.split()
    assert [line.text[start:end] for start, end in line.offsets.tolist()] == line.words
    check(Aligner(tokenizer_of(kind), 30)(line.words), line.words, 30)


def test_a_part_of_a_line_keeps_what_stands_between_its_words() -> None:
    line = read_line("  New\t York\u3000😀  is")
    start, end = line.part(0, 3)
    assert line.text[start:end] == "New\t York\u3000😀"
    assert Alignment(unit="characters").read("今天 3 天").words == ["今", "天", "3", "天"]
    assert read_line(" \t ").words == [] and read_line("").offsets.shape == (0, 2)


def test_a_word_without_tokens_stands_as_the_unknown_token(tokenizer_of: Callable[[str], Tokenizer]) -> None:
    tokenizer = tokenizer_of("wordpiece")
    words = ["\u200b", "the", "\x07", "\u00ad", "cat", "\u200b"]
    (row,) = (found := Aligner(tokenizer, 20)(words)).rows
    unknown, the, cat = tokenizer.special.unk, tokenizer.id_of("the"), tokenizer.id_of("cat")
    assert row.ids[1:-1].tolist() == [unknown, the, unknown, unknown, cat, unknown]
    assert row.places.tolist() == [1, 2, 3, 4, 5, 6]
    assert found.num_without_tokens == 4
    nothing = Aligner(tokenizer, 20)(["\u200b"])
    assert nothing.rows[0].ids.tolist() == [tokenizer.special.first, unknown, tokenizer.special.separator]
    assert Aligner(tokenizer, 20)([]) == Windows((), 0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_words_that_fit_are_tokens_as_the_tokenizer_gives_them(
    kind: str, tokenizer_of: Callable[[str], Tokenizer], sentences: tuple[str, ...]
) -> None:
    tokenizer = tokenizer_of(kind)
    for sentence in sentences:
        (row,) = Aligner(tokenizer, 200)(sentence.split()).rows
        tokens = tokenizer.encode_words(sentence.split())
        assert row.ids.tolist() == tokens.ids.tolist()
        assert row.words.tolist() == tokens.words.tolist()
        assert row.answered == slice(0, len(sentence.split()))


def context(numbers: np.ndarray, starts: np.ndarray, ends: np.ndarray, row: tuple[int, int]) -> np.ndarray:
    """Of each word the tokens on its poorer side within a window; -1 outside it."""
    first, end = row
    sides = np.minimum(starts - starts[first], ends[end - 1] - ends)
    return np.where((numbers >= first) & (numbers < end), sides, -1)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=80),
    st.integers(0, 30),
    st.integers(9, 60),
)
def test_each_word_is_answered_where_it_has_most_context(sizes: list[int], overlap: int, room: int) -> None:
    counts = np.array(sizes)
    spans = window_spans(counts, room, min(overlap, room // 2))
    ends = np.cumsum(counts)
    starts, numbers = ends - counts, np.arange(len(counts))
    assert spans[0][0] == 0 and spans[-1][1] == len(sizes)
    for (first, end), (next_first, next_end) in itertools.pairwise(spans):
        assert first < next_first <= end < next_end
    assert all(1 <= ends[end - 1] - starts[first] <= room for first, end in spans)
    aligner = Aligner.__new__(Aligner)
    aligner.before, aligner.after, aligner.room = np.array([7]), np.array([8]), room
    aligner.overlap = min(overlap, room // 2)
    rows = aligner._rows(np.zeros(ends[-1], np.int64), np.repeat(numbers, counts), counts)
    contexts = np.stack([context(numbers, starts, ends, span) for span in spans])
    owner = np.concatenate([np.full(row.answered.stop - row.answered.start, n) for n, row in enumerate(rows)])
    assert len(owner) == len(sizes)
    assert contexts[owner, numbers].tolist() == contexts.max(0).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_of_six_hundred_words(kind: str, tokenizer_of: Callable[[str], Tokenizer]) -> None:
    short = [word for word in ODD_WORDS if len(word) < 50]
    words = [short[number % len(short)] for number in range(600)]
    tokenizer = tokenizer_of(kind)
    windows = Alignment(overlap=32).build(tokenizer, 128)(words)
    check(windows, words, 128)
    assert len(windows.rows) > 6
    inner = [row for row in windows.rows if row.answered.start > 0 and row.answered.stop < len(row.places)]
    assert len(inner) > 3


@pytest.mark.parametrize("name", ["bert-base-uncased", "bert-base-chinese", "roberta-base", "gpt2", "albert-base"])
def test_real_vocabularies(name: str, shared: Path, random_texts: Callable[[int, int], list[str]]) -> None:
    tokenizer = load_tokenizer(shared / "vocab" / name)
    assert tokenizer is not None
    aligner = Alignment().build(tokenizer, 64)
    num_without = 0
    for text in [*random_texts(11, 150), " \t ".join(ODD_WORDS), " ".join(ODD_WORDS * 19)]:
        line = read_line(text)
        windows = aligner(line.words)
        num_without += windows.num_without_tokens
        check(windows, line.words, 64)
        assert [text[start:end] for start, end in line.offsets.tolist()] == text.split()
    assert num_without > 0 or name in ("roberta-base", "gpt2", "albert-base")


def test_a_word_longer_than_a_window_is_cut_and_counted(tokenizer_of: Callable[[str], Tokenizer]) -> None:
    tokenizer = tokenizer_of("byte-bpe")
    words = ["the", "日" * 20, "cat"]
    windows = Aligner(tokenizer, 12)(words)
    assert windows.num_truncated == len(tokenizer.encode_words(words)) - len(kept_ids(windows)) - 2 > 0
    check(windows, words, 12)


def test_the_strategy_is_a_value() -> None:
    saved = Alignment(overlap=16, unit="characters").to_json()
    assert Alignment.from_json(saved) == Alignment(overlap=16, unit="characters")
    with pytest.raises(SpecError, match="kind"):
        Alignment.parse({"kind": "last"})


def test_what_cannot_be_aligned_is_said(tokenizer_of: Callable[[str], Tokenizer]) -> None:
    with pytest.raises(SpecError, match="`max_length=2` leaves no room for words"):
        Aligner(tokenizer_of("wordpiece"), 2)
    with pytest.raises(TokenizerError, match="one string"):
        Aligner(tokenizer_of("wordpiece"), 20)("not a list")
