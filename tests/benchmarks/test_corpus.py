"""The run itself: the order of turns, the options of each contender, what is printed, and the exit codes."""

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from benchmarks.corpus_figures import ALIKE, LEAN_PEER, PEER, SENTENCES
from benchmarks.corpus_turns import Turn

from benchmarks import corpus

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    for name in (corpus.UNCASED, corpus.HAN):
        (tmp_path / "vocab" / name).mkdir(parents=True)
    for name in (corpus.ENGLISH, corpus.MANDARIN):
        (tmp_path / "data").mkdir(exist_ok=True)
        with gzip.open(tmp_path / "data" / name, "wt", encoding="utf-8") as stream:
            stream.write(json.dumps({"text": "a" * 1_000_000}) + "\n")
    return tmp_path


def words(shared: Path, *more: str) -> list[str]:
    given = ("--data", str(shared / "data"), "--vocab", str(shared / "vocab"), "--peers-python", sys.executable)
    return [*given, "--rounds", "2", *more]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Sequence[str]]:
    """Turns that run nothing: the peer needs 8 s, bertie 1 s; a leftover of an earlier turn is a failure."""
    asked: list[Sequence[str]] = []

    def take_turn(command: Sequence[str], folder: Path, environment: dict[str, str], log: Path) -> Turn:
        asked.append(command)
        folder.mkdir()
        seconds = 8.0 if "benchmarks.contenders.datasets_map" in command else 1.0
        return Turn(seconds, seconds, 10**8, 10**5, 10**5, 0.0, json.dumps({"seconds": seconds, "tokens": 1000}))

    def told(entrant: corpus.Entrant, turn: Turn, folder: Path) -> dict[str, Any]:
        return {**json.loads(turn.printed), "documents": 1, **({} if entrant.is_peer else {"words": 77})}

    monkeypatch.setattr(corpus, "take_turn", take_turn)
    monkeypatch.setattr(corpus, "told", told)
    monkeypatch.setattr("benchmarks.lock.lock_file", lambda: tmp_path / "lock")
    return asked


def test_figures_are_printed_and_kept(
    shared: Path, commands: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    kept = shared / "run.json"
    assert corpus.main(words(shared, "--json", str(kept))) == 0
    printed = capsys.readouterr().out
    assert "8.00x datasets.map; 8.00x without start and imports" in printed
    assert "MB/s of bertie, sentences                              1.00   at least 10.0: BROKEN" in printed
    assert "77" in next(line for line in printed.splitlines() if line.startswith("bertie, Chinese"))
    results = json.loads(kept.read_text(encoding="utf-8"))
    assert results["texts"][corpus.ENGLISH]["num_bytes"] == 1_000_000
    assert [len(turns) for turns in results["turns"].values()] == [2] * len(corpus.FIELD)
    assert len(commands) == 2 * len(corpus.FIELD)


def test_a_broken_bar_fails_a_strict_run_alone(shared: Path, commands: list[Sequence[str]]) -> None:
    assert corpus.main(words(shared, "--only", SENTENCES)) == 0
    assert corpus.main(words(shared, "--only", SENTENCES, "--strict")) == 1
    assert len(commands) == 4


def test_other_tokens_than_the_peers_fail_every_run(
    shared: Path, commands: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tell = corpus.told
    monkeypatch.setattr(
        corpus, "told", lambda entrant, *rest: tell(entrant, *rest) | {"tokens": 700 if entrant.is_peer else 1000}
    )
    assert corpus.main(words(shared, "--only", PEER, ALIKE)) == 1
    assert "bertie counted 1,000 tokens and datasets.map 700" in capsys.readouterr().err


def test_a_missing_vocabulary_is_a_users_mistake(shared: Path, commands: list[Sequence[str]]) -> None:
    (shared / "vocab" / corpus.HAN).rmdir()
    assert corpus.main(words(shared)) == 2
    assert not commands


def test_the_order_moves_on_each_round() -> None:
    order: list[str] = []
    entrants = {name: corpus.Entrant(name, "", ()) for name in "abc"}

    def take(entrant: corpus.Entrant) -> tuple[Turn, dict[str, Any]]:
        order.append(entrant.data)
        return Turn(1, 1, None, 0, 0, None, ""), {}

    taken = corpus.interleave(entrants, take, 3)
    assert "".join(order) == "abcbcacab"
    assert [len(pairs) for pairs in taken.values()] == [3, 3, 3]


@pytest.mark.parametrize("name", [name for name, entrant in corpus.FIELD.items() if not entrant.is_peer])
def test_the_options_are_ones_that_the_command_has(name: str, tmp_path: Path, run_bertie: Run) -> None:
    """It must come as far as the missing tokenizer."""
    command = corpus.own_command(tmp_path / "a.jsonl.gz", tmp_path / "vocabulary", tmp_path / "out", 2)
    done = run_bertie("corpus", *command[command.index("build") :], *corpus.FIELD[name].flags)
    assert done.returncode == 2 and "No such option" not in done.stderr
    assert str(tmp_path / "vocabulary") in done.stderr or str(tmp_path / "a.jsonl.gz") in done.stderr


def test_peers_differ_in_what_they_keep_alone() -> None:
    assert corpus.FIELD[LEAN_PEER].flags == ("--ids-alone",)
    assert corpus.FIELD[PEER].data == corpus.FIELD[ALIKE].data == corpus.ENGLISH
