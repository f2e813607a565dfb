"""The words of `finetune` about what a model begins with enter; the model leaves: a folder's, or one that knows nothing
yet."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bertie.cli.choices import choose_recipe
from bertie.data.rows import RowError
from bertie.errors import SpecError, TokenizerError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained, load
from bertie.models.source import find_folder, lasting_name
from bertie.tasks.spacing import Spacing
from bertie.tasks.task import Task
from bertie.text.confusable_words import ConfusableWords
from bertie.text.pipeline import PipelineTokenizer, table_of
from bertie.text.tokenizer import Tokenizer, load_tokenizer
from bertie.text.vocab.characters import characters_of
from bertie.train.finetuning import fitting_rows
from bertie.train.task_data import Labelled

FRESH_RATE = 1e-3  # where --lr is not given: random weights have far to go


@dataclass(frozen=True)
class Beginning:
    """A folder, or a recipe with its size and vocabulary; and the words that are put right before a text is read."""

    base: str | None
    recipe: str | None
    size: str
    vocabulary: Tokenizer | None
    words: ConfusableWords | None

    @property
    def name(self) -> str | None:
        """Where others find it; None for a model that knows nothing."""
        return None if self.base is None else lasting_name(self.base)

    def model(self, seed: int) -> Pretrained:
        """A new one each time: a run changes what it is given."""
        begun = self._fresh(seed) if self.base is None else load(self.base)
        if self.words is not None:
            if not isinstance(begun.tokenizer, PipelineTokenizer):
                hint = "use a model whose folder has a tokenizer.json"
                raise TokenizerError("its tokenizer takes no table of words", where=self.base, hint=hint)
            begun.tokenizer = begun.tokenizer.correcting(self.words, self.base)
        return begun

    def notes(self, tokenizer: Tokenizer) -> list[str]:
        """What is to be told of the model's tokenizer."""
        num_new, num_all = (len(table.steps) for table in (self.words or ConfusableWords(), table_of(tokenizer)))
        had_one = self.words is not None and num_all > num_new
        return ["the model has a table of words already: it is kept, and the new one goes first"] if had_one else []

    def _fresh(self, seed: int) -> Pretrained:
        assert self.recipe is not None and self.vocabulary is not None
        chosen = choose_recipe(self.recipe, self.size, self.vocabulary.size)
        changes = {"objectives": (), "tokenizer": self.vocabulary.kind}
        return Pretrained(Model.new(chosen.changed(changes), seed), self.vocabulary)


def check_beginning(base: str | None, recipe: str | None, vocab: Path | None) -> None:
    """Before the rows are read, which may take long."""
    if (base is None) == (recipe is None):
        what = "what to begin with is not said" if base is None else "--base and --recipe are two beginnings"
        raise SpecError(what, hint="give --base FOLDER, or --recipe NAME to begin with random weights")
    if base is not None:
        if vocab is not None:
            raise SpecError("--vocab says nothing with --base, which has its own", hint="leave out --vocab")
        find_folder(base)


def beginning_of(
    base: str | None,
    recipe: str | None,
    size: str,
    vocab: Path | None,
    words: Path | None,
    tasks: Sequence[tuple[Task, Labelled]],
) -> Beginning:
    if words is not None and any(isinstance(task, Spacing) for task, _ in tasks):
        what = "--normalise puts whole words right, and spaces reads a text character by character"
        raise SpecError(what, hint="leave out --normalise")
    vocabulary = None if recipe is None else vocabulary_of(vocab, tasks)
    return Beginning(base, recipe, size, vocabulary, None if words is None else ConfusableWords.read(words))


def vocabulary_of(folder: Path | None, tasks: Sequence[tuple[Task, Labelled]]) -> Tokenizer:
    """The folder's; where only spaces are learned, the characters of the training rows."""
    if folder is not None:
        found = load_tokenizer(folder)
        if found is None:
            raise TokenizerError("has no tokenizer", where=str(folder), hint="make one with bertie vocab train")
        return found
    if not all(isinstance(task, Spacing) for task, _ in tasks):
        raise SpecError("a new model needs a vocabulary", hint="make one with bertie vocab train, and give --vocab")
    return characters_of(text for _, rows in tasks for text in texts_of(rows))


def texts_of(rows: Labelled) -> Iterator[str]:
    for number in fitting_rows(rows):
        with suppress(RowError):  # it is told when the row is read for its own sake
            if isinstance(text := rows.values(number)[0].get("text"), str):
                yield text
