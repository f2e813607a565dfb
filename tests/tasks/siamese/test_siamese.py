"""Siamese encoders: what rows of each kind teach, how vectors are measured and answered."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.learning import TINY, answers_to, new_model, read, rows, tokenizer

from bertie.batch import Batch, collate
from bertie.errors import InputError, SpecError
from bertie.models.answering_rows import outputs_of
from bertie.models.model import Model
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.siamese.siamese_rows import Criterion, Gold
from bertie.tasks.task import Values

SCORED = rows(
    ("text", "other", "score"),
    ("a cat sat", "the cat sat", 5),
    ("a cat sat", "a dog sat", "2.5"),
    ("a good film", "paris is in rome", 0.0),
)
LABELLED = rows(
    ("text", "other", "label"), ("a cat", "a cat purrs", "same"), ("a dog", "rome", "other"), ("ann", "bob", "other")
)
PAIRS = rows(
    ("text", "other"), ("who barks?", "the dog barks"), ("who purrs?", "the cat"), ("where is ann?", "ann is in paris")
)
TRIPLETS: list[Values] = [
    {**row, "negative": wrong} for row, wrong in zip(PAIRS, ("a film", "bob", "good food"), strict=True)
]
TEXTS: list[Values] = [{"text": row["text"]} for row in PAIRS]
KINDS: dict[Criterion, list[Values]] = {"cosine": SCORED, "softmax": LABELLED, "ranking": PAIRS, "simcse": TEXTS}
WAYS: list[tuple[Criterion, list[Values]]] = [
    ("cosine", SCORED),
    ("cosent", SCORED),
    ("softmax", LABELLED),
    ("ranking", PAIRS),
    ("ranking", TRIPLETS),
    ("triplet", TRIPLETS),
    ("simcse", TEXTS),
    ("simcse", PAIRS),
]


def batch_of(task: Siamese, given: list[Values]) -> Batch:
    return collate([read(task, values).samples[0] for values in given])


def learning(task: Siamese, given: list[Values], steps: int = 60) -> Model:
    """Without dropout."""
    model, batch = new_model(task), batch_of(task, given)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(batch).loss().backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("expected", KINDS)
def test_the_columns_decide_what_is_learned(expected: Criterion) -> None:
    task = Siamese().fitted(KINDS[expected])
    assert task.criterion == expected
    assert task.summary().startswith(f"{expected}: ")


def test_hard_negatives_are_ranked_unless_triplets_are_asked_for() -> None:
    assert Siamese().fitted(TRIPLETS).criterion == "ranking"
    assert Siamese(criterion="triplet").fitted(TRIPLETS).criterion == "triplet"


def test_a_score_goes_before_a_label() -> None:
    assert Siamese().fitted([{**row, "label": "x"} for row in SCORED]).criterion == "cosine"


@pytest.mark.parametrize(
    ("task", "given", "told"),
    [
        (
            Siamese(criterion="triplet"),
            PAIRS,
            "triplet learns from rows of text, other, negative; no row has a negative",
        ),
        (Siamese(criterion="cosent"), PAIRS, "no row has a score"),
        (Siamese(), [SCORED[0], SCORED[0]], "the scores do not differ"),
        (Siamese(), [SCORED[0], {**SCORED[1], "score": "high"}], "the scores, 1 of 2 of which are numbers, do not"),
        (Siamese(), [LABELLED[1], LABELLED[2]], "every row has the label 'other'"),
        (
            Siamese(),
            [{**pair, "label": row["score"]} for pair, row in zip(PAIRS, SCORED, strict=True)],
            "the labels are numbers like 2.5, which look like scores",
        ),
        (Siamese(sizes=(8,)), LABELLED, "softmax learns from whole vectors only"),
    ],
)
def test_rows_that_teach_nothing_are_refused(task: Siamese, given: list[Values], told: str) -> None:
    with pytest.raises((InputError, SpecError), match=told):
        task.fitted(given)


@pytest.mark.parametrize(
    ("criterion", "row", "told"),
    [
        ("cosine", PAIRS[0], "the score is missing"),
        ("softmax", PAIRS[0], "the label is missing"),
        ("ranking", TEXTS[0], "the second text is missing"),
        ("triplet", PAIRS[0], "the third text is missing"),
    ],
)
def test_a_row_without_what_is_learned_has_no_gold(criterion: Criterion, row: Values, told: str) -> None:
    task = Siamese(criterion=criterion).fitted({**KINDS, "triplet": TRIPLETS}[criterion])
    assert read(task, row).gold is None and task.missing(row) == told


def test_numbers_may_be_labels_where_that_is_said() -> None:
    labelled = [{**row, "label": score} for row, score in zip(PAIRS, (0.5, 1, 2), strict=True)]
    assert Siamese(criterion="softmax").fitted(labelled).labels == ("0.5", "1", "2")
    assert Siamese().fitted([{**row, "label": number} for number, row in enumerate(PAIRS)]).labels == ("0", "1", "2")


@pytest.mark.parametrize(
    ("criterion", "given", "unread"),
    [("ranking", SCORED, ["score"]), ("ranking", TRIPLETS, []), ("simcse", PAIRS, ["other"]), ("cosine", SCORED, [])],
)
def test_columns_that_teach_nothing_are_named(criterion: Criterion, given: list[Values], unread: list[str]) -> None:
    assert Siamese(criterion=criterion).fitted(given).unread(given[0].keys()) == unread


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"text": " "}, "the text is empty"),
        ({"text": "a", "negative": "b"}, "the second text is empty"),
        ({"text": "a", "other": ""}, "the second text is empty"),
        ({"other": "a"}, "the text is empty"),
    ],
)
def test_empty_texts_are_named(row: Values, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(Siamese(criterion="ranking"), row)


def test_texts_are_one_sample_and_their_cuts_are_counted() -> None:
    example = (
        Siamese().fitted(TRIPLETS).read({"text": "a cat", "other": "the cat " * 9, "negative": "a cat"}, tokenizer(), 8)
    )
    (sample,) = example.samples
    lengths, digests = np.asarray(sample["texts"]), np.asarray(sample["digests"])
    assert lengths.tolist() == [4, 8, 4] and len(np.asarray(sample["tokens"])) == 16
    assert example.num_cut == 12
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize(("criterion", "given"), WAYS)
def test_every_criterion_learns(criterion: Criterion, given: list[Values]) -> None:
    task = Siamese(criterion=criterion).fitted(given)
    before = float(new_model(task).loss(batch_of(task, given)).loss().detach())
    after = float(learning(task, given).loss(batch_of(task, given)).loss().detach())
    assert after < 0.5 * before


def test_dropout_makes_the_two_vectors_of_one_text_differ() -> None:
    task = Siamese().fitted(TEXTS)
    model = Model.new(TINY.changed({"encoder.embeddings.dropout": 0.1, "objectives": (task,)})).train()
    vectors = task.embed_rows(model.heads["siamese"], model.encoder, batch_of(task, TEXTS)).ragged("vectors")
    assert vectors.sizes == [2, 2, 2]
    for row in vectors.rows():
        assert 0 < float((row[0] - row[1]).detach().norm()) < float(row[0].detach().norm())
    model.eval()
    for row in task.embed_rows(model.heads["siamese"], model.encoder, batch_of(task, TEXTS)).ragged("vectors").rows():
        torch.testing.assert_close(row[0], row[1])


@pytest.mark.parametrize("pooling", ["first", "mean", "max"])
def test_vectors_do_not_depend_on_the_other_texts_of_a_row(pooling: Any) -> None:
    task = Siamese(pooling=pooling).fitted(TRIPLETS)
    model = new_model(task)
    examples = [read(task, TRIPLETS[0]), *(read(task, {"text": text}) for text in TRIPLETS[0].values())]
    whole, *single = outputs_of(model, task, examples)
    np.testing.assert_allclose(whole[0].reshape(3, -1), np.stack([one[0] for one in single]), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(single[0][0]), 1.0, atol=1e-6)


def test_answers_by_the_number_of_texts() -> None:
    task = Siamese().fitted(PAIRS)
    model = new_model(task)
    one, two, three = answers_to(task, model, [read(task, row) for row in (TEXTS[0], PAIRS[0], TRIPLETS[0])])
    assert len(one["vector"]) == 32 and set(two) == {"cosine"} and set(three) == {"cosine", "negative_cosine"}
    assert two["cosine"] == pytest.approx(three["cosine"], abs=1e-5)


def test_labels_are_told_of_pairs_alone() -> None:
    task = Siamese().fitted(LABELLED)
    model = learning(task, LABELLED)
    examples = [read(task, row) for row in LABELLED]
    answers = answers_to(task, model, examples)
    assert [answer["label"] for answer in answers] == ["same", "other", "other"]
    assert set(answers_to(task, model, [read(task, TEXTS[0])])[0]) == {"vector"}
    task = task.measured_on(("text", "other", "label"))
    assert task.score(answers, [example.gold for example in examples])[task.main] == 1.0
    assert task.label_pairs(answers, [example.gold for example in examples])["label"][0] == ("same", "same")


@pytest.mark.parametrize(("criterion", "given"), WAYS)
@pytest.mark.parametrize(("held_out", "main"), [(PAIRS, "mrr"), (TRIPLETS, "triplet_accuracy")])
def test_pairs_and_triplets_measure_every_model(
    held_out: list[Values], main: str, criterion: Criterion, given: list[Values]
) -> None:
    """What a row needs is what is measured on it, whatever was learned."""
    task = Siamese(criterion=criterion).fitted(given).measured_on(held_out[0], held_out)
    model, examples = new_model(task), [read(task, row) for row in held_out]
    figures = task.score(answers_to(task, model, examples), [example.gold for example in examples])
    assert task.main == main and main in figures and all(np.isfinite(list(figures.values())))
    loss = float(model.loss(batch_of(task, held_out)).loss().detach())
    assert np.isfinite(loss) and loss > 0, "held-out rows that the criterion cannot use are ranked"
    assert read(task, TEXTS[0]).gold is None and task.missing(TEXTS[0]) == "the second text is missing"


def test_held_out_rows_of_scores_need_a_score() -> None:
    task = Siamese().fitted(PAIRS).measured_on(SCORED[0], SCORED)
    assert read(task, PAIRS[0]).gold is None and task.missing(PAIRS[0]) == "the score is missing"


@pytest.mark.parametrize("empty", ["", " ", None, float("nan")])
def test_an_empty_third_text_is_none_where_it_is_optional(empty: Any) -> None:
    row = {**PAIRS[0], "negative": empty}
    example = read(Siamese(criterion="ranking"), row)
    assert len(np.asarray(example.samples[0]["texts"])) == 2 and example.gold is not None
    with pytest.raises(InputError, match="the third text is empty"):
        read(Siamese(criterion="triplet"), row)
    alone = read(Siamese(criterion="simcse"), {"text": "a cat", "other": empty})
    assert len(np.asarray(alone.samples[0]["texts"])) == 1


@pytest.mark.parametrize("criterion", ["ranking", "triplet", "cosine"])
def test_third_texts_are_measured_where_every_row_has_one(criterion: Criterion) -> None:
    some, roles = [*TRIPLETS[:2], {**TRIPLETS[2], "negative": ""}], TRIPLETS[0].keys()
    task = Siamese(criterion=criterion).fitted({**KINDS, "triplet": TRIPLETS}[criterion])
    assert task.measured_on(roles, TRIPLETS).unmeasured(roles) == {}
    task = task.measured_on(roles, some)
    assert task.main == "mrr" and task.unmeasured(roles) == {"negative": "some rows have no third text"}
    examples = [read(task, row) for row in some]
    figures = task.score(answers_to(task, new_model(task), examples), [example.gold for example in examples])
    assert set(figures) == {"mrr", "accuracy_at_1"}


@pytest.mark.parametrize(("criterion", "given"), WAYS)
def test_scored_pairs_measure_every_model(criterion: Criterion, given: list[Values]) -> None:
    task = Siamese(criterion=criterion).fitted(given).measured_on(SCORED[0])
    model, examples = new_model(task), [read(task, row) for row in SCORED]
    answers = answers_to(task, model, examples)
    assert task.main == "spearman"
    figures = task.score(answers, [example.gold for example in examples])
    assert set(figures) == {"spearman", "pearson"}
    assert np.isfinite(float(model.loss(batch_of(task, SCORED)).loss().detach()))
    wrong = [task.error_severity(answer, example.gold) for answer, example in zip(answers, examples, strict=True)]
    assert any(wrong) == (criterion in ("cosine", "cosent")), "only who learned scores knows their scale"


def test_the_second_text_is_looked_for_among_those_of_all_rows() -> None:
    task = Siamese().fitted(TRIPLETS).measured_on(TRIPLETS[0])
    gold = [Gold("triplets", "one"), Gold("triplets", "two"), Gold("triplets", "one")]
    directions = np.eye(3, dtype=np.float32)
    vectors = [
        np.stack([directions[0], directions[0], directions[1]]),
        np.stack([directions[0], directions[1], directions[1]]),
        np.stack([directions[0], directions[0], directions[2]]),
    ]
    answers = answers_to(task, new_model(task), [read(task, row) for row in TRIPLETS])
    for answer, found in zip(answers, vectors, strict=True):
        answer.vectors = found  # type: ignore[attr-defined]
    figures = task.score(answers, gold)
    assert figures == pytest.approx({"mrr": 2.5 / 3, "accuracy_at_1": 2 / 3, "triplet_accuracy": 2 / 3})


def test_single_texts_measure_nothing() -> None:
    with pytest.raises(InputError, match="single texts cannot measure"):
        Siamese().fitted(TEXTS).measured_on(("text",))


def test_shorter_vectors_are_learned_too_and_measured() -> None:
    task = Siamese(sizes=(4, 32, 16, 4)).fitted(SCORED).measured_on(SCORED[0])
    assert task.sizes == (32, 16, 4)
    model, batch = new_model(task), batch_of(task, SCORED)
    compared = task.embed_rows(model.heads["siamese"], model.encoder, batch)
    vectors = compared.ragged("vectors")
    parts = [
        task.replace(sizes=()).contrastive_loss(
            model.heads["siamese"], compared.with_fields({"vectors": vectors.with_values(vectors.values[:, :size])})
        )
        for size in (32, 16, 4)
    ]
    expected = sum(float(part.loss().detach()) for part in parts)
    assert float(model.loss(batch).loss().detach()) == pytest.approx(expected, rel=1e-5)
    answers = answers_to(task, model, [read(task, row) for row in SCORED])
    figures = task.score(answers, [Gold("scored", float(row["score"])) for row in SCORED])
    assert set(figures) == {"spearman", "pearson", "spearman_16", "spearman_4"}


def test_sizes_above_that_of_the_model_are_refused() -> None:
    with pytest.raises(SpecError, match="vectors have 32 numbers, not 64; 32 is the largest"):
        new_model(Siamese(sizes=(64,)).fitted(PAIRS))


@pytest.mark.parametrize("criterion", ["ranking", "simcse", "cosent"])
def test_who_compares_rows_says_so(criterion: Criterion) -> None:
    assert Siamese(criterion=criterion).contrastive
    assert not Siamese(criterion="cosine").contrastive and not Siamese(criterion="triplet").contrastive


def test_labels_that_were_not_learned_are_not_looked_at() -> None:
    """All held-out pairs then count as belonging together, and that is told."""
    roles = ("text", "other", "label")
    assert Siamese().fitted(SCORED).unmeasured(roles) == {"label": "it was not learned"}
    assert Siamese(criterion="softmax", labels=("no", "yes")).unmeasured(roles) == {}


def test_labels_that_differ_are_no_pairs_that_belong_together() -> None:
    task, roles = Siamese().fitted(SCORED), ("text", "other", "label")
    with pytest.raises(InputError, match="did not learn labels, and the rows have 'other' and 'same'"):
        task.measured_on(roles, LABELLED)
    assert task.measured_on(roles, LABELLED[1:]).main == "mrr", "all have one label"
    scored = [{**row, "score": number} for number, row in enumerate(LABELLED)]
    assert task.measured_on((*roles, "score"), scored).main == "spearman", "scores go before labels"
    assert Siamese().fitted(LABELLED).measured_on(roles, LABELLED).main == "accuracy"
