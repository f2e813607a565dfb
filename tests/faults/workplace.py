"""Small valid inputs of every kind, and the commands that are tried on them with what decides their result."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.trying import done

WORDS = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Command:
    """A command that writes to `out`, and how its result is seen."""

    name: str
    words: Callable[[Path], Sequence[object]]  # the command line for an `out`
    results: tuple[str, ...]  # patterns of the files that hold the result, within `out`; none: `out` is the file
    out: str = "out"

    def digest(self, out: Path) -> str:
        """Of the result; "" where there is none."""
        files = [path for pattern in self.results for path in sorted(out.glob(pattern))] if self.results else [out]
        if not files or not all(path.is_file() for path in files):
            return ""
        total = hashlib.sha256()
        for path in files:
            total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()


class Workplace:
    """A folder with texts, labelled rows, a vocabulary, corpora, models; made once."""

    def __init__(self, folder: Path):
        self.folder = folder
        rng = random.Random(0)
        texts = [" ".join("".join(rng.choices(WORDS, k=2)) for _ in range(30)) + "." for _ in range(120)]
        self.texts, self.rows = folder / "texts.txt", folder / "rows.csv"
        self.texts.write_text("\n\n".join(texts) + "\n")
        lines = [f"{' '.join(text.split()[:6])},{'yes' if text < 'm' else 'no'}" for text in texts]
        self.rows.write_text("text,label\n" + "\n".join(lines) + "\n")
        self.lines = folder / "lines.txt"
        self.lines.write_text("".join(f"{' '.join(text.split()[:8])}\n" for text in texts))
        self.vocab, self.corpus = folder / "vocab", folder / "corpus"
        self.frozen, self.model, self.task = folder / "frozen", folder / "run" / "model", folder / "task-run" / "model"
        done("vocab", "train", self.texts, "--size", 200, "--out", self.vocab)
        done("corpus", "build", self.texts, "--tokenizer", self.vocab, "--workers", 1, "--out", self.corpus)
        done("corpus", "freeze", self.corpus, "--recipe", "bert", *self.shape, "--out", self.frozen)
        done(*self.pretrain(folder / "run"))
        done(*self.finetune(folder / "task-run"))

    shape = ("--max-length", 16, "--duplicate-factor", 2, "--held-out", 20)

    def pretrain(self, out: Path, corpus: Path | None = None, steps: int = 6) -> list[object]:
        given = (
            "--recipe bert --size tiny --save-every 2 --max-length 16 --batch-tokens 128 --held-out 20 --eval-rows 8"
        )
        return ["pretrain", *given.split(), "--steps", steps, "--corpus", corpus or self.corpus, "--out", out]

    def finetune(self, out: Path, base: Path | None = None) -> list[object]:
        given = "--epochs 1 --batch 32 --max-length 12 --save-every 2"
        files = ["--base", base or self.model, "--train", self.rows, "--dev", self.rows, "--out", out]
        return ["finetune", "classify", *given.split(), *files]

    def commands(self) -> list[Command]:
        """The commands that write, each of which continues or repeats what was stopped."""
        vocab = ["vocab", "train", self.texts, "--size", 200]
        build = ["corpus", "build", self.texts, "--tokenizer", self.vocab, "--workers", 1]
        freeze = ["corpus", "freeze", self.corpus, "--recipe", "bert", *self.shape]
        embed = ["embed", self.model, self.lines, "--max-length", 16]
        return [
            Command("vocab train", lambda out: [*vocab, "--out", out], ("tokenizer.json",)),
            Command("corpus build", lambda out: [*build, "--out", out], ("manifest.json", "shard-*", "tokenizer/*")),
            Command("corpus freeze", lambda out: [*freeze, "--out", out], ("*.arrow", "checksums.json")),
            Command("pretrain", self.pretrain, ("model/model.safetensors",)),
            Command("finetune", self.finetune, ("model/model.safetensors",)),
            Command("embed", lambda out: [*embed, "--out", out], (), "out.npy"),
        ]


def copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def as_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
