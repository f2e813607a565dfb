"""Job: a verb as a value. Turns options into a validated spec, and the spec into a result.

The fields of a job are options, most of them in groups (nested specs). An option has one name everywhere: as a keyword
in Python, as a key in a config file or JSON, and with dashes as a flag. Names are unique within a job, so options may
also be given flat: `FinetuneJob.of(task="classify", base="my-model", epochs=2)`.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo

from bertie.errors import InputError, SpecError
from bertie.reporting.events import OnEvent, ignore
from bertie.spec import Spec
from bertie.text.reading.paths import kind_of_path

PLUGIN = "plugin"  # in a config file: plugin files to load
LARGEST = 10**9  # of options that have a lower limit and no upper one of their own
LARGEST_SEED = 2**63 - 1
LONG_QUOTE = re.compile(r"'([^']{60})[^']+'")  # of what a user gave


def option(default: Any = ..., help: str = "", **extra: Any) -> Any:
    """A field of a job. Beside the limits that pydantic knows (ge, gt, le, lt), of which a lower one brings the upper
    one `LARGEST`, it takes

    - common: whether the short help lists it,
    - argument: whether it is given by its place on the command line,
    - needed: whether the command line requires it, though Python can do without,
    - many: whether its flag may be repeated,
    - flag: flags in place of those that the name gives, like "--lowercase/--cased",
    - paths: whether all its values on the command line are paths,
    - metavar: the placeholder for its value in the help.
    """
    limits = {name: extra.pop(name) for name in ("ge", "gt", "le", "lt") if name in extra}
    if limits.keys() & {"ge", "gt"} and not limits.keys() & {"le", "lt"}:
        limits["le"] = LARGEST
    return Field(default, description=help, json_schema_extra=extra, **limits)


class Group(Spec):
    """Options that belong together. `title` heads them in the help."""

    title: ClassVar[str]


@dataclass(frozen=True)
class Option:
    """One option of a job, the group it is in ("" for the job's own), and how it looks on the command line (see
    `option`)."""

    name: str
    group: str
    title: str
    field: FieldInfo
    extra: Mapping[str, Any]


class Job(Spec):
    """A verb with its options. `example` is a command line that its help ends with."""

    verb: ClassVar[str]
    example: ClassVar[str]
    exclusive: ClassVar[Sequence[Sequence[str]]] = ()  # options of which one can be given
    requires: ClassVar[Mapping[str, str]] = {}  # options that need another one

    def run(self, on_event: OnEvent = ignore) -> Any:
        """Does the work and returns the result. Events report progress, messages and warnings."""
        raise NotImplementedError

    @classmethod
    def options(cls) -> list[Option]:
        """All options, in the order in which help lists them; those of groups come last."""
        own: list[Option] = []
        grouped: list[Option] = []
        for name, field in cls.model_fields.items():
            kind: Any = field.annotation
            is_group = isinstance(kind, type) and issubclass(kind, Spec) and hasattr(kind, "title")
            for inner, one in (kind.model_fields if is_group else {name: field}).items():
                extra = one.json_schema_extra if isinstance(one.json_schema_extra, dict) else {}
                group, title = (name, kind.title) if is_group else ("", "")
                (grouped if is_group else own).append(Option(inner, group, title, one, extra))
        return own + grouped

    @classmethod
    def of(cls, **options: Any) -> Self:
        """The job from flat options. What is None counts as not given."""
        return cls.from_options(options)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], where: str | None = None) -> Self:
        """As `of`; options may also be given by group, as `given` returns them. `where` says where they come from."""
        groups = {one.name: one.group for one in cls.options()}
        flat = {name: value for name, value in options.items() if name not in groups.values()}
        for group in set(groups.values()):
            flat |= options.get(group) or {}
        flat = {name: value for name, value in flat.items() if value is not None}
        fields: dict[str, Any] = {}
        cls.check_names(flat, where)
        for name, value in flat.items():
            (fields.setdefault(groups[name], {}) if groups[name] else fields)[name] = value
        # What has a value. A table has no truth value, so it is never asked for one.
        empty = [name for name, value in flat.items() if isinstance(value, str | tuple | list) and not value]
        given = [name for name, value in flat.items() if value is not False and name not in empty]
        for names in cls.exclusive:
            if len(both := [name for name in names if name in given]) > 1:
                raise SpecError(f"`{both[0]}` and `{both[1]}` cannot both be given", where=where, hint="choose one")
        for name, needed in cls.requires.items():
            if name in given and needed not in given:
                raise SpecError(f"`{name}` needs `{needed}`", where=where, hint=f"give `{needed}`, or drop `{name}`")
        for one in cls.options():
            extra, value = one.field.json_schema_extra, flat.get(one.name)
            if isinstance(value, str) and isinstance(extra, dict) and extra.get("metavar") in ("FILE", "FOLDER"):
                if not value:
                    raise SpecError(f"`{one.name}` is empty", where=where)
                kind_of_path(value)
        job = cls.parse(fields, where)
        for one in cls.options():
            value = getattr(getattr(job, one.group) if one.group else job, one.name)
            for path in value if isinstance(value, list | tuple) else [value]:
                if isinstance(path, Path):  # that no file can have is refused before anything is done with it
                    kind_of_path(path)
        return job

    @classmethod
    def check_names(cls, names: Iterable[str], where: str | None = None) -> None:
        """Refuses what is not an option."""
        known = [one.name for one in cls.options()]
        for name in names:
            if name not in known:
                nearest = get_close_matches(name, known, n=1)
                hint = f"did you mean `{nearest[0]}`?" if nearest else f"there are {', '.join(known)}"
                raise SpecError(f"there is no option `{name}`", where=where, hint=hint)

    @classmethod
    def parse(cls, fields: dict[str, Any], where: str | None = None) -> Self:
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            what = re.sub(LONG_QUOTE, r"'\1…'", first["msg"].removeprefix("Value error, "))
            steps = [step for step in first["loc"][:2] if step not in {one.group for one in cls.options()}]
            name = f"`{steps[0]}`: " if steps else ""
            if first["type"] == "missing":
                within = [one.name for one in cls.options() if one.group == first["loc"][0] and one.field.is_required()]
                raise SpecError(f"`{[*steps, *within][0]}` is missing", where=where) from None
            if first["type"] == "literal_error":
                check_name(f"`{steps[0]}`", first["input"], re.findall("'([^']*)'", first["ctx"]["expected"]), where)
            raise SpecError(f"{name}{what[:1].lower()}{what[1:]}", where=where) from None

    def given(self) -> dict[str, Any]:
        """The options that were set, by group, in plain values: what a config file holds."""
        return self.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def check_name(what: str, name: Any, known: Iterable[str], where: str | None = None) -> None:
    """Raises SpecError, with the nearest known name, where `name` is not one of those known."""
    names = list(known)
    if name not in names:
        nearest = get_close_matches(str(name), names, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"choose from {', '.join(names)}"
        raise SpecError(f"there is no {what} {name!r}", where=where, hint=hint)


def plugins_in(config: Path) -> list[str]:
    """The plugin files that a config file names."""
    named = read_config(config).get(PLUGIN, []) if config.is_file() else []
    return [named] if isinstance(named, str) else list(named)


def read_config(file: Path) -> dict[str, Any]:
    """The options in a TOML file: flat, or in tables by group, with `-` or `_` in their names."""
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot be read as TOML ({error})", where=str(file)) from None
    return {name.replace("-", "_"): _with_underscores(value) for name, value in content.items()}


def _with_underscores(value: Any) -> Any:
    return {name.replace("-", "_"): one for name, one in value.items()} if isinstance(value, dict) else value
