"""`bertie corpus report`, `show` and `freeze`: what is printed and written, and what is refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from bertie.batch import Places
from bertie.data.corpus import write_shards
from bertie.data.frozen import Frozen
from bertie.data.frozen_corpus import FrozenCorpus
from bertie.data.reports.document_view import MaskKind
from bertie.data.shards import CorpusDocument
from bertie.errors import FolderError, SpecError, TokenizerError
from bertie.models.variant import MASKS
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

Run = Callable[..., str]
WORDS = ["cat", "dog", "bird", "mat", "house", "tree", "runs", "sleeps", "un", "##able"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    tokenizer = wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    rng = np.random.default_rng(0)
    documents = []
    for number in range(6):
        ids = rng.integers(5, 13, 60)
        ids[1::10], ids[2::10] = 13, 14
        words = ids != 14
        documents.append(CorpusDocument(ids, np.arange(0, 60, 10).astype(np.uint32), words, f"text {number}"))
    write_shards(tmp_path / "corpus", documents, tokenizer)
    tokenizer.save(tmp_path / "corpus" / "tokenizer")
    return tmp_path / "corpus"


def test_report(run: Run, corpus: Path, tmp_path: Path) -> None:
    printed = run("corpus", "report", corpus, "--lengths", "16,128", "--html", tmp_path / "page.html")
    assert "6 documents, 36 sentences, 324 words, 360 tokens; 0.000% unknown" in printed
    assert "Latin 100.00%" in printed
    assert "text 5: " in printed
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    told = json.loads(run("corpus", "report", corpus, "--lengths", 16, "--json"))
    assert told["cuts"][0]["documents"] == 1.0
    with pytest.raises(FolderError, match=r"page\.html: is a file, so nothing can be written into it.*--html"):
        run("corpus", "report", corpus, "--html", tmp_path / "page.html" / "page.html")


def test_leakage_is_reported(run: Run, corpus: Path, tmp_path: Path) -> None:
    first = json.loads(run("corpus", "show", corpus, 2, "--json"))["sentences"]
    line = " ".join("".join(word) for sentence in first[:2] for word in sentence)
    (tmp_path / "eval.txt").write_text(f"{line}\ntree tree tree tree tree tree tree\n", encoding="utf-8")
    printed = run("corpus", "report", corpus, "--against", tmp_path / "eval.txt")
    assert "Leakage: 1 of 2 lines (50.00%) and 8 of 8 13-grams (100.00%)" in printed
    assert f"found: {line}" in printed


def test_show(run: Run, corpus: Path) -> None:
    printed = run("corpus", "show", corpus, 0)
    assert printed.startswith("text 0: 6 sentences, 54 words, 60 tokens")
    assert printed.count("un·able") == 6
    masked = run("corpus", "show", corpus, 0, "--mask", "whole-word", "--seed", "3")
    assert "[MASK]" in masked
    assert masked == run("corpus", "show", corpus, 0, "--mask", "whole-word", "--seed", "3")


def test_a_masking_has_one_name_everywhere(run: Run, corpus: Path) -> None:
    assert get_args(MaskKind) == tuple(MASKS)
    for name in MASKS:
        assert "[MASK]" in run("corpus", "show", corpus, 0, "--mask", name, "--seed", "3")


@pytest.mark.parametrize("number", [6, 100])
def test_a_document_that_is_not_there(run: Run, corpus: Path, number: int) -> None:
    with pytest.raises(SpecError, match="from 0 to 5"):
        run("corpus", "show", corpus, number)


def test_freeze(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "frozen"
    command = (
        "corpus",
        "freeze",
        corpus,
        "--recipe",
        "bert",
        "--max-length",
        32,
        "--duplicate-factor",
        3,
        "--out",
        out,
    )
    printed = run(*command)
    frozen = Frozen(out / "samples.arrow")
    assert frozen.num_samples % 3 == 0
    assert f"{frozen.num_samples:,} samples ({frozen.num_samples // 3:,} x 3)" in printed
    assert (frozen.about["duplicate_factor"], frozen.about["samples"]["length"]) == (3, 32)
    rows = [frozen.sample(0, 0, index) for index in range(frozen.num_samples)]
    for row in rows:
        assert set(row) == {"tokens", "segments", "partner", "masked", "masked_targets"}
        assert isinstance(row["masked"], Places)
        assert len(row["masked"].positions) == len(np.asarray(row["masked_targets"])) > 0
    # The same sample, masked in another way.
    again = rows[frozen.num_samples // 3]
    assert np.asarray(rows[0]["tokens"]).tolist() != np.asarray(again["tokens"]).tolist()
    with pytest.raises(SpecError, match="frozen samples here already; give another folder as --out, or --overwrite"):
        run("corpus", "freeze", corpus, "--recipe", "bert", "--out", out)
    before = (out / "samples.arrow").read_bytes()
    run(*command, "--overwrite")
    assert (out / "samples.arrow").read_bytes() == before
    held = Frozen(out / "held-out.arrow")
    assert held.about == frozen.about and held.num_samples > 0, "documents that nothing is learned from"
    with pytest.raises(SpecError, match="holds other files"):
        run("corpus", "freeze", corpus, "--recipe", "bert", "--out", corpus)


def test_freeze_names_a_place_that_cannot_be_written_to(
    run: Run, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)  # root may write anywhere
    with pytest.raises(FolderError, match="cannot be written to"):
        run("corpus", "freeze", corpus, "--recipe", "bert", "--out", corpus.parent / "new" / "frozen")


def test_freeze_masks_as_it_is_told(run: Run, corpus: Path, tmp_path: Path) -> None:
    wishes = ("--mask", "whole-word", "--mask-rate", 0.3, "--sentences", "none", "--held-out", 0)
    run("corpus", "freeze", corpus, "--recipe", "bert", "--max-length", "32", "--out", tmp_path / "f", *wishes)
    frozen = FrozenCorpus(tmp_path / "f")
    (objective,) = frozen.about["objectives"]
    assert (objective["choose"]["kind"], objective["rate"], frozen.held_out) == ("whole-word", 0.3, None)
    row = frozen.samples.sample(0, 0, 0)
    assert isinstance(row["masked"], Places) and "segments" not in row
    assert len(row["masked"].positions) == pytest.approx(0.3 * len(np.asarray(row["tokens"])), abs=2)


def test_mistakes_are_told(run: Run, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no such folder"):
        run("corpus", "report", tmp_path / "nowhere")
    with pytest.raises(SpecError, match="--lengths: 'long' is not a list of numbers; write it as 128,512"):
        run("corpus", "report", corpus, "--lengths", "long")
    for file in (corpus / "tokenizer").iterdir():
        file.unlink()
    with pytest.raises(TokenizerError, match="--tokenizer"):
        run("corpus", "show", corpus, 0)
    wordpiece_tokenizer(["[UNK]", "cat"]).save(tmp_path / "other")
    with pytest.raises(FolderError, match="made with the tokenizer"):
        run("corpus", "show", corpus, 0, "--tokenizer", tmp_path / "other")


def test_verify_takes_a_frozen_corpus_too(
    run: Run, corpus: Path, tmp_path: Path, run_bertie: Callable[..., Any]
) -> None:
    out = tmp_path / "frozen"
    run("corpus", "freeze", corpus, "--recipe", "bert", "--max-length", "32", "--out", out)
    assert "frozen samples" in run_bertie("corpus", "verify", out).stdout
    file = next(out.glob("*.arrow"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    done = run_bertie("corpus", "verify", out)
    assert done.returncode == 2
    assert file.name in done.stderr
