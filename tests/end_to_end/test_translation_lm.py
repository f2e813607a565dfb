"""Translation LM on real pairs, by the command line: masked English words are told better beside their Chinese."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
import torch

import bertie
from bertie.batch import Sample, collate
from bertie.data.corpus import Corpus
from bertie.data.masking import Replacement
from bertie.data.samples.frame import Frame
from bertie.data.samples.parallel import ParallelSamples
from bertie.data.samples.sample_protocols import generator
from bertie.data.shapes import Parallel
from bertie.models.pretrained import Pretrained
from bertie.objectives.masked_lm import MaskedLM
from bertie.train.instances import vocabulary_of
from bertie.train.pretraining.held_out import CorpusPart, hold_out

HELD_OUT = 20  # one pair in so many
# Line i of the one side is the translation of line i of the other: each line is a document, and none may be dropped.
ALIGNED = ("--document", "line", "--keep-duplicates", "--keep-near-duplicates", "--paragraphs", "off")
ALWAYS_HIDDEN = Replacement(mask_share=1, random_share=0)


@pytest.mark.slow
def test_masked_english_is_told_better_beside_its_chinese(
    shared: Path, run_bertie: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    def bertie_does(*words: object) -> None:
        done = run_bertie(*words)
        assert done.returncode == 0, done.stderr

    lines = (shared / "data/cmn_eng/cmn.txt").read_text("utf-8").strip("\n").split("\n")
    sides = zip(*(line.split("\t")[:2] for line in lines), strict=True)
    english, chinese, vocabulary, run = (tmp_path / name for name in ("en", "zh", "vocabulary", "run"))
    for side, texts in zip((english, chinese), sides, strict=True):
        side.with_suffix(".txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    both = [side.with_suffix(".txt") for side in (english, chinese)]
    bertie_does("vocab", "train", *both, "--document", "line", "--size", 6000, "--out", vocabulary)
    for side in (english, chinese):
        source = side.with_suffix(".txt")
        bertie_does("corpus", "build", source, "--tokenizer", vocabulary, "--out", side, "--workers", 1, *ALIGNED)
        assert Corpus.open(side).num_documents == len(lines)
    how = f"--recipe xlm --size tiny --steps 1500 --max-length 64 --batch-tokens 2048 --lr 2e-3 --held-out {HELD_OUT}"
    bertie_does("pretrain", "--corpus", english, "--translations", chinese, *how.split(), "--out", run)

    losses = losses_beside(bertie.load(run), Corpus.open(english), Corpus.open(chinese))
    told = ", ".join(f"{beside} {loss:.3f}" for beside, loss in losses.items())
    sys.stdout.write(f"loss on masked English words of held-out pairs, beside {told}\n")
    assert losses["its own Chinese"] < losses["nothing"] - 0.2
    assert losses["its own Chinese"] < losses["another Chinese"] - 0.3


def losses_beside(pretrained: Pretrained, english: Corpus, chinese: Corpus) -> dict[str, float]:
    """The same masks in the same English sentences of pairs that were held out, with different things beside them."""
    tokenizer = pretrained.tokenizer
    assert tokenizer is not None
    (known, held), (_, translations) = (hold_out(side, HELD_OUT) for side in (english, chinese))
    others = CorpusPart(chinese, np.roll(translations.numbers, 1))
    shape, frame = Parallel(length=512), Frame.of(tokenizer)
    own_rows, other_rows = (ParallelSamples(shape, held, side, frame) for side in (translations, others))
    seen = {english.document(int(number)).ids.tobytes() for number in known.numbers}
    objective = MaskedLM(replacement=ALWAYS_HIDDEN)
    rows: dict[str, list[Sample]] = {"its own Chinese": [], "another Chinese": [], "nothing": []}
    for number in range(held.num_documents):
        if held.document(number).ids.tobytes() in seen:  # one English sentence may have several translations
            continue
        own, other = (samples.sample(0, 0, number) for samples in (own_rows, other_rows))
        alone = {name: values[own["languages"] == 0] for name, values in own.items()}
        masked = objective.corrupt(alone, vocabulary_of(tokenizer), generator(0, 0, number, "corrupt"))
        rows["its own Chinese"].append(beside(masked, own))
        rows["another Chinese"].append(beside(masked, other))
        rows["nothing"].append(masked)
    return {what: loss_of(pretrained, drawn) for what, drawn in rows.items()}


def beside(masked: Sample, pair: dict[str, np.ndarray]) -> Sample:
    """The masked English, then the pair's other side as it is."""
    joined: dict[str, Any] = {
        name: np.concatenate([np.asarray(masked[name]), pair[name][pair["languages"] == 1]])
        for name in ("tokens", "languages", "positions")
    }
    return {**joined, "masked": masked["masked"], "masked_targets": masked["masked_targets"]}


def loss_of(pretrained: Pretrained, rows: Sequence[Sample]) -> float:
    with torch.inference_mode():
        return pretrained.model.loss(collate(rows)).means()["masked_lm"]
