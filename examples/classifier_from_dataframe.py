"""A text classifier from a pandas DataFrame: train, evaluate, predict.

    python examples/classifier_from_dataframe.py [MODEL]

MODEL is any BERT folder. Without one the classifier starts from random weights, with a vocabulary of its own.
"""

import sys

import pandas as pd

import bertie

good, bad = ["great", "lovely", "moving", "funny"], ["dull", "awful", "noisy", "flat"]
reviews = [
    f"{which} {what}, {word}" for which in ("a", "the") for what in ("film", "plot", "cast") for word in good + bad
]
frame = pd.DataFrame({"review": reviews, "label": ["good" if text.split()[-1] in good else "bad" for text in reviews]})
train, test = frame.iloc[:40], frame.iloc[40:]

if len(sys.argv) > 1:
    start = {"base": sys.argv[1]}
else:
    vocabulary = bertie.train_vocab(list(frame["review"]), size=200, min_frequency=1)
    start = {"recipe": "bert", "size": "tiny", "tokenizer": vocabulary.folder}
run = bertie.finetune("classify", train=train, dev=test, epochs=8, batch=8, **start)

print(run.evaluate(test))
print(run.predict(["a lovely plot", "an awful cast"]))
