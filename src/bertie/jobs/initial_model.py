"""The model that fine-tuning starts from: a folder's, or a recipe's with random weights."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertie.errors import SpecError, TokenizerError
from bertie.jobs.finetune_options import ModelOptions
from bertie.jobs.recipe_choice import choose_recipe
from bertie.models.folder_finding import find_folder, lasting_name
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained, load
from bertie.tasks.labelled import Labelled
from bertie.tasks.task import Task
from bertie.text.confusable_words import ConfusableWords
from bertie.text.tokenizers.pipeline import PipelineTokenizer, table_of
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class InitialModel:
    options: ModelOptions
    vocabulary: Tokenizer | None  # of a recipe
    corrections: ConfusableWords | None

    @classmethod
    def of(cls, options: ModelOptions, tasks: Sequence[tuple[Task, Labelled]]) -> "InitialModel":
        if options.corrections is not None and any(task.reads_characters for task, _ in tasks):
            what = "`corrections` replace whole words, and this task reads a text character by character"
            raise SpecError(what, hint="drop `corrections`")
        corrections = None if options.corrections is None else ConfusableWords.read(options.corrections)
        vocabulary = None if options.recipe is None else _vocabulary(options, tasks)
        return cls(options, vocabulary, corrections)

    @property
    def name(self) -> str | None:
        """Where others find it; None for random weights."""
        return None if self.options.base is None else lasting_name(self.options.base)

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
        if self.corrections is None or len(table_of(tokenizer).steps) <= len(self.corrections.steps):
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


def _vocabulary(options: ModelOptions, tasks: Sequence[tuple[Task, Labelled]]) -> Tokenizer:
    """The given one, or one that the tasks make from their rows."""
    if options.tokenizer is not None:
        found = load_tokenizer(options.tokenizer)
        if found is None:
            hint = "train one with `bertie vocab train`"
            raise TokenizerError("has no tokenizer", where=str(options.tokenizer), hint=hint)
        return found
    made = [task.make_tokenizer(rows.sample()) for task, rows in tasks]
    if len(made) != 1 or made[0] is None:
        hint = "train one with `bertie vocab train`, and give it as `tokenizer`"
        raise SpecError("a new model needs a vocabulary", hint=hint)
    return made[0]
