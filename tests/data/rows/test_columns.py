"""Columns by name, then by what they hold; what is not clear is asked, with the columns and an example of each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.rows import guess_columns, open_rows
from bertie.errors import InputError, UserError

Writer = Callable[[str, str | bytes], Path]

ONE = {"text": ("text", "sentence", "review", "content", "comment"), "label": ("label", "labels", "class", "target")}
TWO = {"text": ("sentence1", "premise"), "other": ("sentence2", "hypothesis")}


def test_names_go_first_whatever_their_case(write: Writer) -> None:
    guess = guess_columns(open_rows(write("a.csv", "id,LABEL,Review,content\n1,2,x,y\n")), ONE)
    assert guess.columns == {"text": "Review", "label": "LABEL"}
    assert guess.reasons == ["text is the column 'Review', by its name", "label is the column 'LABEL', by its name"]


def test_content_tells_text_and_label(write: Writer) -> None:
    lines = [f"{number}\t{'pos' if number < 30 else 'neg'}\ta film of {number} scenes" for number in range(40)]
    guess = guess_columns(open_rows(write("a.tsv", "\n".join(lines))), ONE)
    assert guess.columns == {"text": "column3", "label": "column2"}
    assert guess.reasons[0] == "text is the column 'column3', by its long texts (19 characters on average)"
    assert guess.reasons[1] == "label is the column 'column2', by its 2 different values, such as 'pos'"


def test_a_sample_of_a_sorted_file_sees_all_labels(write: Writer) -> None:
    lines = [f"{int(number >= 900)},a film of {number} scenes" for number in range(1000)]
    guess = guess_columns(open_rows(write("a.csv", "\n".join(lines))), ONE, sample=50)
    assert guess.columns["label"] == "column1"


def test_values_need_not_be_strings(write: Writer) -> None:
    lines = [
        f'{{"a": {str(number % 2 == 0).lower()}, "b": "a film of {number} scenes", "c": [1]}}' for number in range(9)
    ]
    assert guess_columns(open_rows(write("a.jsonl", "\n".join(lines))), ONE).columns == {"text": "b", "label": "a"}


def test_what_the_user_names_is_taken(write: Writer) -> None:
    rows = open_rows(write("a.csv", "text,label,other\na,1,2\n"))
    guess = guess_columns(rows, ONE, {"label": "other"})
    assert guess.columns == {"text": "text", "label": "other"} and "as named" in guess.reasons[1]
    # A column has one role, so the other role does not take it by its name.
    assert guess_columns(rows, ONE, {"text": "label", "label": "other"}).columns["text"] == "label"
    with pytest.raises(InputError, match="there is no column 'Label'; its columns are: 'text', 'label', 'other'"):
        guess_columns(rows, ONE, {"label": "Label"})
    with pytest.raises(InputError, match="the roles are text, label"):
        guess_columns(rows, ONE, {"score": "label"})


@pytest.mark.parametrize(
    ("content", "role"),
    [
        ("a,b,c\none film,another film,x\ntwo films,other films,y\n", "text"),
        ("text,b,c\none,x,p\ntwo,y,q\nthree,x,q\nfour,y,p\n", "label"),
        ("text,b\none film,1\ntwo films,2\nthree films,3\n", "label"),
        ("a,label\n1,2\n", "text"),
    ],
)
def test_what_is_not_clear_is_asked_with_examples(write: Writer, content: str, role: str) -> None:
    path = write("a.csv", content)
    rows = open_rows(path, header=True)
    with pytest.raises(UserError) as raised:
        guess_columns(rows, ONE)
    message = str(raised.value)
    unclear = f"{path}: it is not clear which column is the {role}"
    assert message.startswith(f"{unclear}; choose it with `column={role}=NAME`")
    for column, value in rows.row(0).values.items():
        assert f"{column!r} (such as {value!r})" in message


def test_a_role_without_a_rule_goes_by_name_alone(write: Writer) -> None:
    rows = open_rows(write("a.csv", "a,b\nx,y\n"), header=True)
    with pytest.raises(UserError, match="which column is the marker"):
        guess_columns(rows, {"marker": ("marker",)})


def test_wrong_rows_do_not_hinder(write: Writer) -> None:
    lines = [f"{'pos' if number % 3 else 'neg'},a film of {number} scenes" for number in range(40)]
    rows = open_rows(write("a.csv", "\n".join([*lines, "a,b,c,d"])))
    assert guess_columns(rows, ONE).columns == {"text": "column2", "label": "column1"}


# --- real files


def test_real_pairs_are_told_by_their_content(shared: Path) -> None:
    similar = guess_columns(open_rows(shared / "data/stsb/sts-train.tsv"), {**TWO, "score": ("score", "similarity")})
    assert similar.columns == {"text": "column6", "other": "column7", "score": "column5"}
    alike = guess_columns(open_rows(shared / "data/mrpc/msr_paraphrase_train.txt"), {**TWO, "label": ONE["label"]})
    assert alike.columns == {"text": "#1 String", "other": "#2 String", "label": "Quality"}


def test_a_real_file_without_its_header_is_told_by_its_content(shared: Path, write: Writer) -> None:
    for path in ("sst2/train_full.tsv", "chnsenticorp/ChnSentiCorp_htl_all.csv"):
        lines = (shared / "data" / path).read_bytes().split(b"\n", 1)[1]
        named = guess_columns(open_rows(shared / "data" / path), ONE).columns
        guessed = guess_columns(open_rows(write(Path(path).name, lines)), ONE).columns
        swapped = path.startswith("chn")
        assert named == {"text": "review" if swapped else "sentence", "label": "label"}
        assert guessed == {"text": f"column{1 + swapped}", "label": f"column{2 - swapped}"}
