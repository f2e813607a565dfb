"""Nothing outside tasks/ tells one task from another: it asks the task, by a method of `Task`."""

import ast

from tests.test_architecture import imports, own_files


def named_tasks(files: dict[str, str]) -> list[str]:
    """Files outside tasks/ that know one task from another. They should ask the task, by a method of `Task`."""
    tasks = {
        node.name
        for path, source in files.items()
        if path.startswith("tasks/") and path != "tasks/task.py"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        if any(isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == "kind" for one in node.body)
    }
    complaints = []
    for path, source in files.items():
        if path.startswith("tasks/"):
            continue
        for line, target in imports(path, source):
            if target[:2] == ("bertie", "tasks") and target[-1] in tasks:
                complaints.append(f"{path}:{line}: imports {target[-1]}")
    return complaints


def test_tasks_are_not_told_apart_outside_their_folder() -> None:
    assert named_tasks(own_files()) == []


def test_a_file_that_knows_one_task_is_found() -> None:
    files = {
        "tasks/ranking.py": 'class Rank(Task):\n    kind: Literal["rank"] = "rank"\n',
        "train/a.py": "from bertie.tasks.ranking import Rank\n",
        "train/b.py": "from bertie.tasks.task import Task\n",
    }
    assert named_tasks(files) == ["train/a.py:1: imports Rank"]
