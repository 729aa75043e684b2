"""Imports go one way: app → pages → views → service → engine, inside the engine as `docs/architecture.md` draws it; and
only the engine's process ever loads torch.

Directions are read off the source (imports inside functions and for types count); what gets loaded is seen in fresh
interpreters.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ("app", "pages", "views", "service", "engine")
"""A layer may import itself (pages may not) and what comes after it."""

HEAVY = ("torch", "transformers", "safetensors.torch")
WEB = ("streamlit", "starlette", "fastapi", "plotly", "uvicorn")


def layer_files(layer: str) -> list[Path]:
    return [ROOT / "app.py"] if layer == "app" else sorted((ROOT / layer).rglob("*.py"))


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str) -> set[str]:
    """Every module an import statement names, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {node.module or "", *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def forbidden(layer: str, source: str) -> set[str]:
    """What `source`, a file of `layer`, imports against the direction."""
    before = ORDER[: ORDER.index(layer) + (layer == "pages")]
    return {name for name in imported(source) if name.partition(".")[0] in before}


def modules_of(folder: Path) -> dict[str, set[str]]:
    """Every module below a folder of ours, and which of them it imports: the file a name comes from, or the module it
    is."""
    files = {module_of(file): file.read_text("utf-8") for file in sorted(folder.rglob("*.py"))}
    return {module: from_files(source, files) - {module} for module, source in files.items()}


def from_files(source: str, known: Collection[str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name.name}" for name in node.names]
        for name in names:
            found |= {name} if name in known else {name.rpartition(".")[0]} & set(known)
    return found


def drawn(title: str) -> set[tuple[str, str]]:
    """The arrows of the picture below a title of `docs/architecture.md`."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    picture = text[text.index(f"## {title}") :].split("```mermaid", 1)[1].split("```", 1)[0]
    return set(re.findall(r"^  (\w+) --> (\w+)$", picture, re.MULTILINE))


def below(arrows: set[tuple[str, str]], package: str) -> set[str]:
    """All that a package may import from: what its arrows lead to, near and far."""
    near = {to for start, to in arrows if start == package}
    return near.union(*(below(arrows, one) for one in near))


def loaded(modules: list[str], unwanted: tuple[str, ...]) -> list[str]:
    """Which of `unwanted` are loaded in a fresh interpreter that imports `modules`."""
    code = f"import importlib, sys\nfor m in {modules!r}: importlib.import_module(m)\n"
    code += f"print(*sorted(set(sys.modules) & set({unwanted!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.parametrize("layer", ORDER)
def test_no_file_imports_against_the_direction(layer: str) -> None:
    wrong = {
        module_of(file): found for file in layer_files(layer) if (found := forbidden(layer, file.read_text("utf-8")))
    }
    assert wrong == {}


@pytest.mark.parametrize("folder", ["engine", "service", "views"])
def test_no_file_imports_in_a_circle(folder: str) -> None:
    try:
        TopologicalSorter(modules_of(ROOT / folder)).prepare()
    except CycleError as error:
        pytest.fail(f"in a circle: {' → '.join(error.args[1])}")


def test_the_engine_is_as_the_picture_draws_it() -> None:
    arrows, used = drawn("Inside the engine"), set()
    for module, others in modules_of(ROOT / "engine").items():
        used |= {(package(module), package(other)) for other in others if package(module) != package(other)}
    used = {pair for pair in used if "__main__" not in pair}
    assert {(start, to) for start, to in used if to not in below(arrows, start)} == set(), "against the picture"
    assert arrows - used == set(), "drawn, but nobody imports so"


def test_every_package_of_the_engine_says_what_lives_there() -> None:
    for folder in sorted({file.parent for file in (ROOT / "engine").rglob("*.py")}):
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
        assert len(said.splitlines()) >= 3, folder.name


def package(module: str) -> str:
    """`run` of `engine.run.turn`, `settings` of `engine.settings`."""
    return module.split(".")[1] if "." in module else module


def test_the_layers_are_as_the_picture_draws_them() -> None:
    assert drawn("The layers") == set(pairwise(ORDER))


@pytest.mark.slow
def test_the_app_side_never_loads_torch() -> None:
    modules, scripts = [], [*layer_files("app"), *layer_files("pages"), ROOT / "views" / "frame.py"]
    for file in [file for layer in ORDER[:-1] for file in layer_files(layer)]:
        # A script of Streamlit's runs when it is imported, so it is what it imports that is loaded here.
        names = filter(ours, imported(file.read_text("utf-8"))) if file in scripts else [module_of(file)]
        modules += names
    assert modules
    assert loaded(modules, HEAVY) == []


def ours(name: str) -> bool:
    """Whether `name` is one of our own modules (and not something inside one)."""
    path = ROOT.joinpath(*name.split("."))
    return name.partition(".")[0] in ORDER and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


@pytest.mark.slow
def test_the_engine_never_loads_the_web() -> None:
    modules = [module_of(file) for file in layer_files("engine") if file.stem != "__main__"]
    assert "engine.process" in modules
    assert loaded(modules, WEB) == []


def test_the_engine_for_the_pages_loads_neither() -> None:
    assert loaded(["engine", "engine.weights", "engine.words", "engine.trace"], (*HEAVY, *WEB, "numpy")) == []


@pytest.mark.parametrize(
    ("layer", "source", "found"),
    [
        ("engine", "def f():\n    from service import runs", {"service", "service.runs"}),
        ("pages", "from pages.lab import x", {"pages.lab", "pages.lab.x"}),
        ("views", "import pages", {"pages"}),
        ("service", "from engine.trace import Token", set()),
    ],
)
def test_the_guard_sees_what_it_guards(layer: str, source: str, found: set[str]) -> None:
    assert forbidden(layer, source) == found


def test_the_guard_sees_circles() -> None:
    files = {"a.b": "from a.c import x", "a.c": "if TYPE_CHECKING:\n    from a import b"}
    graph = {module: from_files(source, files) for module, source in files.items()}
    assert graph == {"a.b": {"a.c"}, "a.c": {"a.b"}}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def test_the_guard_sees_what_is_loaded() -> None:
    assert loaded(["email.message"], ("email", "plotly")) == ["email"]
