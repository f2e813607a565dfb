"""From files to a folder: it opens in `transformers` with the same ids, and says how well it covers held-out text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from bertie.errors import FolderError, InputError
from bertie.text import load_tokenizer
from bertie.text.vocab.building import build_vocabulary, train_vocabulary
from bertie.text.vocab.vocab_options import KINDS, VocabOptions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lowercase", [None, True, False])
def test_transformers_gives_the_same_ids(
    kind: str, lowercase: bool | None, corpus_file: Path, tmp_path: Path, random_texts: Callable[[int, int], list[str]]
) -> None:
    options = VocabOptions(kind=kind, size=420, lowercase=lowercase, special=("[ENT]",))
    report = train_vocabulary([corpus_file], tmp_path / "vocab", options)
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path / "vocab"), load_tokenizer(tmp_path / "vocab")
    assert ours is not None
    assert (ours.digest, ours.size, ours.kind) == (report.digest, report.size, kind)
    texts = ["Katomi ing, it's 19! 使用语言[ENT] Ünrel", *random_texts(3, 200)]
    ids = ours.encode_ids(texts)
    assert [row.tolist() for row in ids] == [theirs(text)["input_ids"] for text in texts]
    entity = ours.id_of("[ENT]")
    assert entity in ours.encode(texts[0]).ids
    for name, id in (("pad", ours.special.pad), ("mask", ours.special.mask), ("unk", ours.special.unk)):
        assert getattr(theirs, f"{name}_token_id") == id


def test_case_accents_and_ideographs_are_choices(as_slice: Callable[..., Any]) -> None:
    texts = [as_slice("Été Été 语言 语言", "Été 语言")]
    for lowercase, strip, split, expected in (
        (True, None, None, ["ete", "语", "言"]),
        (True, False, False, ["été", "语言"]),
        (False, True, True, ["Ete", "语", "言"]),
        (False, None, None, ["Été", "语", "言"]),
    ):
        for kind in ("words", "wordpiece"):
            options = VocabOptions(
                kind=kind, size=60, lowercase=lowercase, strip_accents=strip, split_ideographs=split, held_out=0
            )
            tokenizer, _ = build_vocabulary(texts, options)
            assert [tokenizer.token_of(id) for id in tokenizer.encode("Été 语言").ids[1:-1]] == expected


def test_the_report_is_of_held_out_documents(corpus_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "vocab"
    report = train_vocabulary([corpus_file], out, VocabOptions(size=200, held_out=10))
    assert json.loads((out / "vocab_report.json").read_text("utf-8")) == json.loads(json.dumps(report.to_json()))
    assert 0 < report.num_held_out < report.num_documents == 120
    assert report.measured_on == "held-out documents"
    coverage = report.coverage
    assert coverage.unknown_rate == 0
    assert coverage.pieces_per_word > 1.2
    costs = [split.count * (len(split.pieces) - 1) for split in coverage.most_split]
    assert costs == sorted(costs, reverse=True)
    assert "".join(piece.removeprefix("##") for piece in coverage.most_split[0].pieces) == coverage.most_split[0].word
    larger = train_vocabulary([corpus_file], tmp_path / "larger", VocabOptions(size=420, held_out=10))
    assert larger.coverage.pieces_per_word < coverage.pieces_per_word


def test_unknown_pieces_are_counted(as_slice: Callable[..., Any]) -> None:
    options = VocabOptions(kind="words", size=6, held_out=0)
    _, report = build_vocabulary([as_slice("a a a b c c")], options)
    assert report.measured_on == "the training text"
    assert report.coverage.num_unknown == 3
    assert report.coverage.unknown_rate == 0.5


def test_an_existing_folder_is_kept_unless_asked(corpus_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "vocab"
    first = train_vocabulary([corpus_file], out, VocabOptions(size=200))
    with pytest.raises(FolderError, match="exists already; choose another `out`, or give `overwrite`"):
        train_vocabulary([corpus_file], out, VocabOptions(size=210))
    second = train_vocabulary([corpus_file], out, VocabOptions(size=210), overwrite=True)
    tokenizer = load_tokenizer(out)
    assert tokenizer is not None
    assert first.size < second.size == tokenizer.size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.jsonl", "vocab"]


def test_a_folder_of_something_else_is_never_replaced(corpus_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(FolderError, match="is not a vocabulary or model folder"):
        train_vocabulary([corpus_file], out, VocabOptions(size=200), overwrite=True)
    assert (out / "cat.jpg").exists()


def test_nothing_to_read_leaves_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="there is no text to train on"):
        train_vocabulary([empty], tmp_path / "vocab", VocabOptions())
    assert list(tmp_path.iterdir()) == [empty]
