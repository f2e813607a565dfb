"""Plans: from the costs of a trial to those of a run, for every kind of budget; and a real trial of a tiny run."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bertie import peak, plugins
from bertie.data.corpus import Corpus, write_shards
from bertie.data.data_schedule import Curriculum, Phase, Ramp
from bertie.data.shards import CorpusDocument
from bertie.inspection.costs import TrainingMemory
from bertie.inspection.parameters import count_recipe
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import OBJECTIVES, SIZES, Size
from bertie.models.recipes import bert, distilbert, electra
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer
from bertie.train.budget import Steps, Time, Tokens
from bertie.train.planning.run_plan import GAPS, plan_run, project, smaller_sizes
from bertie.train.planning.trial import StepCost, Trial, try_run
from bertie.train.pretraining.options import PretrainOptions

MEMORY = TrainingMemory(parameters=1, gradients=1, optimizer=2, activations=6)


def tried(*phases: StepCost, evaluation: float = 4.0) -> Trial:
    return Trial(
        num_parameters=1000,
        phases=phases or (StepCost(tokens=100.0, seconds=2.0, flops=5e6),),
        preparing=3.0,
        evaluation=evaluation,
        saving=1.0,
        finishing=0.5,
        checkpoint_size=12,
        model_size=4,
        memory=MEMORY,
        peak_memory=500,
    )


def chosen(budget: Steps | Tokens | Time, **changes: object) -> PretrainOptions:
    return PretrainOptions(budget=budget, batch_tokens=128, save_every=10, eval_every=20, keep=2).replace(**changes)


def test_a_run_in_steps() -> None:
    plan = project(tried(), chosen(Steps(steps=50)))
    assert (plan.num_steps, plan.num_tokens, plan.flops) == (50, 5000, 50 * 5e6)
    assert plan.seconds == {"preparing": 3.0, "steps": 100.0, "evaluation": 3 * 4.0, "saving": 5 * 1.0 + 0.5}
    assert plan.total_seconds == pytest.approx(120.5)
    assert (plan.tokens_per_second, plan.flops_per_token) == (50.0, 5e4)
    assert (plan.memory, plan.parts) == (500 + round(GAPS * MEMORY.activations), MEMORY)
    assert plan.disk == 4 * 12 + 4, "two kept, the best, one that is being written, and the model"


def test_a_plan_is_never_faster_than_the_peak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak was measured while others used the machine; the trial was not disturbed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(peak, "_raised", {})
    monkeypatch.setattr(peak, "measure_products", lambda: 2e6)
    fast, slow = (StepCost(tokens=100.0, seconds=seconds, flops=5e6) for seconds in (2.0, 5.0))
    trials = iter([tried(fast), tried(slow)])
    monkeypatch.setattr("bertie.train.planning.run_plan.try_apart", lambda *given: next(trials))
    corpus, tokenizer = make_corpus(tmp_path / "corpus")
    plans = [plan_run(TINY, corpus, tokenizer, chosen(Steps(steps=50))) for _ in range(2)]
    assert [plan.share_of_peak for plan in plans] == pytest.approx([1.0, 0.4])


def test_the_peak_is_that_of_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps with 16-bit products are no share of what float32 can do."""
    peaks = {"float32": 2e6, "bfloat16": 1e7}
    monkeypatch.setattr("bertie.train.planning.run_plan.peak_flops", lambda precision: peaks[precision])
    plan = project(tried(), chosen(Steps(steps=50), precision="bfloat16"))
    assert (plan.precision, plan.share_of_peak) == ("bfloat16", 0.25)


def test_a_run_in_tokens_and_one_by_the_clock() -> None:
    assert project(tried(), chosen(Tokens(tokens=5000))).num_steps == 50
    timed = project(tried(), chosen(Time(seconds=230.0)))
    assert timed.num_steps == 100, "2 s a step, 0.2 s of evaluation and 0.1 s of saving"
    assert timed.total_seconds == pytest.approx(230 + 3.0 + 0.5, rel=0.01)


def test_nothing_held_out_costs_nothing() -> None:
    plan = project(tried(evaluation=0.0), chosen(Steps(steps=50), held_out=0))
    assert plan.seconds["evaluation"] == 0.0
    assert plan.disk == 3 * 12 + 4


def test_evaluations_between_checkpoints_save_too() -> None:
    plan = project(tried(), chosen(Steps(steps=60), eval_every=15))
    assert plan.seconds["saving"] == pytest.approx((6 + 2) * 1.0 + 0.5), "after 15 and 45 steps, beside 10, 20, ..."


def test_a_curriculum_pays_for_its_long_rows() -> None:
    curriculum = Curriculum(phases=(Phase(share=0.9, length=128), Phase(share=0.1, length=512)))
    trial = tried(StepCost(100.0, 2.0, 5e6), StepCost(100.0, 12.0, 9e6))
    in_steps = project(trial, chosen(Steps(steps=100), curriculum=curriculum))
    assert in_steps.seconds["steps"] == pytest.approx(90 * 2.0 + 10 * 12.0)
    assert in_steps.flops == pytest.approx(90 * 5e6 + 10 * 9e6)
    by_clock = project(trial, chosen(Time(seconds=1230.0), curriculum=curriculum))
    assert by_clock.num_steps == pytest.approx(0.9 * 1230 / 2.3 + 0.1 * 1230 / 12.3, abs=1)


def test_a_ramp_has_smaller_steps() -> None:
    plan = project(tried(), chosen(Steps(steps=1000), ramp=Ramp(begin=1, share=0.2)))
    assert plan.num_steps == 1000
    assert plan.num_tokens == pytest.approx(100 * 1000 * 0.9, rel=0.01), "half a batch over a fifth of the run"


def test_smaller_sizes_are_smaller_and_have_the_same_objectives() -> None:
    recipe = bert(SIZES["small"], 100)
    recipe = recipe.replace(objectives=recipe.objectives[:1])
    found = smaller_sizes(recipe, 128)
    assert list(found) == ["mini", "tiny"]
    assert all(one.objectives == recipe.objectives and one.vocab_size == 100 for one in found.values())
    assert smaller_sizes(bert(SIZES["tiny"]), 128) == {}
    assert smaller_sizes(recipe.replace(name="my own"), 128) == {}


def test_what_fits_a_size_alone_is_that_of_the_smaller_one() -> None:
    """A generator is cut to its size; a wish about masks holds for all."""
    recipe = electra(SIZES["small"], 100)
    found = smaller_sizes(recipe.replace(objectives=(recipe.objectives[0].replace(rate=0.4),)), 128)
    assert list(found) == ["mini", "tiny"]
    for name, one in found.items():
        usual = electra(SIZES[name], 100).objectives[0]
        assert one.objectives == (usual.replace(rate=0.4),)
    assert list(smaller_sizes(distilbert(SIZES["small"], 100), 128)) == ["mini", "tiny"]


def make_corpus(folder: Path) -> tuple[Corpus, Tokenizer]:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(20))]
    tokenizer = wordpiece_tokenizer(pieces)
    rng = np.random.default_rng(0)
    rows = [
        CorpusDocument(
            rng.integers(5, 25, 30).astype(np.uint16),
            np.arange(0, 30, 5, dtype=np.uint32),
            np.ones(30, bool),
            str(number),
        )
        for number in range(40)
    ]
    return write_shards(folder, rows, tokenizer), tokenizer


TINY = bert(Size(depth=1, width=16, num_heads=2), 25)
QUICK = PretrainOptions(
    budget=Steps(steps=20),
    curriculum=Curriculum(phases=(Phase(share=0.5, length=16), Phase(share=0.5, length=32))),
    length=32,
    batch_tokens=256,
    micro_tokens=128,
    held_out=10,
    eval_rows=8,
)


def test_a_trial_measures_every_part(tmp_path: Path) -> None:
    corpus, tokenizer = make_corpus(tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    trial = try_run(TINY, corpus, tokenizer, QUICK, seconds=0.05)
    assert len(trial.phases) == 2
    for cost in trial.phases:
        assert 128 < cost.tokens <= 256
        assert (
            cost.seconds > 0 and cost.flops > cost.tokens * 6 * 4 * 16**2
        )  # and the last feed-forward where it is looked at
    assert min(trial.preparing, trial.evaluation, trial.saving, trial.finishing) > 0
    weights = 4 * trial.num_parameters
    assert weights * 3 < trial.checkpoint_size < weights * 3 + 20_000
    assert trial.model_size > weights
    assert trial.peak_memory > trial.memory.total
    assert sorted(path.name for path in tmp_path.rglob("*")) == before, "nothing was written"


def test_a_student_is_tried_with_its_teacher(tmp_path: Path) -> None:
    corpus, tokenizer = make_corpus(tmp_path / "corpus")
    size = Size(depth=2, width=16, num_heads=2)
    teacher = Pretrained(Model.new(bert(size, 25)), tokenizer)
    teacher.save(tmp_path / "teacher")
    student = distilbert(size, 25)
    trial = try_run(student, corpus, tokenizer, QUICK, 0.01, str(tmp_path / "teacher"))
    assert trial.memory.parameters > 4 * (trial.num_parameters + count_recipe(teacher.recipe).without_biases)
    assert trial.model_size < trial.memory.parameters, "the teacher is not saved"


@pytest.mark.slow
def test_a_plan_is_made_in_a_process_of_its_own(tmp_path: Path) -> None:
    corpus, tokenizer = make_corpus(tmp_path)
    plan = plan_run(TINY, corpus, tokenizer, QUICK, seconds=0.05)
    assert plan.num_steps == 20
    assert plan.memory > 50e6, "Python and torch are a part of it"


@pytest.mark.slow
def test_a_plan_may_be_of_a_recipe_from_a_plugin(tmp_path: Path) -> None:
    """The other process knows the plugin's classes once it has loaded the file."""
    corpus, tokenizer = make_corpus(tmp_path)
    plugins.use(Path(__file__).parents[2] / "plugin_files" / "next_token.py")
    load = partial(plugins.use_files, plugins.files())
    try:
        recipe = TINY.replace(objectives=[{"kind": "next-token"}])
        assert plan_run(recipe, corpus, tokenizer, QUICK, seconds=0.05, prepare_process=load).num_steps == 20
    finally:
        del OBJECTIVES["next-token"]
