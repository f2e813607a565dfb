"""Digests of what the command line computes: a safety net for changes that must not change any result.

    python tools/digests.py --out runs/digests-before.json           # before the change
    python tools/digests.py --compare runs/digests-before.json       # after it: exit code 1 if anything differs
    python tools/digests.py --only 'finetune tag*' --compare runs/digests-before.json

Every case below is one command line, run in a process of its own on tiny generated data. Its result (weights, token
ids, vocabulary, vectors or answers) is reduced to one digest that depends on values, never on the names of tensors.
`--old` translates the flags to their former spellings, for code from before they were renamed. Which code runs is
decided as usual, so PYTHONPATH=/some/checkout/src selects another checkout.

Digests are only comparable between runs on the same machine with the same version of torch.
"""

import argparse
import fnmatch
import hashlib
import importlib.util
import json
import os
import platform
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

# --- What is run -----------------------------------------------------------------------------------------------------
# A line is the name of a case, two spaces or more, and its command; it may go on in indented lines. $WORDS are
# abbreviations. Folders that a case makes end in a slash, which shows what another case needs. Data are made below.

TABLE = """
$PRETRAIN    --size tiny --steps 6 --max-length 32 --batch-tokens 256 --lr 0.002
$FINETUNE    --epochs 2 --batch 8 --max-length 32 --lr 0.001
$LINES       --document line --keep-duplicates --keep-near-duplicates --paragraphs off --workers 1
$REVIEWS     --base bert/ --train reviews.tsv --epochs 2 --batch 8 --max-length 32 --lr 0.001

recipes                 recipes --json
vocab wordpiece         vocab train texts.txt --kind wordpiece --size 500 --out wordpiece/
vocab byte-bpe          vocab train texts.txt --kind byte-bpe --size 500 --out byte-bpe/
vocab unigram           vocab train texts.txt --kind unigram --size 300 --out unigram/
vocab characters        vocab train texts.txt --kind characters --size 500 --out characters/
vocab words             vocab train texts.jsonl --column body --kind words --size 500 --cased --out words/
corpus                  corpus build texts.txt --tokenizer wordpiece/ --workers 1 --out corpus/
corpus byte-bpe         corpus build texts.txt --tokenizer byte-bpe/ --language en --workers 1 --out corpus-bpe/
corpus unigram          corpus build texts.txt --tokenizer unigram/ --unicode nfkc --workers 1 --out corpus-unigram/
corpus json             corpus build texts.jsonl --column body --tokenizer wordpiece/ --workers 1 --out corpus-json/
corpus add              corpus add corpus-json/ english.txt --workers 1
corpus english          corpus build english.txt --tokenizer wordpiece/ $LINES --out english/
corpus chinese          corpus build chinese.txt --tokenizer wordpiece/ $LINES --out chinese/
corpus freeze           corpus freeze corpus/ --recipe bert --duplicate-factor 2 --max-length 32 --out frozen/
corpus show             corpus show corpus/ 0 --mask whole-word --json

pretrain bert           pretrain --recipe bert --corpus corpus/ $PRETRAIN --out bert/
pretrain bert-wwm       pretrain --recipe bert-wwm --corpus corpus/ $PRETRAIN --out bert-wwm/
pretrain spanbert       pretrain --recipe spanbert --corpus corpus/ $PRETRAIN --out spanbert/
pretrain roberta        pretrain --recipe roberta --corpus corpus-bpe/ $PRETRAIN --out roberta/
pretrain albert         pretrain --recipe albert --corpus corpus-unigram/ $PRETRAIN --out albert/
pretrain electra        pretrain --recipe electra --corpus corpus/ $PRETRAIN --out electra/
pretrain distilbert     pretrain --recipe distilbert --teacher bert/ --corpus corpus/ $PRETRAIN --out distilbert/
pretrain xlm            pretrain --recipe xlm --corpus english/ --translations chinese/ $PRETRAIN --out xlm/
pretrain xlnet          pretrain --recipe xlnet --corpus corpus-unigram/ $PRETRAIN --out xlnet/
pretrain modernbert     pretrain --recipe modernbert --corpus corpus-bpe/ $PRETRAIN --out modernbert/
pretrain bilstm         pretrain --recipe bilstm --corpus corpus/ $PRETRAIN --out bilstm/
pretrain twoway         pretrain --recipe twoway --corpus corpus/ $PRETRAIN --out twoway/
pretrain four layers    pretrain --recipe bert --size mini --corpus corpus/ --steps 2 --max-length 32 --batch-tokens 256
                        --out mini/
pretrain whole-word     pretrain --recipe bert --mask whole-word --corpus corpus/ $PRETRAIN --out whole-word/
pretrain n-gram         pretrain --recipe bert --mask n-gram --mask-rate 0.2 --corpus corpus/ $PRETRAIN --out n-gram/
pretrain order          pretrain --recipe bert --sentences sop --corpus corpus/ $PRETRAIN --out order/
pretrain curriculum     pretrain --recipe bert --size tiny --corpus corpus/ --steps 6 --curriculum 16:0.5,32:0.5
                        --seed 1 --batch-tokens 256 --micro-tokens 128 --out curriculum/
pretrain options        pretrain --recipe bert --size tiny --corpus corpus/ --tokens 1k --max-length 16
                        --batch-tokens 256 --ramp-from 64 --ramp-share 0.5 --schedule cosine --warmup 0.2 --clip 0.5
                        --weight-decay 0.1 --out options/
pretrain static masks   pretrain --recipe bert --static-masks 1 --corpus english/ $PRETRAIN --out static/
pretrain frozen         pretrain --recipe bert --corpus frozen/ $PRETRAIN --out from-frozen/
pretrain continued      pretrain --base bert/ --corpus english/ --steps 4 --max-length 32 --batch-tokens 256
                        --out continued/
pretrain two sittings   pretrain --recipe bert --size tiny --corpus corpus/ --steps 80 --save-every 2 --max-length 32
                        --batch-tokens 256 --out two-sittings/

finetune classify       finetune classify --dev reviews-dev.tsv $REVIEWS --out classify/
finetune multi          finetune classify --multi --base bert/ --train topics.csv --dev topics-dev.csv $FINETUNE
                        --out multi/
finetune aspects        finetune aspects --aspect taste --aspect price --base bert/ --train aspects.csv
                        --dev aspects-dev.csv $FINETUNE --out aspects/
finetune pair           finetune pair --base bert/ --train pairs.tsv --dev pairs-dev.tsv $FINETUNE --out pair/
finetune similarity     finetune similarity --base bert/ --train scored.jsonl --dev scored-dev.jsonl $FINETUNE
                        --out similarity/
siamese scored          finetune similarity --siamese --sizes 64,32 --base bert/ --train scored.jsonl
                        --dev scored-dev.jsonl $FINETUNE --out scored/
siamese cosent          finetune similarity --siamese --loss cosent --base bert/ --train scored.jsonl $FINETUNE
                        --out cosent/
siamese labels          finetune similarity --siamese --base bert/ --train pairs.tsv --dev pairs-dev.tsv $FINETUNE
                        --out labels/
siamese pairs           finetune similarity --siamese --base bert/ --train two.jsonl --dev two-dev.jsonl $FINETUNE
                        --out two/
siamese triplets        finetune similarity --siamese --base bert/ --train triplets.jsonl --dev triplets-dev.jsonl
                        $FINETUNE --out triplets/
siamese margin          finetune similarity --siamese --loss triplet --base bert/ --train triplets.jsonl $FINETUNE
                        --out margin/
siamese texts           finetune similarity --siamese --base bert/ --train single.jsonl $FINETUNE --out single/
finetune tag            finetune tag --base bert/ --train tags.conll --dev tags-dev.conll $FINETUNE --out tag/
finetune tag crf        finetune tag --crf --base bert/ --train tags.conll --dev tags-dev.conll $FINETUNE --out tag-crf/
finetune spaces         finetune spaces --recipe bert --size tiny --train lines.txt --dev lines-dev.txt $FINETUNE
                        --out spaces/
finetune answer         finetune answer --stride 8 --base bert/ --train squad.json --dev squad-dev.json
                        --epochs 2 --batch 8 --max-length 64 --lr 0.001 --out answer/
finetune answer chinese  finetune answer --chinese --longest-answer 4 --base bert/ --train asked.json
                        --dev asked-dev.json $FINETUNE --out answer-zh/
finetune choice         finetune choice --base bert/ --train choice.jsonl --dev choice-dev.jsonl $FINETUNE --out choice/
finetune rank           finetune rank --base bert/ --train ranked.tsv --dev ranked-dev.tsv $FINETUNE --out rank/
finetune two tasks      finetune classify --dev reviews-dev.tsv --also tag:tags.conll:tags-dev.conll $REVIEWS
                        --out both/
finetune columns        finetune classify --base bert/ --train aspects.csv --column text=text --column label=price
                        $FINETUNE --out columns/
finetune two sittings   finetune classify --base bert/ --train reviews.tsv --epochs 20 --batch 8 --max-length 32
                        --save-every 2 --out finetune-two-sittings/

ways features linear    finetune classify --features concat4 --top linear --base mini/ --train reviews.tsv
                        --dev reviews-dev.tsv $FINETUNE --out linear/
ways features lstm      finetune classify --features concat4 --top lstm --base mini/ --train reviews.tsv
                        --dev reviews-dev.tsv $FINETUNE --out lstm/
ways features tag       finetune tag --features sum4 --top lstm --base mini/ --train tags.conll $FINETUNE
                        --out tag-lstm/
ways lora               finetune classify --lora 4 $REVIEWS --out lora/
ways lora options       finetune tag --lora 2 --lora-alpha 3 --lora-dropout 0.1 --lora-on query,value --base bert/
                        --train tags.conll $FINETUNE --out tag-lora/
ways freeze embeddings  finetune classify --freeze embeddings $REVIEWS --out frozen-embeddings/
ways freeze layers      finetune classify --freeze 1 $REVIEWS --out frozen-layer/
ways freeze all         finetune classify --freeze all $REVIEWS --out frozen-all/
ways unfreeze           finetune classify --unfreeze-every 2 $REVIEWS --out unfrozen/
ways layer decay        finetune classify --layer-decay 0.8 $REVIEWS --out layer-decay/
ways noise              finetune classify --noise 0.3 $REVIEWS --out noise/
ways noise confusable   finetune classify --noise 0.3 --confusable groups.txt --base bert/ --train opinions.tsv
                        $FINETUNE --out confused/
ways fgm                finetune classify --adversarial fgm $REVIEWS --out fgm/
ways vat                finetune classify --adversarial vat --epsilon 2 $REVIEWS --out vat/
ways normalize          finetune classify --corrections table.txt --dev reviews-dev.tsv $REVIEWS --out normalized/
ways seeds              finetune classify --seeds 2 --dev reviews-dev.tsv $REVIEWS --out seeds/
ways from nothing       finetune classify --recipe bert --size tiny --tokenizer wordpiece/ --train reviews.tsv
                        --dev reviews-dev.tsv --eval-every 2 --patience 1 $FINETUNE --out fresh/

fill                    fill bert/ 'the cat saw the [MASK] in the [MASK].' --top 3 --json
predict text            predict classify/ 'the food was gud and the waiter was kind'
predict normalized      predict normalized/ 'the food was gud and the waiter was kind'
predict short           predict classify/ --input lines-dev.txt --max-length 8
predict candidates      predict rank/ 'where is the cat?' 'in the house' 'in the garden' 'a red book'
predict passage         predict answer/ 'who saw the horse?' 'the old farmer saw the horse in the garden.'
predict words           predict tag-crf/ 'Anna Bell  went to Rome.'
evaluate both: tag      evaluate both/ --task tag --data tags-dev.conll --json
evaluate both: classify  evaluate both/ --task classify --data reviews-dev.tsv --json
evaluate noise          evaluate noise/ --data reviews-dev.tsv --noise 0,0.3 --json
evaluate features       evaluate lstm/ --data reviews-dev.tsv --json
evaluate lora           evaluate lora/ --data reviews-dev.tsv --json
predict features        predict lstm/ --input reviews-dev.tsv
predict lora            predict lora/ --input reviews-dev.tsv
embed                   embed bert/ lines.txt --out vectors.npy
embed options           embed mini/ texts.jsonl --column body --pooling first --layers concat4 --normalize
                        --max-length 16 --out first.npy
embed siamese           embed scored/ lines.txt --size 32 --out siamese.npy
whiten                  whiten bert/ lines.txt --size 8 --out white/
vocab extend            vocab extend bert/model --words new-words.txt --out extended/
embed white             embed white/ lines-dev.txt --out white.npy
"""
EACH_RECIPE = """
classify on {recipe}    finetune classify --base {recipe}/ --train reviews.tsv --epochs 1 --batch 8 --max-length 32
                        --out on-{recipe}/
embed with {recipe}     embed on-{recipe}/ lines-dev.txt --out {recipe}.npy
"""
EACH_TASK = """
evaluate {task}         evaluate {task}/ --data {rows} --json
predict {task}          predict {task}/ --input {rows} --output {task}-answers.jsonl
"""
RECIPES = ("roberta", "albert", "electra", "distilbert", "xlm", "xlnet", "modernbert", "bilstm", "twoway")
TASKS = {  # the run folder, and the rows on which it is measured and which it answers
    "classify": "reviews-dev.tsv",
    "multi": "topics-dev.csv",
    "aspects": "aspects-dev.csv",
    "pair": "pairs-dev.tsv",
    "similarity": "scored-dev.jsonl",
    "scored": "scored-dev.jsonl",
    "labels": "pairs-dev.tsv",
    "triplets": "triplets-dev.jsonl",
    "tag": "tags-dev.conll",
    "tag-crf": "tags-dev.conll",
    "spaces": "lines-dev.txt",
    "answer": "squad-dev.json",
    "answer-zh": "asked-dev.json",
    "choice": "choice-dev.jsonl",
    "rank": "ranked-dev.tsv",
}
TWO_SITTINGS = ("pretrain two sittings", "finetune two sittings")  # stopped after a checkpoint, then run again

# What --old makes of the words above, by verb: patterns and what was typed before.
FORMER_WORDS = {
    "vocab": {"--column": "--field", r"--words (\S+)": r"\1 --from list"},
    "corpus": {
        "--column": "--field",
        "--unicode": "--normalise",
        "--max-length": "--length",
        "--keep-duplicates": "--no-duplicates",
        "--keep-near-duplicates": "--no-near-duplicates",
    },
    "pretrain": {"--base": "--from", "--max-length": "--length"},
    "finetune": {"--tokenizer": "--vocab", "--max-length": "--length", "--corrections": "--normalise"},
    "evaluate": {"--max-length": "--length"},
    "predict": {"--max-length": "--length"},
    "embed": {"--column": "--field"},
    "whiten": {"--column": "--field", r"^whiten (\S+)": r"whiten \1 --data"},
    "quickstart": {"--language": "--lang"},
}


def cases_of(table: str) -> dict[str, str]:
    """The commands by name, without abbreviations."""
    lines = re.sub(r"\n +", " ", table).split("\n")
    found = dict(re.split(r"  +", line, maxsplit=1) for line in lines if line)
    short = {name: words for name, words in found.items() if name.startswith("$")}
    return {
        name: re.sub(r"\$[A-Z]+", lambda at: short[at[0]], words) for name, words in found.items() if name not in short
    }


CASES = cases_of(TABLE)
for _recipe in RECIPES:
    CASES |= cases_of(EACH_RECIPE.format(recipe=_recipe))
for _task, _rows in TASKS.items():
    CASES |= cases_of(EACH_TASK.format(task=_task, rows=_rows))

# --- The data --------------------------------------------------------------------------------------------------------

NAMES, PLACES = ["Anna Bell", "Peter", "Maria Stone", "John"], ["Rome", "Paris", "New York", "London"]
WHO = ["the cat", "a small dog", "the old farmer", "my sister", "the teacher", "a young bird", "the doctor", "she"]
DID = ["saw", "carried", "found", "painted", "forgot", "liked", "followed", "described"]
WHAT = ["the horse", "a red book", "the river", "an apple", "the letter", "a wooden box", "the moon", "a song"]
WHERE = ["in the garden", "at night", "near the house", "before breakfast", "on the train", "under the bridge"]
GOOD, BAD = ["good", "gud", "excellent", "kind", "warm"], ["bad", "awful", "cold", "slow", "poor"]
ZH_WHO, ZH_DID = ["小猫", "老师", "我的姐姐", "医生", "农夫"], ["看见了", "找到了", "喜欢", "忘记了"]
ZH_WHAT, ZH_WHERE = ["一本红色的书", "那条河", "苹果", "月亮", "一封信"], ["在花园里", "在火车上", "晚上", "在学校"]
Row = dict[str, Any]


def sentence(rng: random.Random) -> str:
    return f"{rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHAT)} {rng.choice(WHERE)}."


def chinese(rng: random.Random) -> str:
    return f"{rng.choice(ZH_WHO)}{rng.choice(ZH_WHERE)}{rng.choice(ZH_DID)}{rng.choice(ZH_WHAT)}。"


def write_data(folder: Path) -> None:
    rng = random.Random(0)
    documents = [" ".join(sentence(rng).capitalize() for _ in range(rng.randint(3, 8))) for _ in range(80)]
    documents += ["".join(chinese(rng) for _ in range(4)) for _ in range(12)]
    documents += [f"The food was {rng.choice(GOOD)}, and {rng.choice(NAMES)} went to {rng.choice(PLACES)}." * 2]
    documents += [documents[3], documents[5].replace("the", "that", 1)]  # a repeated one, and a nearly repeated one
    text(folder / "texts.txt", (f"{document}\n" for document in documents))
    text(folder / "texts.jsonl", (json.dumps({"id": 1, "body": one}) for one in documents[:40]))
    text(folder / "english.txt", (sentence(rng) for _ in range(40)))
    text(folder / "chinese.txt", (chinese(rng) for _ in range(40)))
    text(folder / "table.txt", ["good: gud, goood", "花园: 花圆"])
    text(folder / "groups.txt", ["书 本 木", "河 何 苹", "看 着", "火 水"])
    text(folder / "new-words.txt", ["breakfasttable", "moonriver", "花呗"])
    for suffix, count in (("", 32), ("-dev", 14)):
        rows = [labelled_row(rng, number) for number in range(count)]
        table(folder / f"reviews{suffix}.tsv", rows, sentence="review", label="mood")
        table(folder / f"opinions{suffix}.tsv", rows, sentence="chinese", label="mood")
        table(folder / f"topics{suffix}.csv", rows, text="review", labels="topics")
        table(folder / f"aspects{suffix}.csv", rows, text="review", taste="mood", price="price")
        table(folder / f"pairs{suffix}.tsv", rows, sentence1="first", sentence2="second", label="relation")
        table(folder / f"ranked{suffix}.tsv", rows, query="query", candidate="first", relevance="relevant")
        table(folder / f"scored{suffix}.jsonl", rows, text="first", other="second", score="score")
        table(folder / f"two{suffix}.jsonl", rows, text="first", other="second")
        table(folder / f"triplets{suffix}.jsonl", rows, anchor="first", positive="second", negative="review")
        table(folder / f"single{suffix}.jsonl", rows, text="first")
        table(folder / f"choice{suffix}.jsonl", rows, text="first", candidates="endings", label="ending")
        text(folder / f"lines{suffix}.txt", (row["first"] for row in rows))
        text(folder / f"tags{suffix}.conll", (row["tagged"] for row in rows))
        squad(folder / f"squad{suffix}.json", [row["asked"] for row in rows])
        squad(folder / f"asked{suffix}.json", [row["asked in chinese"] for row in rows])


def labelled_row(rng: random.Random, number: int) -> Row:
    """The columns of all tasks."""
    is_good, is_same = number % 2 == 0, number % 3 > 0
    word, who, did, what = rng.choice(GOOD if is_good else BAD), rng.choice(WHO), rng.choice(DID), rng.choice(WHAT)
    name, place = rng.choice(NAMES), rng.choice(PLACES)
    first = f"{who} {did} {what} {rng.choice(WHERE)}."
    passage = f"{sentence(rng)} {first} {sentence(rng)}"
    found, passage_zh = rng.choice(ZH_WHAT), chinese(rng)
    inside = [{"text": what, "answer_start": passage.index(what)}] if number % 5 else []
    tags = [(part, "B-PER" if at == 0 else "I-PER") for at, part in enumerate(name.split())] + [
        ("went", "O"),
        ("to", "O"),
    ]
    tags += [(part, "B-LOC" if at == 0 else "I-LOC") for at, part in enumerate(place.split())] + [(".", "O")]
    return {
        "review": f"the {rng.choice(['food', 'waiter', 'room'])} was {word}, {rng.choice(WHO)} said",
        "chinese": chinese(rng) + ("很好" if is_good else "不好"),
        "mood": "pos" if is_good else "neg",
        "topics": ",".join(sorted(rng.sample(["food", "room", "staff"], number % 3 + 1))),
        "price": ["low", "middle", "high"][number % 3],
        "first": first,
        "second": f"{who} {rng.choice(DID)} {what} today." if is_same else sentence(rng),
        "relation": ["neutral", "same", "near"][number % 3],
        "score": round(rng.uniform(3, 5) if is_same else rng.uniform(0, 2), 2),
        "query": f"where is {WHAT[number // 4 % 8]}?",
        "relevant": int(number % 4 == 1),
        "endings": [sentence(rng) for _ in range(3)],
        "ending": number % 3,
        "tagged": "".join(f"{part} {tag}\n" for part, tag in tags),
        "asked": {"question": f"what was it that {who} {did}?", "context": passage, "answers": inside},
        "asked in chinese": {
            "question": "有什么?",
            "context": passage_zh + found + "。" + chinese(rng),
            "answers": [{"text": found, "answer_start": (passage_zh + found).index(found)}],
        },
    }


def text(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def table(path: Path, rows: Iterable[Row], **columns: str) -> None:
    """The columns by the names that they get in the file."""
    chosen = [{name: row[column] for name, column in columns.items()} for row in rows]
    if path.suffix == ".jsonl":
        text(path, (json.dumps(row, ensure_ascii=False) for row in chosen))
    elif path.suffix == ".tsv":
        text(path, ("\t".join(map(str, row)) for row in [list(columns), *(one.values() for one in chosen)]))
    else:
        text(
            path, (",".join(f'"{cell}"' for cell in row) for row in [list(columns), *(one.values() for one in chosen)])
        )


def squad(path: Path, asked: list[Row]) -> None:
    paragraphs = [
        {"context": one["context"], "qas": [{"id": str(number), "is_impossible": not one["answers"], **one}]}
        for number, one in enumerate(asked)
    ]
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}), "utf-8")


# --- Digests ---------------------------------------------------------------------------------------------------------


def sha(*parts: bytes | str) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part.encode() if isinstance(part, str) else part)
    return total.hexdigest()


def tensor_digests(path: Path) -> Iterator[str]:
    """Of a safetensors file: eight bytes of length, a JSON header, the data."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    for name, about in header.items():
        if name != "__metadata__":
            first, last = about["data_offsets"]
            yield sha(about["dtype"], str(about["shape"]), content[start + first : start + last])


def weights_digest(files: Iterable[Path]) -> str:
    return sha(*sorted(digest for path in files for digest in tensor_digests(path)))


def model_digests(folder: Path) -> dict[str, str]:
    """Of all weights of a run or model folder, and, as a case of their own, of its checkpoints with their moments."""
    files = sorted(folder.rglob("*.safetensors"))
    checkpoints = [path for path in files if "checkpoints" in path.parts]
    found = {"": weights_digest(path for path in files if path not in checkpoints)}
    if len(files) == len(checkpoints):
        raise ValueError(f"there are no weights in {folder.name}")
    return found | ({", checkpoints": weights_digest(checkpoints)} if checkpoints else {})


def corpus_digests(folder: Path) -> dict[str, str]:
    """Of the token ids, and, as a case of their own, of all numbers: bounds of words and sentences, or masks."""
    columns: dict[str, list[Any]] = {}
    for path in sorted(folder.glob("*.arrow")):
        with pa.OSFile(str(path)) as file:
            content = pa.ipc.open_file(file).read_all()
        for name in content.column_names:
            columns.setdefault(name, []).extend(content[name].to_pylist())
    numbers = {name: sha(json.dumps(rows)) for name, rows in columns.items() if not isinstance(rows[0], str)}
    ids = next(numbers[name] for name in ("ids", "tokens") if name in numbers)
    return {"": ids, ", all columns": sha(*sorted(numbers.values()))}


def vocabulary_digest(folder: Path) -> str:
    """Of the pieces by id, with the scores of a unigram model, and of the merges of a BPE."""
    model = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
    pieces = model["vocab"]
    if isinstance(pieces, dict):
        pieces = sorted(pieces, key=lambda piece: pieces[piece])
    merges = [one if isinstance(one, str) else " ".join(one) for one in model.get("merges") or ()]
    return sha(canonical([pieces, merges]))


def canonical(value: Any) -> str:
    return json.dumps(rounded(value), sort_keys=True, ensure_ascii=False)


def rounded(value: Any) -> Any:
    """With floats of six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def answers_digest(printed: str) -> str:
    answers = [json.loads(line) for line in printed.splitlines() if line.strip()]
    if not answers:
        raise ValueError("nothing was answered")
    return sha(*map(canonical, answers))


def vectors_digest(path: Path) -> str:
    vectors = np.load(path)
    return sha(str(vectors.dtype), str(vectors.shape), np.ascontiguousarray(vectors).tobytes())


def digests_of(words: list[str], printed: str, folder: Path) -> dict[str, str]:
    """Of what a command made, by what is added to the name of its case."""
    verb, out = words[0], folder / (out_of(words) or ".")
    if words[:2] == ["corpus", "add"]:
        return corpus_digests(folder / words[2])
    match verb:
        case "vocab":
            models = model_digests(out) if words[1] == "extend" else {}
            return {"": vocabulary_digest(out), **{f", weights{name}": one for name, one in models.items()}}
        case "corpus" if words[1] != "show":
            return corpus_digests(out)
        case "pretrain" | "finetune" | "whiten":
            return model_digests(out)
        case "embed":
            return {"": vectors_digest(out)}
        case "predict" if "--output" in words:
            return {"": answers_digest((folder / words[words.index("--output") + 1]).read_text("utf-8"))}
    return {"": answers_digest(printed)}


# --- Running ---------------------------------------------------------------------------------------------------------


def out_of(words: list[str]) -> str | None:
    return words[words.index("--out") + 1] if "--out" in words else None


def needed(names: Iterable[str]) -> list[str]:
    """The cases and all that they depend on, in the order of the table."""
    makers = {out: name for name, line in CASES.items() if (out := out_of(shlex.split(line)))}
    wanted: set[str] = set()

    def want(name: str) -> None:
        wanted.add(name)
        for word in shlex.split(CASES[name]):
            maker = makers.get(word.partition("/")[0] + "/")
            if "/" in word and maker is not None and maker not in wanted:
                want(maker)

    for name in names:
        want(name)
    return [name for name in CASES if name in wanted]


def as_typed(words: list[str], old: bool) -> list[str]:
    line = shlex.join(words)
    for pattern, former in FORMER_WORDS.get(words[0], {}).items() if old else ():
        line = re.sub(rf"{pattern}(?= |$)", former, line)
    return [word.removesuffix("/") for word in shlex.split(line)]


def start(words: list[str], folder: Path) -> subprocess.Popen[str]:
    paths = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    settings = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "bertie", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **settings}, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    printed, said = process.communicate()
    if process.returncode:
        raise RuntimeError(([""] + [line for line in said.splitlines() if line.strip()])[-1].strip())
    return printed


def stop_after_checkpoint(process: subprocess.Popen[str], out: Path) -> None:
    while process.poll() is None and not any(out.rglob("*.safetensors")):
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    if process.returncode == 0 or not out.exists():
        raise RuntimeError(f"it could not be stopped: {said.strip().splitlines()[-1:]}")


def run_case(name: str, folder: Path, old: bool) -> dict[str, str]:
    """Its digests by name; what fails is told in place of the digest."""
    words = shlex.split(CASES[name])
    given = as_typed(words, old)
    try:
        if name in TWO_SITTINGS:
            stop_after_checkpoint(start(given, folder), folder / str(out_of(words)))
        printed = finish(start(given, folder))
        return {name + added: digest for added, digest in digests_of(words, printed, folder).items()}
    except Exception as error:  # whatever it is, the other cases go on
        return {name: f"failed: {error}".replace(f"{folder}/", "")}


def machine() -> dict[str, Any]:
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text()) if sys.platform == "linux" else None
    found = importlib.util.find_spec("bertie")
    packages = {name: version(name) for name in ("torch", "tokenizers", "numpy")}
    about = {"cpu": cpu[1] if cpu else platform.processor(), "threads": 1, "python": platform.python_version()}
    return {**about, **packages, "bertie": found.origin if found else None}


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    told = []
    for name in dict.fromkeys([*before, *now]):
        if name not in now:
            told.append(f"missing: {name}")
        elif name not in before:
            told.append(f"new: {name}")
        elif now[name].startswith("failed"):
            told.append(f"{name}: {now[name]}")
        elif now[name] != before[name]:
            told.append(f"different: {name}")
    return told


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="the file to write")
    parser.add_argument("--compare", type=Path, help="a file of an earlier run: exit code 1 where a case differs")
    parser.add_argument("--only", default="*", help="cases of this pattern, like 'pretrain *'; what they need runs too")
    parser.add_argument("--old", action="store_true", help="use the former spellings of the flags")
    parser.add_argument("--folder", type=Path, help="work here and keep everything; it must be empty")
    given = parser.parse_args()
    before = json.loads(given.compare.read_text("utf-8")) if given.compare else None
    chosen = fnmatch.filter(CASES, given.only)
    found: dict[str, str] = {}
    about, began = machine(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="digests-") as temporary:
        folder = (given.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        write_data(folder)
        for name in needed(chosen):
            at = time.monotonic()
            digests = run_case(name, folder, given.old)
            failed = next((f"  {one}" for one in digests.values() if one.startswith("failed")), "")
            sys.stderr.write(f"{time.monotonic() - at:5.1f} s  {name}{failed}\n")
            found.update(digests if name in chosen else {})
            about["seconds"] = round(time.monotonic() - began)
            if given.out:  # as it goes: a run that is stopped leaves what it has
                given.out.parent.mkdir(parents=True, exist_ok=True)
                given.out.write_text(json.dumps({"machine": about, "cases": found}, indent=1) + "\n", "utf-8")
    num_failed = sum(digest.startswith("failed") for digest in found.values())
    say(f"{len(found)} digests, {num_failed} failed, {about['seconds']} s")
    if before is None:
        return 0
    for what in ("cpu", "torch"):
        if before["machine"][what] != about[what]:
            say(f"careful: {what} was {before['machine'][what]}, and is {about[what]} now")
    # A digest belongs to the case whose name it begins with: "pretrain bert, checkpoints".
    compared = {name: one for name, one in before["cases"].items() if fnmatch.fnmatch(name.split(",")[0], given.only)}
    told = differences(compared, found)
    say("\n".join(told) if told else f"all {len(found)} are as in {given.compare}")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
