"""A model of your own domain, from raw text: vocabulary, corpus, pre-training, filling gaps.

    python examples/domain_model.py [--steps 2000] [texts ...]

Without files it learns the language of Python's own reference manual, which comes with Python.
"""

import argparse
from pydoc_data.topics import topics

import bertie

parser = argparse.ArgumentParser()
parser.add_argument("texts", nargs="*")
parser.add_argument("--steps", type=int, default=2000)
given = parser.parse_args()

texts = given.texts or list(topics.values())
vocabulary = bertie.train_vocab(texts, kind="wordpiece", size=4000)
corpus = bertie.build_corpus(texts, tokenizer=vocabulary)
print(corpus)

run = bertie.pretrain("modernbert", size="tiny", corpus=corpus, steps=given.steps, lr=2e-3, batch_tokens=1024)
print(run)
for guess in run.fill("If no exception [MASK] raised, the block is executed.", top=3):
    print(f"{guess.probability:6.1%}  {guess.token}")
