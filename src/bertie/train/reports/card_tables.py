"""Turns a data card (data_card.json) into tables of a page: train and dev side by side."""

from collections.abc import Mapping, Sequence
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
    # Whatever else a card counts is shown by its own name.
    counted = [name for one in parts.values() for name, value in one.items() if isinstance(value, int | float)]
    others = sorted(set(counted) - SHOWN)
    columns = [_facts(one, card["length"], others) for one in parts.values()]
    facts: Rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    if (dev := parts.get("dev")) is not None:
        count, share = dev["also_in_train"], dev["also_in_train"] / max(1, dev["read"])
        facts.append(("also in train", *("" for _ in list(parts)[1:]), f"{count:,} ({share:.1%})" if count else "0"))
    labels, rows = list(dict.fromkeys(label for one in parts.values() for label in one["labels"])), Rows()
    for label in labels[:SHOWN_LABELS]:
        found = [one["labels"].get(label) for one in parts.values()]
        cells = [(f"{one['count']:,}", f"{one['share']:.1%}") if one else ("0", "") for one in found]
        rows.append((label, *(cell for both in cells for cell in both)))
    notes = []
    if len(labels) > SHOWN_LABELS:
        notes.append(f"The {SHOWN_LABELS} most frequent of {len(labels):,} labels are shown; data_card.json has all.")
    if any(one["read"] < one["rows"] for one in parts.values()):
        notes.append("Figures are of the rows that were read.")
    if majority := card.get("majority"):
        metric = majority["metric"].replace("_", " ")
        notes.append(f"Always answering {majority['answer']} gives {metric} {majority['score']:.4f}.")
    heads = ("label", *(heading for name in parts for heading in (name, "share")))
    return CardTables(("", *parts), facts, heads, rows, tuple(notes))


def _facts(one: Card, length: int, others: Sequence[str]) -> dict[str, str]:
    """A column of the table: what is known of train, or of dev."""
    tokens = one["tokens"]
    facts = {
        "rows": f"{one['rows']:,}",
        "rows read": f"{one['read']:,}",
        "cannot be used": f"{one['faulty']:,}",
        "tokens per row, mean": f"{tokens['mean']:,.1f}" if tokens else "",
        "median": f"{tokens['median']:,.0f}" if tokens else "",
        "95% have at most": f"{tokens['95%']:,.0f}" if tokens else "",
        "longest": f"{tokens['longest']:,}" if tokens else "",
    }
    cut = {f"rows cut at {length:,} tokens": ("rows_cut", "share_cut")}
    cut["tokens that are cut off"] = ("tokens_cut", "share_tokens_cut")
    for name, (count, share) in cut.items():
        facts[name] = f"{one[count]:,} ({one[share]:.1%})" if one[count] else "0"
    for name in others:
        value = one.get(name, "")
        facts[name.replace("_", " ")] = (
            f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if value != "" else ""
        )
    return facts
