"""Tiny models, and a corpus with planted structure."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest

from bertie.batch import Batch, Sample, collate
from bertie.data.corpus import Corpus, write_shards
from bertie.data.shapes import Pairs
from bertie.data.shards import CorpusDocument
from bertie.models.model import Model
from bertie.models.recipe import AnyObjective, Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.attention.scoring import DotProductSpec
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Vocabulary
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.train.stopping import Stopped, StopSignals

NUM_WORDS = 60
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("vocabulary")
    pieces = [*SPECIAL, *(f"w{number}" for number in range(NUM_WORDS))]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    loaded = load_tokenizer(folder)
    assert loaded is not None
    return loaded


CorpusMaker = Callable[..., Corpus]


@pytest.fixture(scope="session")
def make_corpus(tokenizer: Tokenizer) -> CorpusMaker:
    """`make_corpus(folder, 200)`: documents of 12 to 24 tokens in sentences of four, with a rule.

    "ring": twelve words round and round; "pieces": the same tokens, but two of them are a word; "rising": upwards
    through all words; "topics": any of one topic's six words.
    """

    def make(folder: Path, num_documents: int, plan: str = "ring", seed: int = 0) -> Corpus:
        rng = np.random.default_rng(seed)
        documents = []
        for number in range(num_documents):
            length = int(rng.integers(12, 25))
            words = {
                "ring": (rng.integers(12) + np.arange(length)) % 12,
                "pieces": (rng.integers(6) * 2 + np.arange(length)) % 12,
                "rising": rng.integers(NUM_WORDS - length) + np.arange(length),
                "topics": rng.integers(10) * 6 + rng.integers(0, 6, length),
            }[plan]
            ids = (words + len(SPECIAL)).astype(np.uint16)
            sentences = np.arange(0, length, 4, dtype=np.uint32)
            begins = np.arange(length) % 2 == 0 if plan == "pieces" else np.ones(length, bool)
            documents.append(CorpusDocument(ids, sentences, begins, str(number)))
        write_shards(folder, documents, tokenizer)
        tokenizer.save(folder / "tokenizer")
        return Corpus.open(folder, tokenizer)

    return make


def tiny_recipe(
    objectives: Sequence[AnyObjective] = (MaskedLM(samples=Pairs()), NextSentence()),
    dropout: float = 0.0,
    width: int = 32,
    vocab_size: int = NUM_WORDS + len(SPECIAL),
) -> Recipe:
    changes = {
        "encoder.stack.block.mixer.scorer": DotProductSpec(dropout=dropout),
        "encoder.stack.block.residual.dropout": dropout,
        "encoder.embeddings.dropout": dropout,
        "encoder.initial_std": 0.08,  # such narrow models learn slowly from smaller weights
        "objectives": tuple(objectives),
    }
    return bert(Size(depth=2, width=width, num_heads=2), vocab_size).changed(changes)


@pytest.fixture(scope="session")
def recipe() -> Callable[..., Recipe]:
    return tiny_recipe


@pytest.fixture(scope="session")
def draw_batches() -> Callable[..., list[Batch]]:
    """`draw_batches(model, [[9, 14], [8]])`: random rows of these lengths, corrupted by the model's objectives."""

    def draw(model: Model, lengths: Sequence[Sequence[int]], seed: int = 0) -> list[Batch]:
        rng = np.random.default_rng(seed)
        vocabulary = Vocabulary(model.recipe.vocab_size, mask=4, special=frozenset(range(5)))
        batches = []
        for sizes in lengths:
            samples = []
            for size in sizes:
                sample: Sample = {
                    "tokens": rng.integers(5, vocabulary.size, size),
                    "segments": (np.arange(size) > size // 2).astype(np.int64),
                    "partner": np.asarray(rng.integers(0, 2)),
                }
                for objective in model.recipe.objectives:
                    sample = objective.corrupt(sample, vocabulary, rng)
                samples.append(sample)
            batches.append(collate(samples))
        return batches

    return draw


@pytest.fixture
def stopped_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], AbstractContextManager[None]]:
    """`with stopped_after(4):` a run inside is told to stop after so many steps, and does."""

    @contextmanager
    def stopped(steps: int) -> Iterator[None]:
        asked = iter(range(1, 100))

        class After(StopSignals):
            @property
            def received(self) -> int | None:
                return 15 if next(asked) == steps else None

            @received.setter
            def received(self, value: int | None) -> None: ...

        with monkeypatch.context() as patched, pytest.raises(Stopped):
            patched.setattr("bertie.train.run.StopSignals", After)
            yield

    return stopped
