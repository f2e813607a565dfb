import pytest

from bertie.data.rows.sniffing import sniff_format


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("\ufeffa\tb\nc\td\n", "tsv"),
        ("EU B-ORG\n\nPeter B-PER\n", "conll"),
        ("前\tO\n不\tO\n\n久\tO\n", "conll"),
        ("EU B-ORG\nPeter B-PER\n\n", "conll"),
        ("john O\nmary B\n\n", None),  # one sentence, or a list of pairs
        ("Paris is big\n\nRome is old\n\nBerlin is new\n", None),  # sentences of equally many words
        ("我 爱 你\n\n他 爱 她\n", None),
        ("BUY IT NOW\n\nSELL IT NOW\n", None),
        ("the DT\ndog NN\n. .\n\nthe DT\ncat NN\n. .\n\n", "conll"),
        ("我 r\n爱 v\n你 r\n\n他 r\n爱 v\n她 r\n", "conll"),
        ("EU B-ORG\nof O\n\n" * 99 + "Peter\n\nEU O\n", "conll"),  # a broken line is reported when it is read
        ("__label__a text\n__label__b text\n", "label-prefix"),
        ("DESC:x How ?\nENTY:y What ?\n" * 5, "label-text"),
        ("DESC How ?\nENTY What ?\n" * 5, None),  # a label, or a word
        ("BOB:hello you\nANN:hi you\n", None),
        ("good film\t1\n\nbad film\t0\n", "tsv"),
        ("a\tb\n" * 500 + "\na\tb\n", "tsv"),  # a stray blank line
        ('\n{"a": 1}\n', "jsonl"),
        ('{\n"a": 1}\n', None),
        ('[\n{"a": 1}]', "json"),
        ("[1, 2]", None),
        ("[ O\n\n] O\n", "conll"),
        ('{"data": [{"paragraphs": [', "squad"),
        ("a,b\n", None),
        ("", None),
    ],
)
def test_the_look_of_files(head: str, kind: str | None) -> None:
    assert sniff_format(head.encode(), is_whole=True) == kind


def test_a_line_that_is_cut_is_not_looked_at() -> None:
    assert sniff_format(b"EU B-ORG\n\nPeter B-PER\nPaul", is_whole=False) == "conll"
    assert sniff_format("EU\tB-ORG\n\n前\tO\n前".encode()[:-1], is_whole=False) == "conll"
