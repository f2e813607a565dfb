"""Stages one after another, with commands that only leave what they would leave."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bertie.errors import SpecError
from bertie.quickstart import pace
from bertie.quickstart import stages as stages_file
from bertie.quickstart.learning_rows import read_rows
from bertie.quickstart.pace import Pace
from bertie.quickstart.plan import Place, Plan
from bertie.quickstart.running import keep_time, read_times, run_stages
from bertie.quickstart.stages import STAGES

TEXTS_PER_SECOND = 5.0
PARAGRAPH = "Here is text {number} of {name}. It has a second sentence, and it is long enough.\n\n"


def started(folder: Path, **wishes: object) -> tuple[Place, Plan]:
    return Place(folder), Place(folder).begin(wishes)


class KilledError(Exception):
    """The machine failed."""


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, ...]:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("".join(PARAGRAPH.format(number=number, name=name) for number in range(60)))
    return str(tmp_path / "one.txt"), str(tmp_path / "two.txt")


@pytest.fixture(autouse=True)
def no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LEAST", 1)
    monkeypatch.setattr(stages_file, "FEWEST", 1)
    monkeypatch.setattr(stages_file, "read_pace", lambda *about: Pace(TEXTS_PER_SECOND))


@pytest.fixture
def commands() -> list[list[str]]:
    return []


@pytest.fixture
def run(commands: list[list[str]]) -> Callable[[Sequence[str]], None]:
    def leave(words: Sequence[str]) -> None:
        commands.append(list(words))
        out = Path(words[words.index("--out") + 1])
        if words[0] == "embed":
            out.write_text("")
            return
        out.mkdir(exist_ok=True)
        for name in ("summary.json", "manifest.json", "config.json"):
            (out / name).write_text("{}")

    return leave


def verbs(commands: list[list[str]]) -> list[str]:
    return [" ".join(words[:2]) if words[0] in ("vocab", "corpus", "finetune") else words[0] for words in commands]


ALL = ["vocab train", "corpus build", "pretrain", "finetune classify", "whiten", "finetune similarity", "embed"]


def test_every_stage_is_told_with_its_command_and_done_once(
    tmp_path: Path, texts: tuple[str, ...], run: Callable[[Sequence[str]], None], commands: list[list[str]]
) -> None:
    (place, plan), said = started(tmp_path / "out", texts=texts), list[str]()
    run_stages(place, plan, run, said.append)
    assert verbs(commands) == ALL
    told = "\n".join(said)
    assert all(f"$ bertie {' '.join(words)}" in told for words in commands)
    assert "$ bertie quickstart --until gather" in told
    assert set(read_times(place)) == set(STAGES)
    commands.clear()
    said.clear()
    run_stages(place, plan, run, said.append)
    assert commands == []
    assert "\n".join(said).count("It was done before.") == len(STAGES)


@pytest.mark.parametrize("failing", ALL)
def test_killed_in_any_command_it_goes_on_there_with_the_same_words(
    failing: str,
    tmp_path: Path,
    texts: tuple[str, ...],
    run: Callable[[Sequence[str]], None],
    commands: list[list[str]],
) -> None:
    (place, plan), killed = started(tmp_path / "out", texts=texts), list[list[str]]()

    def fail(words: Sequence[str]) -> None:
        if verbs([list(words)]) == [failing]:
            killed.append(list(words))
            raise KilledError
        run(words)

    with pytest.raises(KilledError):
        run_stages(place, plan, fail, lambda told: None)
    before = verbs(commands)
    run_stages(place, plan, run, lambda told: None)
    assert verbs(commands) == ALL
    assert commands[len(before)] == killed[0], "else the command would not go on with what it had begun"


def test_what_a_stage_took_is_added_up_over_sittings(tmp_path: Path, texts: tuple[str, ...]) -> None:
    place, plan = started(tmp_path / "out", texts=texts)
    keep_time(place, "vocabulary", 40.0)

    def stop(words: Sequence[str]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stages(place, plan, stop, lambda told: None)
    assert 40 <= read_times(place)["vocabulary"] < 45


def test_texts_of_one_sentence_teach_too(
    tmp_path: Path, run: Callable[[Sequence[str]], None], commands: list[list[str]]
) -> None:
    (tmp_path / "one.txt").write_text("".join(f"The cow number {number} eats the grass.\n\n" for number in range(40)))
    place, plan = started(tmp_path / "out", texts=(str(tmp_path / "one.txt"),))
    run_stages(place, plan, run, lambda told: None)
    assert "finetune similarity" in verbs(commands)
    train, dev = (read_rows(place.rows("pairs", part)) for part in ("train", "dev"))
    assert (len(train), len(dev)) == (30, 10)
    assert {row["other"].split()[-1] for row in train} == {"grass."}


def test_the_pace_of_pairs_is_measured_on_both_sides(
    tmp_path: Path,
    texts: tuple[str, ...],
    run: Callable[[Sequence[str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the distance at which they are chosen: summaries are shorter than what they sum up."""
    seen: list[Sequence[str]] = []

    def measure(file: Path, base: str, texts: Sequence[str], length: int) -> Pace:
        seen.append(texts)
        return Pace(TEXTS_PER_SECOND)

    monkeypatch.setattr(stages_file, "read_pace", measure)
    run_stages(*started(tmp_path / "out", texts=texts), run, lambda told: None)
    for distance in (2, 3, 4):
        chosen = seen[-1][::distance]
        summaries = sum(text.startswith("Here is text") for text in chosen)
        assert abs(summaries - len(chosen) / 2) <= 1


def test_real_weights_need_no_vocabulary_and_no_pretraining(
    tmp_path: Path, texts: tuple[str, ...], run: Callable[[Sequence[str]], None], commands: list[list[str]]
) -> None:
    run_stages(*started(tmp_path / "out", texts=texts, base="my-model"), run, lambda told: None)
    assert verbs(commands) == ["finetune classify", "finetune similarity", "embed"]
    assert commands[0][commands[0].index("--base") + 1] == "my-model"
    with pytest.raises(SpecError, match="no stage 'pretrain'; it has gather, classify, encode, embed"):
        run_stages(*started(tmp_path / "other", texts=texts, base="my-model"), run, lambda told: None, until="pretrain")


def test_vectors_are_spread_before_they_are_compared(
    tmp_path: Path, texts: tuple[str, ...], run: Callable[[Sequence[str]], None], commands: list[list[str]]
) -> None:
    run_stages(*started(tmp_path / "out", texts=texts), run, lambda told: None)
    by_verb = dict(zip(verbs(commands), commands, strict=True))
    assert by_verb["whiten"][1] == str(tmp_path / "out/pretraining/model")
    bases = [by_verb[f"finetune {task}"] for task in ("classify", "similarity")]
    assert [words[words.index("--base") + 1] for words in bases] == [
        str(tmp_path / "out/pretraining/model"),
        str(tmp_path / "out/spread"),
    ]


@pytest.mark.parametrize(("room", "chosen"), [(100, None), (3, 121)])
def test_rare_characters_have_no_room_in_a_small_vocabulary(
    room: int,
    chosen: int | None,
    tmp_path: Path,
    run: Callable[[Sequence[str]], None],
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
    run_stages(*place_and_plan, run, lambda told: None, until="vocabulary")
    (words,) = commands
    assert words[-2] == "--out"
    rest = words[words.index("--size") + 2 : -2]
    assert rest == ([] if chosen is None else ["--min-frequency", str(chosen)])


def test_few_texts_do_not_tell_how_vectors_lie(
    tmp_path: Path,
    texts: tuple[str, ...],
    run: Callable[[Sequence[str]], None],
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stages_file, "FEWEST", 1000)
    said: list[str] = []
    run_stages(*started(tmp_path / "out", texts=texts), run, said.append)
    assert "whiten" not in verbs(commands)
    assert any("are too few to tell how vectors lie" in told for told in said)
    encoding = commands[verbs(commands).index("finetune similarity")]
    assert encoding[encoding.index("--base") + 1] == str(tmp_path / "out/pretraining/model")


def test_one_file_has_no_classifier(
    tmp_path: Path, texts: tuple[str, ...], run: Callable[[Sequence[str]], None], commands: list[list[str]]
) -> None:
    said: list[str] = []
    run_stages(*started(tmp_path / "out", texts=texts[:1]), run, said.append)
    assert "finetune classify" not in verbs(commands)
    assert any("nothing to tell apart" in told for told in said)


def test_it_ends_after_the_stage_that_was_named(
    tmp_path: Path, texts: tuple[str, ...], run: Callable[[Sequence[str]], None], commands: list[list[str]]
) -> None:
    run_stages(*started(tmp_path / "out", texts=texts), run, lambda told: None, until="corpus")
    assert verbs(commands) == ["vocab train", "corpus build"]


def test_rows_are_as_many_as_there_is_time_for(
    tmp_path: Path, texts: tuple[str, ...], run: Callable[[Sequence[str]], None], commands: list[list[str]]
) -> None:
    short, plan = started(tmp_path / "short", texts=texts, minutes=1.0)
    said: list[str] = []
    run_stages(short, plan, run, said.append)
    assert len(read_rows(short.rows("pairs", "train"))) == round(60 * TEXTS_PER_SECOND * stages_file.ENCODER) // 2
    assert any("as many as there is time for" in told for told in said)
    commands.clear()
    run_stages(*started(tmp_path / "long", texts=texts, minutes=1000), run, lambda told: None)
    similarity = next(words for words in commands if "--siamese" in words)
    assert float(similarity[similarity.index("--epochs") + 1]) == stages_file.MOST_EPOCHS
