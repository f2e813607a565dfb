"""A search engine by meaning in twenty lines, over Python's reference manual.

    python examples/search_engine.py MODEL "how do I catch an error?"

MODEL is a sentence encoder: a folder of sentence-transformers, or one from `bertie finetune similarity --siamese`.
"""

import sys
from pydoc_data.topics import topics

import bertie

model = bertie.load(sys.argv[1])
names = list(topics)
vectors = model.encode([topics[name][:1000] for name in names], normalize=True, max_length=128)
for question in sys.argv[2:]:
    scores = vectors @ model.encode(question, normalize=True)
    print(question)
    for best in scores.argsort()[::-1][:3]:
        print(f"  {scores[best]:.2f}  {names[best]}")
