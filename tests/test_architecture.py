"""The house rules, read from the syntax trees alone: nothing of bertie is imported here.

Every rule is a function from sources to complaints, and has a test that shows it can complain.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "bertie"

# The data flow. A layer may import itself and the layers before it. "bertie" is the package's own __init__,
# which may import anything.
LAYERS = (
    *("errors", "disk", "json_files", "freed_memory", "spec", "reporting", "devices", "batch", "machine", "peak"),
    *(
        "text",
        "data",
        "nn",
        "objectives",
        "tasks",
        "models",
        "inspection",
        "train",
        "compress",
        "search",
        "plugins",
        "jobs",
        "serve",
    ),
    "quickstart",
    *("bertie", "cli", "__main__"),
)
APART = {"nn": {"text", "data"}}
WITHOUT_TORCH = "text"

# The command line turns words into jobs and results into output. All else is below it, for Python and servers too.
TABLE_OF_VERBS, LONGEST_OF_CLI = "cli/app.py", 150
NOT_FOR_CLI = {"train", "tasks", "data", "nn", "objectives", "models"}

LONGEST_FILE = 400
MOST_ARGUMENTS = 12
# True wrappers: what they take is what another callable takes.
WRAPPERS = {
    ("spec.py", "replace"),
    ("reporting/events.py", "progress"),
    ("models/model.py", "__call__"),
    ("models/pretrained.py", "encode"),
    ("objectives/shared_pass.py", "__call__"),
    ("cli/plan.py", "plan"),
    *(("jobs/loaded_model.py", name) for name in ("predict", "evaluate")),
    *(("jobs/training/training_run.py", name) for name in ("predict", "evaluate", "encode", "fill")),
    *(("jobs/api.py", name) for name in ("pretrain", "finetune", "predict", "evaluate")),
    *(("jobs/job.py", name) for name in ("option", "of", "__pydantic_init_subclass__")),
    *(("cli/app.py", "__init__"), ("text/tokenizers/panics.py", "call")),
}

WITHOUT_FAMILIES = ("text", "data", "nn", "train")
FAMILIES = re.compile(
    r"bert(?!ie(?![a-z]))|xlnet|xlm|electra|distil(?!l)|minilm|longformer|reformer|transformer[-_ ]?xl|elmo(?![a-z])"
    r"|gpt|ulmfit|word2vec|fasttext|(?<![a-z])glove|textcnn",
    re.IGNORECASE,
)
# Names of the library `tokenizers` and of its file format, which cannot be said otherwise.
FOREIGN = re.compile(r"\b(BertNormalizer|BertPreTokenizer|BertProcessing|RobertaProcessing)\b")

MEANINGLESS = {"utils", "util", "helpers", "helper", "common", "misc"}


def own_files() -> dict[str, str]:
    """Path inside the package -> source."""
    return {str(file.relative_to(PACKAGE)): file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}


def all_files() -> dict[str, str]:
    """Path inside the repository -> source, tests and scripts included."""
    folders = ("src", "tests", "examples", "benchmarks", "experiments")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def module_of(path: str) -> tuple[str, ...]:
    """nn/stack.py -> ("bertie", "nn", "stack"); nn/__init__.py -> ("bertie", "nn")."""
    parts = ("bertie", *Path(path).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def layer_of(module: tuple[str, ...]) -> str:
    return module[1] if len(module) > 1 else "bertie"


def imports(path: str, source: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every import anywhere in the file, as line and dotted parts; of `from a import b` both a and a.b may be meant."""
    package = module_of(path) if path.endswith("__init__.py") else module_of(path)[:-1]
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            start = (*base, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                yield node.lineno, (*start, alias.name)


def imports_down(files: dict[str, str]) -> list[str]:
    complaints = []
    for path, source in files.items():
        own = layer_of(module_of(path))
        if own not in LAYERS:
            complaints.append(f"{path}: no layer of this name is in the plan")
        if own not in LAYERS or own == "bertie":
            continue
        for line, target in imports(path, source):
            if target[0] != "bertie":
                continue
            # `from bertie import load` takes a name out of the package's own __init__.
            layer = target[1] if len(target) > 1 and target[1] in LAYERS else "bertie"
            if LAYERS.index(layer) > LAYERS.index(own) or layer in APART.get(own, set()):
                complaints.append(f"{path}:{line}: {own} imports {layer}")
    return complaints


def torch_reached(files: dict[str, str], layer: str = WITHOUT_TORCH) -> list[str]:
    """Files of a layer that import torch, also through other files of bertie."""
    modules = {module_of(path): {target for _, target in imports(path, source)} for path, source in files.items()}
    reached = {module for module, targets in modules.items() if any(target[0] == "torch" for target in targets)}
    while True:
        further = {
            module
            for module, targets in modules.items()
            if module not in reached and any(target in reached or target[:-1] in reached for target in targets)
        }
        if not further:
            return [".".join(module) for module in sorted(reached) if layer_of(module) == layer]
        reached |= further


def star_imports(files: dict[str, str]) -> list[str]:
    return [
        f"{path}:{line}: import *"
        for path, source in files.items()
        for line, target in imports(path, source)
        if target[-1] == "*"
    ]


def long_files(files: dict[str, str]) -> list[str]:
    counts = {path: len(source.splitlines()) for path, source in files.items()}
    return [f"{path}: {count} lines" for path, count in counts.items() if count > LONGEST_FILE]


def heavy_cli(files: dict[str, str]) -> list[str]:
    complaints = []
    for path, source in files.items():
        if Path(path).parts[0] != "cli":
            continue
        if path != TABLE_OF_VERBS and (count := len(source.splitlines())) > LONGEST_OF_CLI:
            complaints.append(f"{path}: {count} lines")
        targets = [
            (line, target) for line, target in imports(path, source) if target[0] == "bertie" and len(target) > 1
        ]
        complaints += [
            f"{path}:{line}: cli imports {target[1]}" for line, target in targets if target[1] in NOT_FOR_CLI
        ]
    return complaints


def functions(path: str, source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def wide_constructors(files: dict[str, str]) -> list[str]:
    complaints = []
    for path, source in files.items():
        for function in functions(path, source):
            given = function.args
            count = len([*given.posonlyargs, *given.args, *given.kwonlyargs]) - 1
            if function.name == "__init__" and count > MOST_ARGUMENTS:
                complaints.append(f"{path}:{function.lineno}: {count} arguments")
    return complaints


def open_signatures(files: dict[str, str]) -> list[str]:
    return [
        f"{path}:{function.lineno}: {function.name}(**{function.args.kwarg.arg})"
        for path, source in files.items()
        for function in functions(path, source)
        if function.args.kwarg and (path, function.name) not in WRAPPERS
    ]


def family_names(files: dict[str, str]) -> list[str]:
    return [
        f"{path}:{number}: {found[0]}"
        for path, source in files.items()
        if Path(path).parts[0] in WITHOUT_FAMILIES
        for number, line in enumerate([path, *source.splitlines()])
        if (found := FAMILIES.search(FOREIGN.sub("", line)))
    ]


def meaningless_names(files: dict[str, str]) -> list[str]:
    return [path for path in files if MEANINGLESS & set(Path(path).with_suffix("").parts)]


def untrue_tree(readme: str, folders: set[str]) -> list[str]:
    """The README's tree has one line per folder; what is not there yet says "to come"."""
    tree = re.search(r"^src/bertie/\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^ +(\w+)/ +(\S.*)$", tree[1] if tree else "", re.MULTILINE)
    told = {name: text.endswith("(to come)") for name, text in lines}
    missing = [f"{name}/ has no line" for name in sorted(folders - set(told))]
    modest = [f"{name}/ is there, but its line says that it is to come" for name in sorted(folders) if told.get(name)]
    boastful = [f"{name}/ is not there" for name, to_come in told.items() if not to_come and name not in folders]
    return missing + modest + boastful


# --- the rules hold


def test_imports_point_one_way() -> None:
    assert imports_down(own_files()) == []


def test_text_needs_no_torch() -> None:
    assert torch_reached(own_files()) == []


def test_nothing_imports_everything() -> None:
    assert star_imports(all_files()) == []


def test_every_file_is_read_in_one_sitting() -> None:
    assert long_files(all_files()) == []


def test_the_command_line_is_thin() -> None:
    assert heavy_cli(own_files()) == []


def test_no_constructor_is_missing_a_part() -> None:
    assert wide_constructors(own_files()) == []


def test_signatures_say_what_they_take() -> None:
    assert open_signatures(own_files()) == []


def test_no_family_is_named_below_the_models() -> None:
    assert family_names(own_files()) == []


def test_names_of_files_mean_something() -> None:
    assert meaningless_names(all_files()) == []


def test_the_readme_tells_the_tree() -> None:
    folders = {file.parent.name for file in PACKAGE.rglob("*.py") if file.parent != PACKAGE}
    assert untrue_tree((ROOT / "README.md").read_text(encoding="utf-8"), folders) == []


# --- and every rule can be broken


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("text/a.py", "from bertie.nn.stack import Stack", "text imports nn"),
        ("text/a.py", "def f():\n    import bertie.models", "text imports models"),
        ("text/a.py", "from ..nn import stack", "text imports nn"),
        ("text/deep/a.py", "from ...nn import stack", "text imports nn"),
        ("text/__init__.py", "from ..cli import app", "text imports cli"),
        ("errors.py", "from bertie import batch", "errors imports batch"),
        ("errors.py", "from . import machine", "errors imports machine"),
        ("models/a.py", "from bertie import load", "models imports bertie"),
        ("nn/a.py", "from bertie.text import tokens", "nn imports text"),
        ("nn/a.py", "from bertie import data", "nn imports data"),
        ("attic/a.py", "", "no layer"),
    ],
)
def test_an_import_down_is_seen(path: str, source: str, complaint: str) -> None:
    (found,) = imports_down({path: source})
    assert complaint in found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("nn/a.py", "from bertie.nn.stack import Stack\nfrom . import stack\nfrom bertie.errors import UserError"),
        (
            "models/a.py",
            "from bertie.text.tokenizers.tokens import Tokens\nimport bertie.nn\nimport torch\nfrom nn import x",
        ),
        ("__init__.py", "from bertie.serve import http\nfrom bertie.cli import app"),
        ("cli/a.py", "import bertie\nfrom bertie import load"),
    ],
)
def test_an_import_up_is_allowed(path: str, source: str) -> None:
    assert imports_down({path: source}) == []


def test_torch_is_seen_behind_another_file() -> None:
    files = {
        "batch.py": "from torch import Tensor",
        "data/a.py": "from bertie.batch import Batch",
        "text/plain.py": "import torchless",
        "text/direct.py": "import torch.nn.functional",
        "text/near.py": "from bertie.batch import Batch",
        "text/far.py": "from bertie.text import near",
    }
    assert torch_reached(files) == ["bertie.text.direct", "bertie.text.far", "bertie.text.near"]


def test_a_star_import_is_seen() -> None:
    assert len(star_imports({"a.py": "from b import *", "c.py": "from b import d"})) == 1


def test_a_long_file_is_seen() -> None:
    assert long_files({"short.py": "x = 1\n" * 400, "long.py": "x = 1\n" * 401}) == ["long.py: 401 lines"]


def test_a_heavy_command_line_is_seen() -> None:
    files = {
        "cli/app.py": "x = 1\n" * 200,
        "cli/long.py": "x = 1\n" * 151,
        "cli/short.py": "x = 1\n" * 150,
        "cli/a.py": "import bertie.train.run\nfrom bertie.jobs.job import Job\nfrom bertie import data, load",
        "cli/b.py": "def f():\n    from ..models import recipe",
        "jobs/a.py": "from bertie.train import run",
    }
    assert heavy_cli(files) == [
        "cli/long.py: 151 lines",
        "cli/a.py:1: cli imports train",
        "cli/a.py:3: cli imports data",
        "cli/b.py:2: cli imports models",
    ]


def test_a_wide_constructor_is_seen() -> None:
    def constructor(count: int) -> str:
        names = [f"a{number}" for number in range(count)]
        return f"class A:\n    def __init__(self, {', '.join(names[:5])}, *, {', '.join(names[5:])}): ..."

    complaints = wide_constructors({"good.py": constructor(12), "bad.py": constructor(13)})
    assert complaints == ["bad.py:2: 13 arguments"]


def test_an_open_signature_is_seen() -> None:
    files = {"spec.py": "def replace(**changes): ...\ndef build(**kwargs): ...", "a.py": "async def f(*rest): ..."}
    assert open_signatures(files) == ["spec.py:2: build(**kwargs)"]


@pytest.mark.parametrize(
    "line",
    [
        "class BertLayer: ...",
        "x = 'roberta'",
        "# as in ALBERT",
        "distilbert = 1",
        "# GPT-2's bytes",
        "# Transformer-XL",
    ],
)
def test_a_family_name_is_seen(line: str) -> None:
    assert len(family_names({"nn/a.py": f"x = 1\n{line}"})) == 1
    assert family_names({"models/a.py": line}) == []


def test_a_family_name_is_seen_in_a_file_name() -> None:
    assert family_names({"nn/bert.py": ""}) == ["nn/bert.py:0: bert"]


def test_words_that_are_no_family_are_allowed() -> None:
    words = "from bertie.errors import UserError  # transformers, a Transformer, distillation, BERTIE"
    assert family_names({"text/a.py": words}) == []
    assert family_names({"text/a.py": "normalizers.BertNormalizer()"}) == []
    assert len(family_names({"text/a.py": "class MyBertNormalizer: ..."})) == 1


def test_a_meaningless_name_is_seen() -> None:
    files = dict.fromkeys(["src/utils.py", "src/common/a.py", "src/commonsense.py"], "")
    assert meaningless_names(files) == ["src/utils.py", "src/common/a.py"]


def test_an_untrue_tree_is_seen() -> None:
    readme = (
        "# x\n```\nsrc/bertie/\n  nn/    the parts\n  text/  words (to come)\n  cli/   verbs\n```\n  data/  not here\n"
    )
    assert untrue_tree(readme, {"nn", "text", "data"}) == [
        "data/ has no line",
        "text/ is there, but its line says that it is to come",
        "cli/ is not there",
    ]
    assert untrue_tree(readme, {"nn", "cli"}) == []
