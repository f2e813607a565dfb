from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bertie.data.shards import Block, CorpusDocument, Shard, shard_schema, write_shard
from bertie.errors import FolderError


def draw_documents(count: int, size: int = 100, seed: int = 0) -> list[CorpusDocument]:
    rng = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        words = rng.random(int(rng.integers(1, 60))) < 0.6
        words[0] = True
        starts = np.flatnonzero(words)[::5].astype(np.uint32)
        documents.append(CorpusDocument(rng.integers(0, size, len(words)), starts, words, f"document {number}"))
    return documents


def test_documents_come_back_from_several_blocks(tmp_path: Path) -> None:
    documents = draw_documents(50)
    entry = write_shard(tmp_path / "s.arrow", [Block.of(documents[:13]), Block.of(documents[13:])], 100)
    shard = Shard(tmp_path / "s.arrow")
    assert shard.num_documents == entry.num_documents == 50
    assert shard.lengths.tolist() == [len(document) for document in documents]
    assert shard.sentence_counts.tolist() == [len(document.sentences) for document in documents]
    # In any order, since the bits of `words` begin within a byte.
    for number in np.random.default_rng(1).permutation(50):
        found, wanted = shard.document(number), documents[number]
        assert found.name == wanted.name
        for field in ("ids", "sentences", "words"):
            np.testing.assert_array_equal(getattr(found, field), getattr(wanted, field))
    assert shard.faults(100) == []


def test_ids_take_two_bytes_where_the_vocabulary_allows(tmp_path: Path) -> None:
    for size, dtype in ((65536, np.uint16), (65537, np.uint32)):
        documents = [CorpusDocument(np.array([size - 1]), np.array([0]), np.array([True]), "")]
        write_shard(tmp_path / "s.arrow", [Block.of(documents)], size)
        ids = Shard(tmp_path / "s.arrow").document(0).ids
        assert ids.dtype == dtype and ids[0] == size - 1
        assert not ids.flags.writeable


def test_other_programs_read_it(tmp_path: Path) -> None:
    documents = draw_documents(5)
    write_shard(tmp_path / "s.arrow", [Block.of(documents)], 100)
    table = pa.ipc.open_file(str(tmp_path / "s.arrow")).read_all()
    assert table.schema == shard_schema(100)
    assert table["words"][3].as_py() == documents[3].words.tolist()


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    entries = [write_shard(tmp_path / name, [Block.of(draw_documents(20))], 100) for name in ("a.arrow", "b.arrow")]
    assert entries[0].sha256 == entries[1].sha256
    assert not list(tmp_path.glob("*.part"))


def test_word_numbers_count_words(tmp_path: Path) -> None:
    document = CorpusDocument(np.arange(4), np.array([0]), np.array([True, False, True, True]), "")
    assert document.word_numbers.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (CorpusDocument(np.array([200]), np.array([0]), np.array([True]), ""), "id 200"),
        (CorpusDocument(np.array([1, 2]), np.array([1]), np.array([True, True]), ""), "follow"),
        (CorpusDocument(np.array([1, 2]), np.array([0, 5]), np.array([True, True]), ""), "follow"),
        (CorpusDocument(np.array([1, 2]), np.array([0, 1]), np.array([True, False]), ""), "within a word"),
        (CorpusDocument(np.zeros(0, int), np.zeros(0, int), np.zeros(0, bool), ""), "empty"),
    ],
)
def test_a_broken_structure_is_seen(tmp_path: Path, document: CorpusDocument, fault: str) -> None:
    write_shard(tmp_path / "s.arrow", [Block.of([document])], 100)
    (found,) = Shard(tmp_path / "s.arrow").faults(100)
    assert fault in found


def test_a_file_that_is_no_shard_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "s.arrow").write_bytes(b"nothing of the kind")
    with pytest.raises(FolderError, match=r"s\.arrow"):
        Shard(tmp_path / "s.arrow")
