"""The options of a vocabulary, with the defaults of each kind."""

from dataclasses import dataclass

from bertie.errors import SpecError

KINDS = ("wordpiece", "byte-bpe", "unigram", "characters", "words")
BRACKETED = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ANGLED = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SMALLEST_RAM = 300_000_000  # Python and the trainers need that much before the first word is counted


@dataclass(frozen=True)
class VocabOptions:
    """None means: as usual for the kind. Only WordPiece is lower-cased by default; accents go with the case."""

    kind: str = "wordpiece"
    size: int = 16_000
    lowercase: bool | None = None
    strip_accents: bool | None = None
    split_ideographs: bool | None = None  # each Chinese character is a word of its own
    special: tuple[str, ...] = ()  # beside the usual ones
    min_frequency: int = 2  # of a merge, of a word, and of a character; Unigram weighs by likelihood instead
    ram: int = 1_000_000_000  # bytes
    held_out: int = 50  # one document in so many is kept for the report; 0: none
    workers: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SpecError(f"there is no vocabulary kind {self.kind!r}", hint=f"there are {', '.join(KINDS)}")
        if self.ram < SMALLEST_RAM:
            raise SpecError(
                f"{self.ram / 1e9:g} GB of memory is too little", hint=f"give at least {SMALLEST_RAM / 1e9:g} GB"
            )
        for name in ("size", "min_frequency", "workers"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}", hint="it must be at least 1")
        if self.held_out == 1 or self.held_out < 0:
            raise SpecError(f"held_out is {self.held_out}", hint="give 0 for none, or at least 2")
        if len(set(self.all_special)) < len(self.all_special):
            raise SpecError(
                f"a special token is named twice: {', '.join(self.special)}",
                hint=f"{', '.join(self.usual_special)} are there already",
            )

    @property
    def lowers(self) -> bool:
        return self.kind == "wordpiece" if self.lowercase is None else self.lowercase

    @property
    def strips_accents(self) -> bool:
        return self.lowers if self.strip_accents is None else self.strip_accents

    @property
    def splits_ideographs(self) -> bool:
        return self.kind in ("wordpiece", "words") if self.split_ideographs is None else self.split_ideographs

    @property
    def keeps_spaces(self) -> bool:
        """Whether white space is part of pieces or a piece itself."""
        return self.kind in ("byte-bpe", "characters")

    @property
    def usual_special(self) -> tuple[str, ...]:
        return ANGLED if self.kind == "byte-bpe" else BRACKETED

    @property
    def all_special(self) -> tuple[str, ...]:
        return (*self.usual_special, *self.special)
