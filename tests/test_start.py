"""The one command, without a network and without installing anything: what it decides, says and hands on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from importlib.metadata import version
from pathlib import Path

import pytest

import start

ROOT = Path(__file__).parent.parent


class Runs(list[list[str]]):
    """Stands for `start.run`: keeps the commands; `status` is what they end with, by a word in them."""

    status: dict[str, int]

    def __call__(self, *command: object, **options: object) -> int:
        words = [str(part) for part in command]
        self.append(words)
        return next((status for word, status in self.status.items() if word in words), 0)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    runs.status = {}
    monkeypatch.setattr(start, "run", runs)
    return runs


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Runs) -> Path:
    """A clone without an environment; its Python appears once `run` is asked for it."""
    for name, text in {"requirements.txt": "torch==1.0 # why\n", "pyproject.toml": "a = 1\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(start, "ROOT", tmp_path)
    monkeypatch.setattr(start, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(start, "PYTHON", tmp_path / ".venv" / "python")
    monkeypatch.setattr(start, "sentence", lambda key, **values: key)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "python").touch()
    return tmp_path


def test_the_environment_is_made_once(fresh: Path, runs: Runs) -> None:
    start.environment(False, "")
    assert [step[-1] for step in runs] == [str(start.VENV), start.PIP, "requirements.txt"]
    runs.clear()
    start.environment(False, "")
    assert runs == []
    (fresh / "requirements.txt").write_text("torch==2.0\n")
    start.environment(False, "")
    assert runs, "other pins are installed"


def test_tests_need_more(fresh: Path, runs: Runs) -> None:
    start.environment(False, "")
    runs.clear()
    start.environment(True, "")
    assert runs[-1][-4:] == ["-r", "requirements.txt", "--group", "test"]
    runs.clear()
    start.environment(True, "")
    assert runs == []


def test_torch_can_come_from_another_index(fresh: Path, runs: Runs) -> None:
    start.environment(False, "https://example.org/cpu")
    assert runs[-2][-3:] == ["torch==1.0", "--index-url", "https://example.org/cpu"]


def test_an_environment_of_another_python_is_made_anew(fresh: Path, runs: Runs) -> None:
    (start.VENV / "pyvenv.cfg").write_text("home = /x\nversion = 3.9.1\n")
    start.environment(False, "")
    assert "--clear" in runs[0]


@pytest.mark.parametrize(("failing", "said"), [("venv", "no_venv"), ("-r", "install_failed")])
def test_what_fails_is_said_and_tried_again(
    fresh: Path, runs: Runs, capsys: pytest.CaptureFixture[str], failing: str, said: str
) -> None:
    runs.status = {failing: 1}
    with pytest.raises(start.Stop):
        start.environment(False, "")
    assert capsys.readouterr().out.splitlines()[-1] == said
    runs.clear()
    runs.status = {}
    start.environment(False, "")
    assert runs


def test_a_step_that_takes_long_says_so(fresh: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, object]] = []
    twice = threading.Event()

    def tell(key: str, **values: object) -> None:
        if key == "going_on":
            heard.append(values)
        if len(heard) >= 2:
            twice.set()

    def install(*command: object, **options: object) -> int:
        (fresh / ".venv" / "library").write_bytes(bytes(3_000_000))
        heard.clear()  # the next may still tell of a file that was half there
        twice.clear()
        assert twice.wait(60)
        return 0

    monkeypatch.setattr(start, "EVERY", 0.001)
    monkeypatch.setattr(start, "tell", tell)
    monkeypatch.setattr(start, "run", install)
    with start.going_on():
        start.run("pip")
    assert heard[-1]["mb"] == 3


@pytest.mark.parametrize(
    ("system", "gpu", "index", "said"),
    [
        ("Linux", None, "", ["download_size 2.9", "cpu_build 2.9"]),
        ("Linux", "/usr/bin/nvidia-smi", "", ["download_size 2.9"]),
        ("Linux", None, "https://example.org/cpu", ["download_size 0.4"]),
        ("Darwin", None, "", ["download_size 0.3"]),
    ],
)
def test_the_size_is_said_first(
    monkeypatch: pytest.MonkeyPatch, system: str, gpu: str | None, index: str, said: list[str]
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(start, "tell", lambda key, gb="", **values: heard.append(f"{key} {gb}".strip()))
    monkeypatch.setattr(start.platform, "system", lambda: system)
    monkeypatch.setattr(shutil, "which", lambda name: gpu)
    monkeypatch.setattr(start.Path, "exists", lambda self: False)
    assert start.announce_download(False, index) == index, "where nobody can answer nobody is asked"
    assert heard == said


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody sits at a Linux machine without a graphics card; what they are about to type, line by line."""
    typed: list[str] = []

    def input_of(asked: str) -> str:
        assert "2.9 GB" in asked and "0.4 GB" in asked
        if not typed:
            raise EOFError
        return typed.pop(0)

    monkeypatch.setattr("builtins.input", input_of)
    monkeypatch.setattr(start, "interactive", lambda: True)
    monkeypatch.setattr(start.platform, "system", lambda: "Linux")
    monkeypatch.setattr(start.shutil, "which", lambda name: None)
    monkeypatch.setattr(start.Path, "exists", lambda self: False)
    return typed


@pytest.mark.parametrize(
    ("lines", "index", "wrong"),
    [
        ([""], "", 0),
        ([], "", 0),
        (["https://example.org/cpu"], "https://example.org/cpu", 0),
        (["  --index-url https://example.org/cpu "], "https://example.org/cpu", 0),
        (["cpu", "y", "https://example.org/cpu"], "https://example.org/cpu", 2),
    ],
)
@pytest.mark.parametrize("spoken", ["en_GB.UTF-8", "zh_CN.UTF-8"])
def test_who_can_answer_is_asked_for_the_build(
    person: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spoken: str,
    lines: list[str],
    index: str,
    wrong: int,
) -> None:
    monkeypatch.setenv("LC_ALL", spoken)
    person.extend(lines)
    assert start.announce_download(False, "") == index
    said = capsys.readouterr().out
    assert "2.9 GB" in said and "0.4 GB" in said and "--torch-index" in said, "both sizes, before anything is fetched"
    assert said.count(start.sentence("cpu_no_address")) == wrong and person == []


def test_who_gave_an_address_is_not_asked(person: list[str]) -> None:
    person.append("https://example.org/other")
    assert start.announce_download(False, "https://example.org/cpu") == "https://example.org/cpu"
    assert person == ["https://example.org/other"]


def test_the_pasted_address_is_where_torch_comes_from(fresh: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "announce_download", lambda test, index: "https://example.org/cpu")
    start.environment(False, "")
    assert runs[-2][-3:] == ["torch==1.0", "--index-url", "https://example.org/cpu"]


def test_nobody_answers_where_the_input_is_no_terminal() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import start; sys.exit(start.interactive())"
    assert subprocess.run([sys.executable, "-c", code], check=False, stdin=subprocess.DEVNULL).returncode == 0


def test_an_old_python_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    info = namedtuple("info", "major minor micro")
    monkeypatch.setattr(sys, "version_info", info(3, 10, 0))
    assert start.main([]) == 1
    assert "3.11" in capsys.readouterr().out


@pytest.mark.parametrize(("spoken", "expected"), [("zh_CN.UTF-8", "zh"), ("en_GB.UTF-8", "en"), ("C", "en")])
def test_it_speaks_the_systems_language(monkeypatch: pytest.MonkeyPatch, spoken: str, expected: str) -> None:
    monkeypatch.setenv("LC_ALL", spoken)
    assert start.language() == expected


def test_further_arguments_are_pytests_own(capsys: pytest.CaptureFixture[str]) -> None:
    options, rest = start.parse(["test", "-k", "luna", "-x", "tests/engine"])
    assert options.task == "test" and rest == ["-k", "luna", "-x", "tests/engine"]
    with pytest.raises(SystemExit) as ended:
        start.parse(["setup", "--prot", "1"])
    assert ended.value.code == 2 and "--prot" in capsys.readouterr().err


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, runs: Runs) -> None:
    """Serving only notes what it would run; changes of the environment are undone."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(os, "chdir", lambda folder: None)
    monkeypatch.setattr(start, "WINDOWS", True)
    monkeypatch.setattr(start, "environment", lambda *_: None)
    monkeypatch.setattr(start, "weights", lambda *_: None)
    monkeypatch.setattr(start, "own_address", lambda: "192.0.2.7")


def test_the_page_is_for_this_machine_only(served: None, runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ.pop("OPEN_BOOK_EXAM_LAN", None)
    assert start.main(["--port", "8765", "--dtype", "float32"]) == 0
    assert runs[-1][2:] == [
        "streamlit", "run", "app.py", "--server.port", "8765", "--server.address", "127.0.0.1"
    ]  # fmt: skip
    assert os.environ["OPEN_BOOK_EXAM_DTYPE"] == "float32" and "OPEN_BOOK_EXAM_LAN" not in os.environ
    said = capsys.readouterr().out
    assert "http://127.0.0.1:8765" in said and "192.0.2.7" not in said


def test_the_class_is_let_in_when_asked(
    served: None, runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start.main(["--lan", "--model", str(tmp_path / ".." / tmp_path.name)]) == 0
    assert runs[-1][-1] == "0.0.0.0" and os.environ["OPEN_BOOK_EXAM_LAN"] == "1"
    assert os.environ["OPEN_BOOK_EXAM_MODEL"] == str(tmp_path.resolve())
    assert f"http://192.0.2.7:{start.PORT}" in capsys.readouterr().out


def test_where_it_can_it_becomes_the_server(served: None, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []

    def execv(program: str, command: list[str]) -> None:
        assert program == command[0] == str(start.PYTHON)
        became.append(command)
        raise SystemExit(0)

    monkeypatch.setattr(start, "WINDOWS", False)
    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        start.main([])
    assert became[0][1:5] == ["-m", "streamlit", "run", "app.py"]


def test_ctrl_c_ends_it_without_a_traceback(served: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "serve", interrupt)
    assert start.main([]) == 130


def test_weights_that_are_here_are_not_asked_for(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path))
    name = "smollm2-135m-instruct"
    start.weights(name, False)
    assert [step[3:5] for step in runs] == [["fetch", name], ["prepare", name]]
    assert "93 MB" in capsys.readouterr().out
    with pytest.raises(start.Stop):
        start.weights("gemma-3-270m", False)
    (tmp_path / "models" / name).mkdir(parents=True)
    (tmp_path / "models" / name / "source.json").touch()
    runs.clear()
    start.weights(name, False)
    start.weights(str(tmp_path), False)
    assert runs == []


def test_all_checks_run_and_the_first_failure_counts(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "find_browser", lambda: "/a/browser")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(start, "scripts_checked", lambda: 5)
    runs.status = {"mypy": 3, "pytest": 4}
    assert start.test(["-k", "luna"]) == 3
    assert [step[2] for step in runs] == ["ruff", "ruff", "mypy", "pytest"] and runs[-1][3:] == ["-k", "luna"]
    assert os.environ["OPEN_BOOK_EXAM_BROWSER"] == "/a/browser"
    runs.status = {"pytest": 4}
    assert start.test(["-k", "luna"]) == 5, "the types of the page's scripts count, too"


def test_the_scripts_types_are_checked_with_the_pinned_compiler_fetched_once(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "VENV", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: f"/a/{name}")
    runs.status = {"install": 6}
    assert start.scripts_checked() == 6 and len(runs) == 1, "what could not be fetched checks nothing"
    assert runs[0][-1].startswith("typescript@") and start.sentence("no_typescript") in capsys.readouterr().out
    runs.clear()
    runs.status = {"-p": 2}
    assert start.scripts_checked() == 2 and [step[0] for step in runs] == ["/a/npm", "/a/node"]
    compiler = Path(runs[-1][1])
    compiler.parent.mkdir(parents=True)
    compiler.touch()
    runs.clear()
    start.scripts_checked()
    assert [step[0] for step in runs] == ["/a/node"]


def test_without_npm_a_sentence_says_what_is_not_checked(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert start.scripts_checked() == 0 and runs == []
    assert capsys.readouterr().out.strip() == start.sentence("no_npm")


def test_quick_runs_style_and_what_takes_no_seconds(served: None, runs: Runs) -> None:
    runs.status = {"pytest": 4}
    assert start.main(["test", "--quick", "-k", "luna"]) == 4
    assert [step[2] for step in runs] == ["ruff", "ruff", "pytest"]
    assert runs[-1][3:] == ["--ignore=tests/e2e", "-q", "-m", "not slow", "-k", "luna"]
    with pytest.raises(SystemExit):
        start.parse(["--quick"])


@pytest.mark.parametrize(("browser", "others", "status"), [(0, 0, 0), (1, 0, 1), (0, 3, 3)])
def test_side_by_side_everything_is_run_and_shown(
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    browser: int,
    others: int,
    status: int,
) -> None:
    """A Python stands for pytest: it says which tests it would have run and ends as it is told."""
    program = f"import sys; print('beside', sys.argv[1:]); sys.exit({others})"
    popen = subprocess.Popen
    monkeypatch.setattr(start, "SIDE_BY_SIDE", True)
    monkeypatch.setattr(start, "find_browser", lambda: "/a/browser")
    monkeypatch.setattr(start, "scripts_checked", lambda: 0)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **how: popen([sys.executable, "-c", program, *command[3:]], **how)
    )
    runs.status = {"tests/e2e/test_compare.py": browser}
    assert start.test([]) == status
    here, said = runs[-1][3:], capsys.readouterr().out
    assert 5 < len(here) < len(list((ROOT / "tests" / "e2e").glob("test_*.py")))
    assert all(f"'--ignore={file}'" in said and (ROOT / file).is_file() for file in here)
    assert said.count("--ignore") == len(here), "each test is in one of the two"
    start.test(["-k", "luna"])
    assert runs[-1][3:] == ["-k", "luna"], "who asks for some gets those"


def test_an_installed_browser_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setattr(start, "BROWSER_PLACES", ("{NOT_THERE}/x", "{LOCALAPPDATA}/chrome.exe"))
    assert start.find_browser() is None
    (tmp_path / "chrome.exe").touch()
    assert start.find_browser() == str(tmp_path / "chrome.exe")


def test_every_requirement_is_pinned_has_a_reason_and_is_what_runs_here() -> None:
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line and line[0] != "#"]
    for line in lines:
        found = re.fullmatch(r"([\w-]+)==([\w.]+)\s+# \S.+", line)
        assert found, line
        assert version(found[1]).partition("+")[0] == found[2]


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import start; start.parse([])"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
