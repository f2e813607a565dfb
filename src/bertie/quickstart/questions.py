"""Questions with the modules that answer them, which were written before any model was asked; they leave as a list."""

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Question:
    question: str
    accepted: tuple[str, ...]


def questions() -> list[Question]:
    text = files("bertie.quickstart").joinpath("questions.json").read_text(encoding="utf-8")
    return [Question(row["question"], tuple(row["accepted"])) for row in json.loads(text)]
