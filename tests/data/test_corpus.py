import pickle
from pathlib import Path

import numpy as np
import pytest

from bertie.data.corpus import Corpus, write_shards
from bertie.data.manifest import FileEntry, TokenizerEntry
from bertie.data.shards import CorpusDocument
from bertie.errors import FolderError
from bertie.text.tokenizers.tokenizer import load_tokenizer

TOKENIZER = TokenizerEntry(digest="made elsewhere", kind="words", size=1000)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    documents = [
        CorpusDocument(np.full(number + 1, number), np.array([0]), np.ones(number + 1, bool), str(number))
        for number in range(25)
    ]
    return write_shards(tmp_path / "corpus", documents, TOKENIZER, per_shard=10)


def test_documents_are_found_by_number_over_all_shards(corpus: Corpus) -> None:
    assert len(corpus.manifest.shards) == 3 and corpus.num_documents == len(corpus) == 25
    assert corpus.num_tokens == 25 * 26 // 2
    assert corpus.lengths.tolist() == list(range(1, 26)) and corpus.sentence_counts.tolist() == [1] * 25
    assert [corpus.document(number).name for number in (24, 0, 10, 9, 20)] == ["24", "0", "10", "9", "20"]
    assert [document.ids[0] for document in corpus] == list(range(25))
    with pytest.raises(IndexError):
        corpus.document(25)
    with pytest.raises(IndexError):
        corpus.document(-1)


def test_a_copy_in_another_process_reads_the_same(corpus: Corpus) -> None:
    corpus.document(3)
    assert pickle.loads(pickle.dumps(corpus)).document(12).name == "12"


def test_a_flipped_byte_is_found_in_its_shard(corpus: Corpus) -> None:
    assert [faults for _, faults in corpus.verify()] == [[], [], []]
    path = corpus.folder / corpus.manifest.shards[1].name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    found = {entry.name: faults for entry, faults in corpus.verify() if faults}
    assert list(found) == [path.name] and "other bytes" in found[path.name][0]


def test_a_short_and_a_missing_shard_are_found(corpus: Corpus) -> None:
    first, second = (corpus.folder / entry.name for entry in corpus.manifest.shards[:2])
    first.write_bytes(first.read_bytes()[:-1])
    second.unlink()
    faults = [faults for _, faults in corpus.verify()]
    assert "bytes" in faults[0][0] and "is missing" in faults[1][0] and faults[2] == []


def test_a_damaged_shard_is_refused_when_it_is_first_read(corpus: Corpus) -> None:
    path = corpus.folder / corpus.manifest.shards[1].name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    opened = Corpus.open(corpus.folder)
    assert opened.document(9).name == "9", "the first shard is as it was"
    message = f"{path.name} has other bytes than were written.*restore it from a copy, or build the corpus again"
    for read in (lambda: opened.document(10), lambda: opened.lengths, lambda: list(opened)):
        with pytest.raises(FolderError, match=message):
            read()


def test_a_shard_is_checked_once(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, checked = Corpus.open(corpus.folder), list[str]()

    def check(folder: Path, entry: FileEntry, *_: object) -> list[str]:
        checked.append(entry.name)
        return []

    monkeypatch.setattr("bertie.data.corpus.file_faults", check)
    monkeypatch.setattr("bertie.data.corpus.OPEN_SHARDS", 1)
    for number in (0, 24, 3, 12, 24):
        opened.document(number)
    assert checked == [opened.manifest.shards[number].name for number in (0, 2, 1)]


def test_another_tokenizer_is_refused_with_both_digests(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    other = load_tokenizer(tmp_path / "vocab.txt")
    assert other is not None
    with pytest.raises(FolderError) as refusal:
        Corpus.open(corpus.folder, other)
    assert "made elsewhere" in str(refusal.value) and other.digest in str(refusal.value)


def test_a_corpus_without_documents_opens(tmp_path: Path) -> None:
    corpus = write_shards(tmp_path / "empty", [], TOKENIZER)
    assert corpus.num_documents == 0 and len(corpus.lengths) == 0 and list(corpus) == []
