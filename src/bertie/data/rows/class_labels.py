"""Names labels that are stored as numbers, by the features that Hugging Face datasets write beside their data."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa


def label_names(features: Any) -> dict[str, list[str]]:
    """Column -> names, for columns of one label and of a list of labels."""
    found = {}
    for column, feature in features.items() if isinstance(features, Mapping) else ():
        item = feature[0] if isinstance(feature, list) and feature else feature
        if isinstance(item, Mapping) and isinstance(item.get("feature"), Mapping):
            item = item["feature"]
        if isinstance(item, Mapping) and item.get("_type") == "ClassLabel" and isinstance(item.get("names"), list):
            found[column] = item["names"]
    return found


def features_in(schema: pa.Schema) -> Any:
    """What `datasets` writes into the schema of its files; {} where nothing is."""
    try:
        return json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    except (ValueError, AttributeError):
        return {}


def named(value: Any, names: Sequence[str]) -> Any:
    """-1 means in those files that there is no label; it stays."""
    if isinstance(value, list):
        return [named(item, names) for item in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value
