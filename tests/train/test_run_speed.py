"""What a run says of its speed: the share of the peak, a machine that others keep busy, a ramp of batches."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.train.test_run import SMALL, TWO_LENGTHS, Clock, corpus, events, go  # noqa: F401 - fixtures

from bertie.data.corpus import Corpus
from bertie.data.data_schedule import Ramp
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.reporting.busy import BusyMachine
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Steps
from bertie.train.run import pretrain
from bertie.train.run_events import Record


def test_the_share_of_the_peak_is_told_where_the_peak_is_known(
    corpus: Corpus,  # noqa: F811
    tokenizer: Tokenizer,
    recipe: Callable[..., Recipe],
    tmp_path: Path,
) -> None:
    options = SMALL.replace(budget=Steps(steps=4), curriculum=TWO_LENGTHS, length=32)
    pretrain(tmp_path, Model.new(recipe()), corpus, tokenizer, options, peak=lambda length: 1000.0 * length)
    peaks = [record["tokens_per_second"] / record["share_of_peak"] for record in events(tmp_path, "step")]
    assert peaks == pytest.approx([16_000, 16_000, 32_000, 32_000])


def test_no_step_is_faster_than_the_peak(
    corpus: Corpus,  # noqa: F811
    tokenizer: Tokenizer,
    recipe: Callable[..., Recipe],
    tmp_path: Path,
) -> None:
    """A peak that was measured too low is raised by the steps themselves, at all lengths."""
    options = SMALL.replace(budget=Steps(steps=6), curriculum=TWO_LENGTHS, length=32)
    pretrain(tmp_path, Model.new(recipe()), corpus, tokenizer, options, peak=lambda length: 1e-3 * length)
    shares = [record["share_of_peak"] for record in events(tmp_path, "step")]
    assert shares[0] == max(shares) == 1.0 and min(shares) > 0


def test_a_busy_machine_is_told_in_the_log_and_as_an_event(
    go: Callable[..., Record],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The load is that of many others, and every step seems to take a minute."""
    clock = Clock()

    def watch(num_threads: int) -> BusyMachine:
        return BusyMachine(num_threads, 2, clock=lambda: 60 * clock.perf_counter(), load=lambda: 12.0)

    monkeypatch.setattr("bertie.train.run.BusyMachine", watch)
    told: list[Record] = []
    go(tmp_path / "run", told.append, budget=Steps(steps=12))
    (record,) = [one for one in events(tmp_path / "run", "warning") if "busy" in one["what"]]
    assert "the load average is 12.0 on 2 cores" in record["what"]
    assert [one["what"] for one in told if one["event"] == "warning" and "busy" in one["what"]] == [record["what"]]


def test_a_ramp_must_climb() -> None:
    with pytest.raises(SpecError, match="a ramp from 300 tokens does not rise to 256"):
        SMALL.replace(ramp=Ramp(begin=300))
