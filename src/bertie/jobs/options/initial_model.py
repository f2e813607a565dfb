"""The model that fine-tuning starts from: a folder's, or a recipe's with random weights."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bertie.errors import InputError, SpecError, TokenizerError
from bertie.jobs.finetuning.finetune_options import ModelOptions
from bertie.jobs.options.recipe_choice import choose_recipe
from bertie.models.folder.folder_finding import find_folder, lasting_name
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained, load
from bertie.reporting.events import OnEvent, message
from bertie.tasks.labelled import Labelled
from bertie.tasks.task import Task
from bertie.text.confusable_words import ConfusableWords
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.vocab.building import build_vocabulary
from bertie.text.vocab.vocab_options import VocabOptions

# Of a vocabulary that is trained on the rows: pieces beside the single characters.
CHARACTERS_PER_PIECE, FEWEST_MERGES, MOST_MERGES = 50, 1000, 8000


@dataclass(frozen=True)
class InitialModel:
    options: ModelOptions
    vocabulary: Tokenizer | None  # of a recipe
    corrections: ConfusableWords | None
    name: str | None = None  # where others find it; None for random weights

    @classmethod
    def of(cls, options: ModelOptions, tasks: Sequence[tuple[Task, Labelled]], on_event: OnEvent) -> "InitialModel":
        if options.corrections is not None and any(task.reads_characters for task, _ in tasks):
            what = "`corrections` replace whole words, and this task reads a text character by character"
            raise SpecError(what, hint="drop `corrections`")
        corrections = None if options.corrections is None else ConfusableWords.read(options.corrections)
        vocabulary = None if options.recipe is None else _vocabulary(options, tasks, on_event)
        return cls(options, vocabulary, corrections, None if options.base is None else lasting_name(options.base))

    def load(self, seed: int) -> Pretrained:
        """A new one each time: a run changes the model it is given."""
        options = self.options
        if options.base is not None:
            pretrained = load(options.base)
        else:
            assert options.recipe is not None and self.vocabulary is not None
            recipe = choose_recipe(options.recipe, options.size, self.vocabulary.size)
            bare = recipe.changed({"objectives": (), "tokenizer": self.vocabulary.kind})
            pretrained = Pretrained(Model.new(bare, seed), self.vocabulary)
        if self.corrections is not None:
            if not isinstance(pretrained.tokenizer, PipelineTokenizer):
                hint = "use a model whose folder has a tokenizer.json"
                raise TokenizerError("its tokenizer takes no table of words", where=options.base, hint=hint)
            pretrained.tokenizer = pretrained.tokenizer.correcting(self.corrections, options.base)
        return pretrained

    def note(self, tokenizer: Tokenizer) -> str | None:
        if self.corrections is None or len(tokenizer.confusable.steps) <= len(self.corrections.steps):
            return None
        return "the model already has a table of corrections: it is kept, and the new one is applied first"


def check_source(options: ModelOptions) -> None:
    """Before the rows are read, which may take long."""
    if options.base is None and options.recipe is None:
        raise SpecError("say which model to start from", hint="give `base`, or `recipe` for random weights")
    if options.base is not None:
        find_folder(options.base)
    else:
        choose_recipe(options.recipe, options.size, None)


def _vocabulary(options: ModelOptions, tasks: Sequence[tuple[Task, Labelled]], on_event: OnEvent) -> Tokenizer:
    """The given one, one that the task makes from its rows, or one that is trained on the texts of the rows."""
    if options.tokenizer is not None:
        found = load_tokenizer(options.tokenizer)
        if found is None:
            hint = "train one with `bertie vocab train`"
            raise TokenizerError("has no tokenizer", where=str(options.tokenizer), hint=hint)
        return found
    made = [task.make_tokenizer(rows.sample()) for task, rows in tasks]
    if len(made) == 1 and made[0] is not None:
        return made[0]
    if any(task.reads_characters for task, _ in tasks):
        what = "a task that reads characters and one that does not cannot share a vocabulary"
        raise SpecError(what, hint="give a vocabulary as `tokenizer`")
    return _trained(choose_recipe(options.recipe, options.size, None).tokenizer, tasks, on_event)


def _trained(kind: str, tasks: Sequence[tuple[Task, Labelled]], on_event: OnEvent) -> Tokenizer:
    texts = RowTexts(tasks)
    characters = Counter[str]()
    for one in texts.read():
        characters.update(one.text)
    merges = min(max(characters.total() // CHARACTERS_PER_PIECE, FEWEST_MERGES), MOST_MERGES)
    size = merges + sum(count > 1 for count in characters.values())  # every character that is not rare is a piece
    tokenizer, report = build_vocabulary([texts], VocabOptions(kind=kind, size=size, held_out=0))
    what = f"a {kind} vocabulary of {tokenizer.size:,} pieces was trained on the texts of {texts.num_rows:,} rows"
    on_event(message(f"{what} ({report.num_words:,} words); `tokenizer` takes one of your own"))
    return tokenizer


@dataclass(frozen=True)
class RowText:
    text: str


@dataclass(frozen=True)
class RowTexts:
    """The texts of training rows, as `build_vocabulary` reads them."""

    tasks: Sequence[tuple[Task, Labelled]]

    @property
    def num_rows(self) -> int:
        return sum(len(rows.sample_numbers()) for _, rows in self.tasks)

    def read(self) -> Iterator[RowText]:
        for task, rows in self.tasks:
            for values in rows.sample():
                with suppress(InputError):  # reported when the row is used
                    for one in task.written(values):
                        words = one if isinstance(one, list | tuple) else [one]
                        yield RowText(" ".join(word for word in words if isinstance(word, str)))
