"""A tokenizer of the characters of some texts."""

from bertie.text.vocab.building import characters_of


def test_frequent_characters_are_known_and_rare_ones_are_not() -> None:
    tokenizer = characters_of(["aab", "ba 好好", "z"])
    assert tokenizer.kind == "characters"
    tokens = [tokenizer.token_of(id) for id in tokenizer.encode_words(["a", "b", "好", "z"]).ids]
    assert tokens == ["[CLS]", "a", "b", "好", "[UNK]", "[SEP]"]
    assert tokenizer.digest == characters_of(["好好z", "baa", "ab"]).digest, "the order of rows does not matter"
