import pytest

from bertie.data.rows.header import header_names, usual_widths, why_no_header


@pytest.mark.parametrize(
    ("first", "others"),
    [
        (["sentence", "label"], [["a fine film", "1"], ["sentence by sentence", "0"]]),
        (["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"], [["1", "702876", "702977", "a", "b"]]),
        (["label", "review"], [["1", "好"], ["0", "坏"]]),
        (["", "text", "label"], [["0", "a", "x"], ["1", "b", "y"]]),  # pandas numbers the rows
        (["inf", "nan"], [["1", "2"]]),
    ],
)
def test_names_are_a_header(first: list[str], others: list[list[str]]) -> None:
    assert why_no_header(first, others) is None


@pytest.mark.parametrize(
    ("first", "others", "reason"),
    [
        (["main", "2012test", "0001", "5.000"], [], "'0001' is a number"),
        (["a fine film", "pos"], [["a bad one", "neg"], ["fine", "pos"]], "'pos' is in another row too"),
        (["It is fine.", "Es ist gut."], [], "'It is fine.' is a sentence"),
        (["好。", "x"], [], "is a sentence"),
        (["word " * 20, "pos"], [], "it has a cell of 100 characters"),
        (["a", "a"], [], "two of its cells are alike"),
        (["text", ""], [], "one of its cells is empty"),
    ],
)
def test_data_is_no_header(first: list[str], others: list[list[str]], reason: str) -> None:
    assert reason in str(why_no_header(first, others))


def test_a_column_without_a_name_gets_its_number() -> None:
    assert header_names(["", " text ", "label"]) == ("column1", "text", "label")


def test_rare_widths_are_mistakes() -> None:
    assert usual_widths([7] * 950 + [9] * 50) == (7, 9)
    assert usual_widths([7] * 998 + [9, 3]) == (7, 7)
    assert usual_widths([2, 3]) == (2, 2)
    assert usual_widths([]) == (0, 0)
