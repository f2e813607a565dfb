"""Turns a data card (data_card.json) into tables of a page: train and dev side by side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SHOWN_LABELS = 50
PARTS = ("train", "dev")
SHOWN = {"rows", "read", "faulty", "rows_cut", "share_cut", "tokens_cut", "share_tokens_cut", "also_in_train"}
Card = Mapping[str, Any]
Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class CardTables:
    head: tuple[str, ...]  # of `facts`: what it is, then train, then dev
    facts: Rows
    label_head: tuple[str, ...]
    labels: Rows
    notes: tuple[str, ...]


def card_tables(card: Card) -> CardTables:
    parts = {name: card[name] for name in PARTS if card.get(name)}
    length = card["length"]
    kinds: dict[str, Callable[[Card], str]] = {
        "rows": lambda one: f"{one['rows']:,}",
        "rows read": lambda one: f"{one['read']:,}",
        "cannot be used": lambda one: f"{one['faulty']:,}",
        "tokens per row, mean": lambda one: _tokens(one, "mean", ",.1f"),
        "median": lambda one: _tokens(one, "median", ",.0f"),
        "95% have at most": lambda one: _tokens(one, "95%", ",.0f"),
        "longest": lambda one: _tokens(one, "longest", ","),
        f"rows cut at {length:,} tokens": lambda one: _counted(one["rows_cut"], one["share_cut"]),
        "tokens that are cut off": lambda one: _counted(one["tokens_cut"], one["share_tokens_cut"]),
    }
    facts = [(name, *(show(one) for one in parts.values())) for name, show in kinds.items()]
    # Whatever else a card counts is shown by its own name.
    others = {name for one in parts.values() for name, value in one.items() if isinstance(value, int | float)} - SHOWN
    facts += [(name.replace("_", " "), *(_plain(one.get(name)) for one in parts.values())) for name in sorted(others)]
    if (dev := parts.get("dev")) is not None:
        share = dev["also_in_train"] / max(1, dev["read"])
        facts.append(("also in train", *("" for _ in list(parts)[1:]), _counted(dev["also_in_train"], share)))
    labels = list(dict.fromkeys(label for one in parts.values() for label in one["labels"]))
    return CardTables(
        head=("", *parts),
        facts=facts,
        label_head=("label", *(heading for name in parts for heading in (name, "share"))),
        labels=[(label, *(cell for one in parts.values() for cell in _label(one, label))) for label in labels][
            :SHOWN_LABELS
        ],
        notes=tuple(_notes(card, parts, len(labels))),
    )


def _notes(card: Card, parts: Mapping[str, Card], num_labels: int) -> list[str]:
    notes = []
    if num_labels > SHOWN_LABELS:
        notes.append(f"The {SHOWN_LABELS} most frequent of {num_labels:,} labels are shown; data_card.json has all.")
    if any(one["read"] < one["rows"] for one in parts.values()):
        notes.append("Figures are of the rows that were read.")
    if found := card.get("majority"):
        metric = found["metric"].replace("_", " ")
        notes.append(f"Always answering {found['answer']} gives {metric} {found['score']:.4f}.")
    return notes


def _tokens(one: Card, name: str, format: str) -> str:
    return f"{one['tokens'][name]:{format}}" if one["tokens"] else ""


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


def _counted(count: int, share: float) -> str:
    return f"{count:,} ({share:.1%})" if count else "0"


def _label(one: Card, label: str) -> tuple[str, str]:
    found = one["labels"].get(label)
    return (f"{found['count']:,}", f"{found['share']:.1%}") if found else ("0", "")
