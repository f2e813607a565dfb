"""The talk of a worker: JSON lines enter on stdin, JSON lines leave on stdout, until stdin closes."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Answer = dict[str, Any]


class Contender(Protocol):
    versions: dict[str, str]

    def embed(self, texts: Sequence[str], settings: dict[str, int]) -> np.ndarray:
        """Texts to vectors in the order of the texts: all that is timed."""

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        """Tokens of each text, special ones included, after cutting."""


def answer_requests(
    make: Callable[[], tuple[dict[str, str], Callable[[Answer], Answer]]], engine: Callable[[], str] | None = None
) -> None:
    """`make` gives the versions of what is measured, and the function that answers a request; `engine` names what
    computes its matrix products, where that is worth telling."""
    # Libraries print on stdout as they like: they get stderr, the talk keeps the real one.
    talk = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer: Answer) -> None:
        talk.write(json.dumps(answer) + "\n")
        talk.flush()

    versions, answer = make()
    say({"versions": versions, "engine": engine() if engine else ""})
    for line in sys.stdin:
        say(answer(json.loads(line)))


def serve(make: Callable[[], Contender], engine: Callable[[], str] | None = None) -> None:
    """Answers {"texts": file, "settings": ..., "save": file or none} with seconds, tokens and squared lengths."""

    def prepare() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
        contender = make()
        known: dict[str, tuple[list[str], np.ndarray]] = {}

        def answer(request: Answer) -> Answer:
            file = request["texts"]
            if file not in known:
                texts = json.loads(Path(file).read_text(encoding="utf-8"))
                known[file] = texts, np.asarray(contender.lengths(texts), np.int64)
            texts, lengths = known[file]
            start = time.perf_counter()
            vectors = contender.embed(texts, request["settings"])
            seconds = time.perf_counter() - start
            if request.get("save"):
                np.save(request["save"], vectors)
            return {"seconds": seconds, "tokens": int(lengths.sum()), "squares": int((lengths**2).sum())}

        return contender.versions, answer

    answer_requests(prepare, engine)
