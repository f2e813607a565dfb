"""The job `inspect params`: counts the parameters of a model by part."""

from collections.abc import Iterable
from typing import Any, ClassVar

from rich.table import Table

from bertie.errors import SpecError
from bertie.inspection.parameters import ParameterCounts, count_parameters, count_recipe
from bertie.jobs.job import Job, option
from bertie.jobs.options.recipe_choice import choose_recipe
from bertie.jobs.result import Result
from bertie.models.folder.folder import open_folder
from bertie.models.folder.folder_finding import find_folder
from bertie.reporting.events import OnEvent, ignore


class CountJob(Job):
    """Count parameters by part, with and without biases and pooler."""

    verb: ClassVar[str] = "inspect params"
    example: ClassVar[str] = "bertie inspect params --recipe bert --size base"
    exclusive = (("model", "recipe"),)
    model: str | None = option(None, "A model folder.", argument=True)
    recipe: str | None = option(None, "Count a recipe instead of a folder.", common=True)
    size: str = option("base", "Size of the recipe.", common=True)
    vocab_size: int = option(30_522, "Size of the recipe's vocabulary.", common=True, ge=1)

    def run(self, on_event: OnEvent = ignore) -> "Counts":
        if self.model is not None:
            return Counts(count_parameters(open_folder(find_folder(self.model)).model))
        if self.recipe is None:
            raise SpecError("there is nothing to count", hint="give a model folder, or `recipe`")
        return Counts(count_recipe(choose_recipe(self.recipe, self.size, self.vocab_size)))


class Counts(Result):
    def __init__(self, counts: ParameterCounts):
        self.counts = counts

    def to_json(self) -> Any:
        counts = self.counts
        sums = {"without_biases": counts.without_biases, "encoder": counts.encoder, "total": counts.total}
        return {"parts": counts.parts, "heads": counts.heads, **sums}

    def parts(self) -> Iterable[Table]:
        counts = self.counts
        table = Table("part", "parameters")
        table.columns[1].justify = "right"
        later = ("biases", "pooler")
        for part, count in counts.parts.items():
            if part not in later:
                table.add_row(part, f"{count:,}")
        table.add_row("without biases", f"{counts.without_biases:,}", style="bold", end_section=True)
        for part in later:
            table.add_row(part, f"{counts.parts.get(part, 0):,}")
        table.add_row("with biases and pooler", f"{counts.encoder:,}", style="bold", end_section=True)
        for head, count in counts.heads.items():
            table.add_row(f"{head} head", f"{count:,}")
        table.add_row("with heads", f"{counts.total:,}", style="bold")
        yield table
