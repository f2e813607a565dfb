"""What a quickstart was asked for, and where its parts lie. A folder enters; what is in it has a name here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from bertie.data.manifest import write_whole
from bertie.errors import FolderError, SpecError
from bertie.spec import Spec
from bertie.train.options import differences

# Shares of all minutes; gathering, building and searching take the rest.
PRETRAINING, CLASSIFIER, ENCODER = 0.2, 0.08, 0.5


MINUTES = 8.5


class Plan(Spec):
    minutes: float = Field(default=MINUTES, gt=0)
    texts: tuple[str, ...] = ()  # a user's own files; none: the documentation of this Python
    language: str = "en"
    base: str | None = None  # a model folder; None: a model is trained from nothing

    @model_validator(mode="after")
    def _speaks_english(self) -> "Plan":
        if self.language != "en" and not self.texts:
            raise ValueError("the documentation of Python is English: give your own texts with --text")
        return self

    @property
    def is_documentation(self) -> bool:
        return not self.texts

    @property
    def words(self) -> list[str]:
        """What of it was asked for, as on the command line."""
        minutes = [] if self.minutes == MINUTES else ["--minutes", f"{self.minutes:g}"]
        texts = [word for text in self.texts for word in ("--text", text)]
        language = [] if self.language == "en" else ["--lang", self.language]
        return [*minutes, *texts, *language, *([] if self.base is None else ["--base", self.base])]


@dataclass(frozen=True)
class Place:
    """The folder of a quickstart."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    @property
    def entries(self) -> Path:
        return self / "entries.jsonl"

    @property
    def documents(self) -> Path:
        return self / "documents.jsonl"

    @property
    def vocabulary(self) -> Path:
        return self / "vocabulary"

    @property
    def corpus(self) -> Path:
        return self / "corpus"

    @property
    def pretraining(self) -> Path:
        return self / "pretraining"

    @property
    def classifier(self) -> Path:
        return self / "classifier"

    @property
    def spread(self) -> Path:
        return self / "spread"

    @property
    def encoder(self) -> Path:
        return self / "encoder"

    @property
    def collection(self) -> Path:
        return self / "collection.jsonl"

    @property
    def vectors(self) -> Path:
        return self / "collection.npy"

    @property
    def page(self) -> Path:
        return self / "results.html"

    def rows(self, what: str, part: str) -> Path:
        return self / f"{what}-{part}.jsonl"

    def begin(self, wishes: Mapping[str, Any]) -> Plan:
        """The plan of the folder, which is made where it is missing. What is not wished for is as the folder has it. As
        long as nothing was done wishes may change: a wrong name can be mended."""
        file = self / "quickstart.json"
        if not file.exists():
            if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
                raise FolderError("is there, but is no quickstart's", where=str(self.folder), hint="name a new folder")
            return self._keep(Plan.parse(dict(wishes), where="bertie quickstart"))
        before = Plan.from_json(file.read_text("utf-8"), where=str(file))
        plan = before.replace(**wishes)
        if not self.entries.exists():
            return self._keep(plan)
        if told := differences(before.model_dump(), plan.model_dump()):
            what = f"the quickstart was begun otherwise: {'; '.join(told)}"
            raise SpecError(what, where=str(self.folder), hint="ask for the same, or name a new folder with --out")
        return plan

    def _keep(self, plan: Plan) -> Plan:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self / "quickstart.json", plan.to_json().encode())
        except OSError as error:
            hint = "name another folder with --out"
            raise FolderError(f"cannot be written ({error.strerror})", where=str(self.folder), hint=hint) from None
        return plan
