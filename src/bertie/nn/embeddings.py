"""Turns named fields of a batch into the first hidden states.

They are a sum of tables, each reading one field. That sum equals one linear layer over the concatenated one-hots.
Other kinds (characters, given vectors) subclass EmbeddingsSpec and are listed in EMBEDDINGS.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, cast

from pydantic import Field, SerializeAsAny, model_validator
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.errors import SpecError
from bertie.nn.dropout import Dropout
from bertie.nn.products import Linear
from bertie.spec import LARGEST, Spec, one_of


class Table(nn.Embedding):
    """Looks up rows by a field's numbers. `positions` are counted within each row, and start at `offset`."""

    def __init__(self, size: int, width: int, field: str, optional: bool, offset: int):
        super().__init__(size, width)
        self.field, self.optional, self.offset = field, optional, offset

    def reset_parameters(self) -> None:
        # A meta tensor has no numbers to draw, and torch would import its compiler, two seconds, to draw none.
        if not self.weight.is_meta:
            super().reset_parameters()

    def look_up(self, batch: Batch) -> Tensor:
        """Returns [T, H], or [H] where an optional field is absent and all tokens count as row 0."""
        if self.field == "positions" and "positions" not in batch.fields:
            return self(batch.ragged("tokens").positions + self.offset)
        if self.optional and self.field not in batch.fields:
            return self.weight[self.offset]
        numbers = batch.tensor(self.field)
        return self(numbers + self.offset if self.offset else numbers)


class Embeddings(nn.Module):
    """Adds up tables. With `project` the tables are narrower than the hidden states."""

    def __init__(self, tables: Mapping[str, Table], norm: nn.Module, dropout: float, project: nn.Linear | None = None):
        super().__init__()
        self.tables = nn.ModuleDict(tables)
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.project = project

    def forward(self, batch: Batch) -> Tensor:
        tables = cast(Iterable[Table], self.tables.values())
        first, *others = (table.look_up(batch) for table in tables)
        for other in others:
            first = first + other
        states = self.dropout(self.norm(first))
        return states if self.project is None else self.project(states)


class TableSpec(Spec):
    kind: Literal["table"] = "table"
    field: str
    size: int = Field(ge=1, le=LARGEST)
    optional: bool = False
    offset: int = Field(default=0, ge=0)

    def build(self, width: int) -> Table:
        return Table(self.size, width, self.field, self.optional, self.offset)


class EmbeddingsSpec(Spec):
    """A sum of tables; other kinds of embeddings subclass it, and may have no tables."""

    kind: Literal["embeddings"] = "embeddings"
    tables: tuple[TableSpec, ...] = Field(min_length=1)
    norm_eps: float | None = Field(default=1e-12, gt=0)
    norm_bias: bool = True
    dropout: float = Field(default=0.1, ge=0, lt=1)
    factor: int | None = Field(default=None, ge=1, le=LARGEST)  # the width of the tables, where it is not the encoder's

    @model_validator(mode="after")
    def _fields_differ(self) -> "EmbeddingsSpec":
        fields = [table.field for table in self.tables]
        if len(set(fields)) < len(fields):
            raise ValueError(f"two tables read the same field: {', '.join(fields)}")
        if wrong := [field for field in fields if not field.isidentifier() or hasattr(nn.ModuleDict, field)]:
            raise ValueError(f"{wrong[0]!r} cannot be the name of a table in torch")
        return self

    def table(self, field: str) -> TableSpec:
        for table in self.tables:
            if table.field == field:
                return table
        raise SpecError(f"the embeddings have no table for {field!r}", hint=f"they read {self.fields}")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a batch that the embeddings read."""
        return tuple(table.field for table in self.tables)

    @property
    def vocab_size(self) -> int:
        """How many token ids there may be."""
        return self.table("tokens").size

    @property
    def token_table(self) -> str | None:
        """The name of the parameter with one row a token, to which heads may be tied; None where there is none."""
        return "tables.tokens.weight" if "tokens" in self.fields else None

    @property
    def max_length(self) -> int | None:
        """The most tokens a row may have; None: any number."""
        # Tables of other kinds may count from 0 only.
        sizes = (one.size - getattr(one, "offset", 0) for one in self.tables if one.field == "positions")
        return next(sizes, None)

    def table_width(self, width: int) -> int:
        """Returns the width of the tables in an encoder of this width."""
        return self.factor or width

    def build(self, width: int) -> Embeddings:
        inner = self.factor or width
        norm = nn.Identity() if self.norm_eps is None else nn.LayerNorm(inner, eps=self.norm_eps, bias=self.norm_bias)
        tables = {table.field: table.build(inner) for table in self.tables}
        return Embeddings(tables, norm, self.dropout, None if self.factor is None else Linear(inner, width))


# By kind. `bertie.plugins.use` adds to it.
EMBEDDINGS: dict[str, type[EmbeddingsSpec]] = {"embeddings": EmbeddingsSpec}
AnyEmbeddings = Annotated[SerializeAsAny[EmbeddingsSpec], one_of(EMBEDDINGS, "embeddings")]
