"""Named entities in Chinese text: a tagger that reads characters, with a CRF.

    python examples/chinese_ner.py [MODEL]

MODEL is any Chinese BERT folder. Without one the tagger starts from random weights.
"""

import sys

import bertie

PEOPLE, PLACES = ["王小明", "李娜", "张伟"], ["北京", "上海", "成都"]


def row(person: str, place: str, verb: str) -> dict[str, list[str]]:
    words = [*person, *verb, *place]
    tags = ["B-PER", *["I-PER"] * (len(person) - 1), *"O" * len(verb), "B-LOC", *["I-LOC"] * (len(place) - 1)]
    return {"words": words, "tags": tags}


rows = [row(person, place, verb) for verb in ("住在", "去了", "喜欢") for person in PEOPLE for place in PLACES]
if len(sys.argv) > 1:
    start = {"base": sys.argv[1]}
else:
    vocabulary = bertie.train_vocab(["".join(one["words"]) for one in rows], size=300, min_frequency=1)
    start = {"recipe": "bert", "size": "tiny", "tokenizer": vocabulary.folder}
run = bertie.finetune("tag", crf=True, train=rows, dev=rows, epochs=15, batch=4, **start)

print(run.metrics)
for entity in run.predict([{"words": list("李娜住在上海")}])[0]["entities"]:
    print(entity["type"], entity["text"])
