"""Imports go one way: app → pages → views → service → engine; and only the engine's process ever loads torch.

Directions are read off the source (imports inside functions count); what gets loaded is seen in fresh interpreters.
"""

from __future__ import annotations

import ast
import subprocess
import sys
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


def test_the_guard_sees_what_is_loaded() -> None:
    assert loaded(["email.message"], ("email", "plotly")) == ["email"]
