"""Tags of words: schemes as in the data, one tag a word whatever the word, marks, windows, chains."""

from typing import Any

import numpy as np
import pytest
from tests.tasks.learning import TINY, answers_to, learned, new_model, read, rows

from bertie.batch import Places, collate
from bertie.errors import CapabilityError, InputError
from bertie.models.recipe import Size
from bertie.models.recipes import roberta
from bertie.nn.crf import CRFSpec
from bertie.tasks import tagging
from bertie.tasks.tagging import Tagging, every_tag
from bertie.tasks.task import Example
from bertie.text.tag_schemes import SchemeName, convert, count_broken, spans_of
from bertie.text.tokenizers.alignment import Alignment

SENTENCES = [
    ["B-PER", "I-PER", "O", "B-LOC"],
    ["B-LOC", "I-LOC", "I-LOC", "B-LOC", "O"],
    ["B-PER", "B-PER", "O"],
]


def tagged(sentences: list[list[str]]) -> list[Any]:
    return rows(("words", "tags"), *((["ann"] * len(tags), tags) for tags in sentences))


def as_outputs(task: Tagging, example: Example, tags: list[str]) -> list[np.ndarray]:
    """What a model says that gives each word this tag."""
    windows = example.context["windows"].rows
    parts = [tags[window.first : window.first + len(window.places)] for window in windows]
    return [np.array([(task.tags.index(tag), 0.75) for tag in part]) for part in parts]


# --- schemes


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES", "BILOU", "BMES"])
def test_the_scheme_is_that_of_the_data_and_is_told(scheme: SchemeName) -> None:
    data = [convert(tags, scheme) for tags in SENTENCES]
    task = Tagging().fitted(tagged(data))
    assert task.scheme == scheme and f"in the scheme {scheme}" in task.summary()
    assert task.tags[0] == "O"
    for tags in data:
        example = read(task, {"words": ["ann"] * len(tags), "tags": tags})
        answer = task.answer(example, as_outputs(task, example, tags))
        assert answer["tags"] == tags == example.gold
        assert [(one["type"], one["first_word"], one["end_word"]) for one in answer["entities"]] == spans_of(tags)
        assert task.error_severity(answer, tags) == 0


def test_plain_labels_have_no_scheme() -> None:
    task = Tagging().fitted(tagged([["NN", "VBZ", "O"], ["NN", "."]]))
    assert task.scheme is None and task.tags == ("O", ".", "NN", "VBZ") and task.summary().startswith("4 tags: O, .")
    example = read(task, {"words": "Ann sat .", "tags": "NN VBZ ."})
    answer = task.answer(example, as_outputs(task, example, ["NN", "NN", "."]))
    assert answer == {"words": ["Ann", "sat", "."], "tags": ["NN", "NN", "."]}
    assert task.score([answer], [example.gold]) == {"f1": pytest.approx(2 / 3), "accuracy": pytest.approx(2 / 3)}
    assert task.error_severity(answer, example.gold) == 1
    assert task.label_pairs([answer], [example.gold]) == {"word": [("NN", "NN"), ("VBZ", "NN"), (".", ".")]}


def test_tags_that_a_scheme_can_say_are_known_though_no_row_has_them() -> None:
    assert every_tag({"O", "I-PER", "B-X-Y"}, "IOB1") == {"O", "I-PER", "B-PER", "I-X-Y", "B-X-Y"}
    assert every_tag({"B", "E"}, "BMES") == {"B", "M", "E", "S"}, "without an O where the data have none"
    task = Tagging().fitted(tagged([["I-PER", "O"], ["I-LOC", "B-LOC"]]))
    assert task.scheme == "IOB1"
    assert read(task, {"words": ["a", "b"], "tags": ["I-PER", "B-PER"]}).gold == ["I-PER", "B-PER"]


def test_of_many_sentences_some_tell_the_scheme_and_all_the_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagging, "ENOUGH", 3)
    later = [["B-MISC", "O"], ["S-ORG"]]
    data = [convert(tags, "IOBES") for tags in SENTENCES] + later
    task = Tagging().fitted(tagged(data))
    assert task.scheme == "IOBES" and {"B-MISC", "E-MISC", "S-ORG", "S-PER"} <= set(task.tags)
    with pytest.raises(InputError, match="of the tags belong to no one scheme"):
        Tagging().fitted(tagged([*SENTENCES, ["S-PER", "L-PER", "M-PER"]]))


def test_odd_tags() -> None:
    """Numbers, tags with a dash in their label, an entity type with a space."""
    assert Tagging().fitted(tagged([[0, 1, 2]])).tags == ("0", "1", "2")  # type: ignore[list-item]
    task = Tagging().fitted(tagged([["B-PER-SUB", "I-PER-SUB", "O", "B-a b"]]))
    assert task.scheme == "IOB2" and {"B-PER-SUB", "I-a b"} <= set(task.tags)
    assert task.labels_of(["B-PER-SUB", "O", "I-a b"]) == ["PER-SUB", "O", "a b"]


def test_what_leaves_is_well_formed_whatever_the_model_says() -> None:
    task = Tagging().fitted(tagged(SENTENCES))
    example = read(task, {"words": ["ann"] * 5})
    said = ["I-PER", "O", "I-LOC", "I-PER", "I-PER"]
    answer = task.answer(example, as_outputs(task, example, said))
    assert answer["tags"] == ["B-PER", "O", "B-LOC", "B-PER", "I-PER"]
    assert spans_of(answer["tags"]) == spans_of(said), "the spans are those that conlleval reads"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"words": ["a", "b"], "tags": ["O"]}, "there are 2 words and 1 tags"),
        ({"words": ["a"], "tags": ["B-ORG"]}, "the tag 'B-ORG' is not in the training data"),
        ({"words": ["a"], "tags": ["b-per"]}, "the tag 'b-per' is not in"),
        ({"words": [], "tags": []}, "there are no words"),
        ({"words": ["a"], "tags": 3}, "the tags are int"),
    ],
)
def test_rows_that_cannot_be_used(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(Tagging().fitted(tagged(SENTENCES)), values)


def test_tags_that_teach_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="every row has the tag 'O'"):
        Tagging().fitted(tagged([["O", "O"], ["O"]]))
    with pytest.raises(InputError, match="no row has a tag"):
        Tagging().fitted([{"words": ["a"]}])


def test_scores_and_labels_are_those_of_the_spans() -> None:
    task = Tagging().fitted(tagged(SENTENCES))
    gold, told = ["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O", "O", "B-LOC"]
    answer = {"tags": told}
    scores = task.score([answer], [gold])
    assert (scores["f1"], scores["precision"], scores["recall"], scores["accuracy"]) == (0.5, 0.5, 0.5, 0.75)
    assert task.error_severity(answer, gold) == 2, "one span that is not there, one that is missing"
    pairs = [("PER", "PER"), ("PER", "O"), ("O", "O"), ("LOC", "LOC")]
    assert task.label_pairs([answer], [gold]) == {"word": pairs}
    segmentation = Tagging(tags=("B", "M", "E", "S"), scheme="BMES")
    assert segmentation.labels_of(["B", "E", "S"]) == ["B", "E", "S"], "spans without a kind"


# --- words


def test_words_that_give_no_token_and_quotes_and_emoji_have_a_tag_too() -> None:
    task = learned("tag").task
    words = ["\x07", '"Ann', "\u200b", "😀", "lives", "", "in", "Paris.", "\ufeff", "中文"]
    model = learned("tag").model
    (answer,) = answers_to(task, model, [read(task, {"words": words})])
    assert answer["words"] == words and len(answer["tags"]) == len(words)


def test_characters_are_the_units_where_training_words_are_characters() -> None:
    rows_of = rows(("words", "tags"), (list("我们去北京"), ["O", "O", "O", "B-LOC", "I-LOC"]), (["中"], ["O"]))
    task = Tagging().fitted(rows_of)
    assert task.alignment.unit == "characters" and "one for each character" in task.summary()
    assert Tagging().fitted(tagged(SENTENCES)).alignment.unit == "words"
    example = read(task, {"words": " 我们 去北京。"})
    answer = task.answer(example, as_outputs(task, example, ["O", "O", "O", "B-LOC", "I-LOC", "O"]))
    assert answer["words"] == list("我们去北京。")
    assert answer["entities"] == [
        {"type": "LOC", "score": 0.75, "first_word": 3, "end_word": 5, "start": 5, "end": 7, "text": "北京"}
    ]
    given = read(task, {"words": list("在北京")})
    entity = task.answer(given, as_outputs(task, given, ["O", "B-LOC", "I-LOC"]))["entities"][0]
    assert entity["text"] == "北京" and "start" not in entity


def test_offsets_slice_the_text_as_it_was_given() -> None:
    task = Tagging().fitted(tagged(SENTENCES))
    text = "\u3000“Ann \t Bob”  lives,\u00a0in  Paris!😀 "
    example = read(task, {"words": text})
    assert example.context["words"] == ["“", "Ann", "Bob", "”", "lives", ",", "in", "Paris", "!", "😀"]
    tags = ["O", "B-PER", "I-PER", "O", "O", "O", "O", "B-LOC", "O", "O"]
    answer = task.answer(example, as_outputs(task, example, tags))
    assert [one["text"] for one in answer["entities"]] == ["Ann \t Bob", "Paris"]
    for entity in answer["entities"]:
        assert entity["text"] == text[entity["start"] : entity["end"]]


def test_raw_text_is_split_as_the_training_words_were() -> None:
    sentences = [["Ann", "left", "the", "U.S.", ",", "Bob", "too", "."], ["He", "saw", "Rome", "."]]
    tags = [["B-PER", "O", "O", "B-LOC", "O", "B-PER", "O", "O"], ["O", "O", "B-LOC", "O"]]
    text = "Ann left (the U.S.),London.Paris!!!"
    words = ["Ann", "left", "(", "the", "U.S.", ")", ",", "London", ".", "Paris", "!", "!", "!"]
    from_lists = Tagging().fitted(rows(("words", "tags"), *zip(sentences, tags, strict=True)))
    joined = [(" ".join(one), " ".join(other)) for one, other in zip(sentences, tags, strict=True)]
    from_texts = Tagging().fitted(rows(("words", "tags"), *joined))
    for task in (from_lists, from_texts, Tagging.from_json(from_lists.to_json())):
        assert read(task, {"words": text}).context["words"] == words
        assert read(task, {"words": text.split()}).context["words"] == text.split(), "words that are given are kept"
        assert len(read(task, {"words": joined[0][0], "tags": joined[0][1]}).context["words"]) == len(sentences[0])
    attached = Tagging().fitted(tagged(SENTENCES) + rows(("words", "tags"), (["Rome!!!", "Ann,"], ["B-LOC", "B-PER"])))
    assert read(attached, {"words": "in Rome!!!"}).context["words"] == ["in", "Rome!!!"]


def test_an_entity_has_the_mean_probability_of_its_tags() -> None:
    task = Tagging().fitted(tagged(SENTENCES))
    example = read(task, {"words": "Ann Bob sat"})
    numbers = [task.tags.index(tag) for tag in ("B-PER", "I-PER", "O")]
    answer = task.answer(example, [np.array(list(zip(numbers, (0.5, 1.0, 0.25), strict=True)))])
    assert [(one["text"], one["score"]) for one in answer["entities"]] == [("Ann Bob", 0.75)]
    for crf in (None, CRFSpec()):
        task = Tagging(crf=crf).fitted(tagged(SENTENCES))
        model = new_model(task)
        (outputs,) = task.outputs(model.heads["tag"], model.encoder, collate(example.samples))
        assert outputs.shape == (3, 2) and ((outputs[:, 1] > 0) & (outputs[:, 1] <= 1)).all()


@pytest.mark.parametrize("crf", [None, CRFSpec()])
def test_a_line_of_six_hundred_words_is_answered_word_by_word(crf: CRFSpec | None) -> None:
    """Over many windows, each word where it has most context."""
    task = Tagging(crf=crf, alignment=Alignment(overlap=8)).fitted(tagged(SENTENCES))
    words = [("ann", "bob", "paris", "unaffable")[number % 4] for number in range(600)]
    tags = ["B-PER", *["I-PER"] * 599]  # every window cuts the one span
    example = read(task, {"words": words, "tags": tags}, length=32)
    assert len(example.samples) > 20 and example.gold == tags
    assert task.answer(example, as_outputs(task, example, tags))["tags"] == tags
    model = new_model(task)
    assert np.isfinite(float(model.loss(collate(example.samples)).loss().detach()))
    (answer,) = answers_to(task, model, [example])
    assert answer["words"] == words and len(answer["tags"]) == 600
    assert count_broken(answer["tags"], "IOB2") == 0
    targets = [sample["tags"] for sample in example.samples]
    begins = [task.tags[int(target[0])] for target in targets if isinstance(target, np.ndarray)]
    assert set(begins[1:]) == ({"I-PER"} if crf is None else {"B-PER"})


# --- chains


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_a_chain_tells_no_path_that_the_scheme_forbids(scheme: SchemeName) -> None:
    """Random weights, random words: softmax breaks the scheme, the chain does not."""
    data = [convert(tags, scheme) for tags in SENTENCES]
    rng = np.random.default_rng(0)
    broken = {}
    for crf in (None, CRFSpec()):
        task = Tagging(crf=crf).fitted(tagged(data))
        model = new_model(task, TINY.changed({"encoder.initial_std": 0.5}))
        examples = [read(task, {"words": list("abcdefgh") * int(rng.integers(1, 4))}) for _ in range(10)]
        batch = collate([sample for example in examples for sample in example.samples])
        outputs = task.outputs(model.heads["tag"], model.encoder, batch)
        told = [[task.tags[int(number)] for number, _ in output] for output in outputs]
        broken[crf] = sum(count_broken(tags, scheme) for tags in told)
    assert broken[CRFSpec()] == 0 < broken[None]


def test_a_chain_learns_from_tags_that_break_their_scheme_by_the_spans_they_mark() -> None:
    task = Tagging(crf=CRFSpec()).fitted(tagged([*SENTENCES, *SENTENCES, ["O", "I-PER"]]))
    assert task.scheme == "IOB2"
    example = read(task, {"words": ["a", "b"], "tags": ["O", "I-PER"]})
    target = example.samples[0]["tags"]
    assert isinstance(target, np.ndarray) and [task.tags[number] for number in target] == ["O", "B-PER"]
    assert example.gold == ["O", "I-PER"], "what is measured against stays as it was"
    plain = Tagging().fitted(tagged([*SENTENCES, *SENTENCES, ["O", "I-PER"]]))
    target = read(plain, {"words": ["a", "b"], "tags": ["O", "I-PER"]}).samples[0]["tags"]
    assert isinstance(target, np.ndarray) and [plain.tags[number] for number in target] == ["O", "I-PER"]


# --- marks


MARKED = rows(
    ("words", "marked", "tags"),
    (["Ann", "went", "and", "Bob", "sat"], 1, ["B-A0", "B-V", "O", "O", "O"]),
    (["Ann", "went", "and", "Bob", "sat"], 4, ["O", "O", "O", "B-A0", "B-V"]),
)


def test_the_marked_word_is_the_second_segment() -> None:
    task = Tagging().fitted(MARKED)
    assert task.marked
    example = read(task, MARKED[1])
    tokens, segments, places = (example.samples[0][name] for name in ("tokens", "segments", "tagged"))
    assert isinstance(segments, np.ndarray) and isinstance(tokens, np.ndarray) and isinstance(places, Places)
    assert np.flatnonzero(segments).tolist() == [int(places.positions[4])] and len(segments) == len(tokens)
    model = new_model(task)
    one, other = answers_of_marks(task, model)
    assert not np.allclose(one, other), "the same words, asked about another one"
    with pytest.raises(InputError, match="the mark is empty"):
        read(task, {"words": ["Ann", "sat"]})
    assert "segments" not in read(Tagging().fitted(tagged(SENTENCES)), {**MARKED[0], "tags": "O O O O O"}).samples[0]


def answers_of_marks(task: Tagging, model: Any) -> list[np.ndarray]:
    batches = [collate(read(task, values).samples) for values in MARKED]
    return [model.encoder(batch).states.values.detach().numpy() for batch in batches]


def test_an_encoder_without_a_second_segment_cannot_mark() -> None:
    task = Tagging().fitted(MARKED)
    with pytest.raises(CapabilityError, match="the model has no second segment with which to mark a word"):
        new_model(task, roberta(Size(depth=1, width=16, num_heads=2), vocab_size=50))
    no_table = TINY.changed({"encoder.embeddings.tables": TINY.encoder.embeddings.tables[:2]})
    with pytest.raises(CapabilityError, match="no second segment"):
        new_model(task, no_table)
