"""What counting words achieves: labelled rows enter, the accuracy of TF-IDF with logistic regression leaves."""

from collections.abc import Sequence
from importlib.util import find_spec

from bertie.quickstart.learning_rows import Row


def counted_words_accuracy(train: Sequence[Row], dev: Sequence[Row]) -> float | None:
    """None where scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\w+"), LogisticRegression(C=10, max_iter=300)
    )
    model.fit([row["text"] for row in train], [row["label"] for row in train])
    return float(model.score([row["text"] for row in dev], [row["label"] for row in dev]))
