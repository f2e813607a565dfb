"""The words of `finetune` about frozen features enter; the top that learns over them leaves."""

from collections.abc import Mapping
from pathlib import Path

from bertie.cli.choices import check
from bertie.errors import SpecError
from bertie.nn.feature_top import LAYER_CHOICES, FeatureTopSpec, LSTMLayersSpec
from bertie.train.feature_store import FOLDER

TOPS: dict[str, LSTMLayersSpec | None] = {"linear": None, "lstm": LSTMLayersSpec()}
RATE, TOP_RATE = 5e-5, 1e-3  # of a whole model, and of a top, whose weights are all new


def feature_top(
    features: str | None, top: str | None, store: Path | None, others: Mapping[str, object]
) -> FeatureTopSpec | None:
    """None where everything is to learn. `others` are options, by name, that ask for other readings of a row."""
    if features is None:
        given = {"--top": top, "--feature-store": store}
        if idle := next((name for name, value in given.items() if value is not None), None):
            raise SpecError(f"{idle} says nothing without --features", hint=f"leave out {idle}")
        return None
    check("choice of features", features, LAYER_CHOICES)
    check("top", top or "linear", TOPS)
    if wish := next((name for name, value in others.items() if value), None):
        what = f"{wish} cannot be had with --features, for which the encoder reads every row once and as it is"
        raise SpecError(what, hint="leave one of them out")
    return FeatureTopSpec.parse({"layers": features, "lstm": TOPS[top or "linear"]})


def store_folder(given: Path | None, out: Path) -> Path:
    """Where the features of a run are kept: beside its folder, in which is nothing but the run."""
    store = given or out.parent / FOLDER
    if out.resolve() in (store.resolve(), *store.resolve().parents):
        what = "the features would be stored in the run's own folder"
        raise SpecError(what, where=str(store), hint="name another one with --feature-store")
    return store
