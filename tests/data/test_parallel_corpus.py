"""Two corpora side by side: which is told of the whole, and what makes them another pair."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.data.build import BuildOptions, build_corpus
from bertie.data.corpus import Corpus, write_shards
from bertie.data.manifest import TokenizerEntry
from bertie.data.parallel_corpus import ParallelCorpus
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.shapes import Parallel
from bertie.data.shards import CorpusDocument
from bertie.errors import InputError
from bertie.text.reading.documents import DocumentOptions
from bertie.text.tokenizers.tokenizer import load_tokenizer

TOKENIZER = TokenizerEntry(digest="made elsewhere", kind="words", size=1000)
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hi", "bye", "ni", "hao", "zai", "jian"]
AS_IT_IS = BuildOptions(duplicates=False, near_duplicates=False, paragraphs="off")


def write(folder: Path, first: int, num_documents: int = 4) -> Corpus:
    """Documents of three tokens, numbered from `first` on."""
    documents = [
        CorpusDocument(np.arange(3) + first + 10 * number, np.array([0]), np.ones(3, bool), str(number))
        for number in range(num_documents)
    ]
    return write_shards(folder, documents, TOKENIZER)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Corpus, Corpus]:
    return write(tmp_path / "one", 100), write(tmp_path / "two", 500)


def test_the_first_speaks_for_both(sides: tuple[Corpus, Corpus]) -> None:
    both = ParallelCorpus(*sides)
    assert (both.folder, both.manifest) == (sides[0].folder, sides[0].manifest)


def test_the_digest_is_of_both_in_their_order(sides: tuple[Corpus, Corpus], tmp_path: Path) -> None:
    one, two = sides
    same = ParallelCorpus(Corpus.open(one.folder), Corpus.open(two.folder))
    others = [(two, one), (one, one), (two, two), (one, write(tmp_path / "three", 501))]
    digests = [ParallelCorpus(*pair).digest for pair in others]
    assert ParallelCorpus(one, two).digest == same.digest
    assert len({same.digest, one.digest, two.digest, *digests}) == 7


def test_rows_hold_a_document_and_its_translation(sides: tuple[Corpus, Corpus], frame: Frame) -> None:
    both = ParallelCorpus(*sides)
    samples = build_samples(Parallel(length=32), [both.corpus, both.translations], frame)
    row: Any = samples.sample(0, 0, 2)
    assert row["tokens"].tolist() == [1, 120, 121, 122, 2, 520, 521, 522, 2]


def test_corpora_of_other_lengths_are_no_pair(sides: tuple[Corpus, Corpus], tmp_path: Path, frame: Frame) -> None:
    with pytest.raises(InputError, match="4 documents, the other 3"):
        build_samples(Parallel(), [sides[0], write(tmp_path / "short", 500, num_documents=3)], frame)


def build(folder: Path, lines: list[str], options: BuildOptions = AS_IT_IS) -> Corpus:
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in lines))
    tokenizer = load_tokenizer(folder / "vocab.txt")
    assert tokenizer is not None
    reading = DocumentOptions(boundary="line")
    build_corpus(folder / "corpus", [folder / "text.txt"], tokenizer, options, reading=reading)
    return Corpus.open(folder / "corpus")


def test_repeated_lines_stay_beside_their_translations(tmp_path: Path) -> None:
    both = ParallelCorpus(
        build(tmp_path / "a", ["hi", "hi", "bye"]), build(tmp_path / "b", ["ni", "ni hao", "zai jian"])
    )
    assert [document.name.rpartition(":")[2] for document in both.corpus] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["hi", "hi", "bye"], BuildOptions(), "1 duplicate documents"),
        (["hi", "", "bye"], AS_IT_IS, "1 empty or short documents"),
    ],
)
def test_a_side_without_some_of_its_documents_is_refused(
    tmp_path: Path, lines: list[str], options: BuildOptions, message: str
) -> None:
    """Even where both sides have as many."""
    whole, short = build(tmp_path / "a", ["ni", "zai jian"]), build(tmp_path / "b", lines, options)
    assert whole.num_documents == short.num_documents
    for pair in ((whole, short), (short, whole)):
        with pytest.raises(InputError, match=message) as refused:
            ParallelCorpus(*pair)
        assert "`keep_duplicates`" in str(refused.value.hint)
