"""The options that decide the bytes of a corpus, and what a worker needs to make its part of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from bertie.spec import Spec
from bertie.text.reading.cleaning import Cleaning
from bertie.text.segmenters import SegmenterName


class BuildOptions(Spec):
    language: str = "auto"  # a code for the sentence splitter; "auto": by the script of each paragraph
    sentences: bool = True  # else a paragraph counts as one sentence
    cleaning: Cleaning = Cleaning()
    duplicates: bool = True  # leave out documents that were there before
    near_duplicates: bool = True  # and those that differ in few words
    paragraphs: Literal["off", "exact", "near"] = "exact"  # leave out such paragraphs, too
    min_paragraph: int = Field(default=60, ge=1)  # characters; shorter ones, headings mostly, may repeat
    segmenter: SegmenterName = "jieba"
    dictionary: Path | None = None

    @property
    def finds_duplicates(self) -> bool:
        return self.duplicates or self.near_duplicates or self.paragraphs != "off"

    @property
    def compares_near(self) -> bool:
        return self.near_duplicates or self.paragraphs == "near"


@dataclass(frozen=True)
class Setup:
    """Small and picklable: a worker loads from it what it needs."""

    folder: Path  # of the corpus
    layer: int
    tokenizer_path: Path
    options: BuildOptions

    @property
    def signatures(self) -> Path:
        return self.folder / ".build" / "signatures"

    @property
    def drops(self) -> Path:
        return self.folder / ".build" / "drops"
