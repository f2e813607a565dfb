import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from bertie.errors import FolderError, SpecError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained, load
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.quickstart import time_plan as plan_file
from bertie.quickstart.time_plan import FEWEST_TEXTS, Plan, QuickstartFolder, asked_options, measure_pace
from bertie.text.tokenizers.tokens import FlatIds

TEXTS = ["a b c", "b c", "c a b a"] * 100


def test_a_folder_continues_with_its_own_plan_alone(tmp_path: Path) -> None:
    place, asked = QuickstartFolder(tmp_path / "deep" / "out"), {"minutes": 5, "texts": ("a.txt",), "language": "zh"}
    plan = place.start(asked)
    assert plan == Plan(minutes=5, texts=("a.txt",), language="zh")
    assert place.start(asked) == plan
    assert place.start({}) == plan, "options that are not given keep their values"
    assert place.start({"texts": ("b.txt",)}).texts == ("b.txt",), "nothing was done yet: a wrong name can be corrected"
    plan = place.start({"texts": ("a.txt",)})
    place.entries.touch()
    with pytest.raises(SpecError, match=r"minutes: 5\.0 before, 6\.0 now"):
        place.start({"minutes": 6.0})
    with pytest.raises(SpecError, match="base: None before"):
        place.start({"base": "my-model"})


def test_a_plan_as_words_of_a_command() -> None:
    assert Plan().words == []
    plan = Plan(minutes=2, texts=("a.txt", "b.txt"), language="zh", base="my-model")
    assert plan.words == [
        "--minutes",
        "2",
        "--text",
        "a.txt",
        "--text",
        "b.txt",
        "--language",
        "zh",
        "--base",
        "my-model",
    ]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match=r"file/out: cannot be written \(Not a directory\); name another folder"):
        QuickstartFolder(tmp_path / "file" / "out").start({})


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FolderError, match="not empty and does not hold a quickstart"):
        QuickstartFolder(tmp_path).start({})
    (tmp_path / "letter.txt").unlink()
    QuickstartFolder(tmp_path).start({})
    (tmp_path / "quickstart.json").write_text("{")
    with pytest.raises(SpecError, match=r"quickstart\.json"):
        QuickstartFolder(tmp_path).start({})


def test_the_documentation_is_english(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="give your own texts with `text`"):
        QuickstartFolder(tmp_path / "out").start({"language": "zh"})
    assert not (tmp_path / "out").exists()


def test_a_base_that_is_no_model_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        QuickstartFolder(tmp_path / "out").start({"base": str(tmp_path)})
    assert not (tmp_path / "out").exists()


def test_paths_are_absolute_so_that_it_can_be_continued_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").touch()
    monkeypatch.chdir(tmp_path)
    asked = asked_options(None, ["a.txt", "*.md"], "en", None)
    assert asked == {"texts": (str(tmp_path / "a.txt"), "*.md"), "language": "en"}


def test_times_add_up_over_several_sittings(tmp_path: Path) -> None:
    place = QuickstartFolder(tmp_path)
    assert place.read_times() == {}
    place.add_time("corpus", 2.0)
    place.add_time("corpus", 1.5)
    assert place.read_times() == {"corpus": 3.5}


@pytest.mark.parametrize(
    ("spent", "seconds"),
    [(100.0, 0.93 * 600 - 100), (590.0, 0.3 * 600)],
)
def test_the_encoder_gets_the_time_that_is_left_but_always_a_share(
    spent: float, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = QuickstartFolder(tmp_path)
    place.add_time("pretrain", spent)
    monkeypatch.setattr(plan_file, "load", lambda base: None)
    monkeypatch.setattr(plan_file, "measure_pace", lambda model, texts: 100.0)
    assert place.num_pairs(Plan(minutes=10), TEXTS) == round(seconds * 100) // 2
    monkeypatch.setattr(plan_file, "measure_pace", lambda model, texts: pytest.fail("measured again"))
    place.add_time("encode", 60.0)
    assert place.num_pairs(Plan(minutes=10), TEXTS) == round(seconds * 100) // 2
    (tmp_path / "pace.json").write_text(json.dumps({"texts_per_second": 0.1, "seconds": 1.0}))
    assert place.num_pairs(Plan(), TEXTS) == FEWEST_TEXTS // 2, "fewer would teach nothing"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]
    Pretrained(Model.new(bert(SIZES["tiny"], vocab_size=len(pieces)))).save(tmp_path / "base")
    (tmp_path / "base" / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return tmp_path / "base"


@pytest.mark.parametrize(("count", "sizes"), [(300, [32] * 9), (40, [32, 32, 8]), (20, [20, 20])])
def test_the_pace_is_measured_by_training_steps(
    count: int, sizes: list[int], base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes half a second, so that steps of 32 learn from 64 texts a second."""
    clock, read = iter(range(1000)), list[int]()
    monkeypatch.setattr(plan_file.time, "perf_counter", lambda: next(clock) / 2)
    model = load(str(base))
    tokenizer, weight = model.tokenizer, next(model.model.encoder.parameters())
    assert tokenizer is not None
    encode, before = tokenizer.encode_ids, weight.detach().clone()

    def counted(texts: Sequence[str], max_length: int) -> FlatIds:
        read.append(len(texts))
        return encode(texts, max_length=max_length)

    monkeypatch.setattr(tokenizer, "encode_ids", counted)
    rate = measure_pace(model, TEXTS[:count]) * plan_file.OVERHEAD
    assert read == sizes
    assert rate == pytest.approx({300: 64, 40: 40, 20: 40}[count])
    assert not torch.equal(before, weight)
