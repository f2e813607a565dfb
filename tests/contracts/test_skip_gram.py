from tests.contracts.planted import X


def test_x() -> None:
    assert X
