"""The one command: `python start.py` makes the environment, fetches the weights and serves the page.

    python start.py            everything that is needed, then the page; Ctrl+C ends it
    python start.py setup      everything that is needed, then exit: for a laptop that will be offline
    python start.py test …     what tests need besides, then all tests; further arguments go to pytest
    python start.py test --quick …  only style and what is tested within a minute, without a browser

What is there already is not made again, so a second start takes no time. Only the standard library is used here.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import locale
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
WINDOWS = os.name == "nt"
PYTHON = VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")
PIP = "pip==26.3"  # takes up broken downloads again, and knows dependency groups
PORT = 8501

GIGABYTES = {"Linux": 2.9, "Darwin": 0.3, "Windows": 0.3}
"""What pip downloads, measured with these pins on Python 3.11; on Linux nine tenths of it belong to CUDA."""
CPU_GIGABYTES = 0.4
TEST_GIGABYTES = 0.1

EVERY = 20.0
"""Seconds after which a step that takes long says that it goes on."""

SIDE_BY_SIDE = True
"""Whether tests run in two processes at the same time, each with an app and a model for the browser's tests."""
SHARE_HERE = 0.55
"""Which share of the browser tests' files is run beside all others, so that both processes take about as long."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
BROWSER_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "{PROGRAMFILES}/Google/Chrome/Application/chrome.exe",
    "{PROGRAMFILES(X86)}/Google/Chrome/Application/chrome.exe",
    "{LOCALAPPDATA}/Google/Chrome/Application/chrome.exe",
    "{PROGRAMFILES(X86)}/Microsoft/Edge/Application/msedge.exe",
)


def language() -> str:
    """`zh` where the system speaks Chinese, else `en`."""
    names = [os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    spoken = next((name for name in names if name), None) or locale.getlocale()[0] or ""
    return "zh" if spoken.lower().startswith(("zh", "chinese")) else "en"


def tell(key: str, **values: object) -> None:
    """One sentence of `assets/words/*/start.json`. Not by `engine.words`: an old Python must get its sentence too."""
    print(sentence(key, **values), flush=True)


def sentence(key: str, **values: object) -> str:
    words = json.loads((ROOT / "assets" / "words" / language() / "start.json").read_text("utf-8"))
    return str(words[key]).format(**values)


class Stop(Exception):
    """The end, with a sentence that is already told."""


def run(*command: object, **options: object) -> int:
    """A command in the project's folder; its exit status."""
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=False, **options).returncode  # type: ignore[call-overload,no-any-return]


def environment(test: bool, torch_index: str) -> None:
    """`.venv` with the pinned requirements, unless a stamp says that this has been done."""
    groups = ["--group", "test"] if test else []
    pins = (ROOT / "requirements.txt").read_bytes() + ((ROOT / "pyproject.toml").read_bytes() if test else b"")
    wanted = f"{platform.python_version()} {hashlib.sha256(pins).hexdigest()}"
    stamp = VENV / f"installed-{'test' if test else 'run'}.txt"
    if PYTHON.is_file() and stamp.is_file() and stamp.read_text("utf-8") == wanted:
        return
    torch_index = announce_download(test, torch_index)
    tell("making")
    if run(sys.executable, "-m", "venv", *([] if same_python() else ["--clear"]), VENV):
        tell("no_venv")
        raise Stop
    pip = (PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    torch = next(line.split()[0] for line in pins.decode().splitlines() if line.startswith("torch=="))
    steps = [[PIP], [torch, "--index-url", torch_index] if torch_index else [], ["-r", "requirements.txt", *groups]]
    with going_on():
        for step in filter(None, steps):
            if run(*pip, *step):
                tell("install_failed")
                raise Stop
    stamp.write_text(wanted, "utf-8")


@contextmanager
def going_on() -> Iterator[None]:
    """Meanwhile tells how long it has taken and how much is in place: pip is silent while it unpacks."""
    begun, over = time.monotonic(), threading.Event()

    def report() -> None:
        while not over.wait(EVERY):
            tell("going_on", seconds=round(time.monotonic() - begun), mb=round(size_of(VENV) / 1e6))

    reporting = threading.Thread(target=report, daemon=True)
    reporting.start()
    try:
        yield
    finally:
        over.set()
        reporting.join()


def size_of(folder: Path) -> int:
    """Bytes of all files in it; one that is gone meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - tens of thousands of files
            except OSError:
                continue
    return total


def same_python() -> bool:
    """Whether `.venv` was made by a Python of this release (3.12, say); one of another is made anew."""
    try:
        lines = (VENV / "pyvenv.cfg").read_text("utf-8").splitlines()
    except OSError:
        return True
    release = ".".join(platform.python_version_tuple()[:2])
    return any(line.replace(" ", "").startswith(f"version={release}.") for line in lines)


def announce_download(test: bool, torch_index: str) -> str:
    """How much will be downloaded, before it is. Returns the index to take torch from: the given one, or what was
    pasted where there is a choice (empty: pip's own)."""
    system, more = platform.system(), TEST_GIGABYTES if test else 0
    most = CPU_GIGABYTES if torch_index else GIGABYTES.get(system, max(GIGABYTES.values()))
    tell("download_size", folder=VENV, gb=f"{most + more:.1f}")
    gpu = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()
    if system != "Linux" or gpu or torch_index:
        return torch_index
    sizes = {"gb": f"{most + more:.1f}", "cpu_gb": f"{CPU_GIGABYTES + more:.1f}"}
    tell("cpu_build", **sizes)
    return ask_for_index(**sizes) if interactive() else ""


def interactive() -> bool:
    """Whether somebody sits there who can answer."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


def ask_for_index(**sizes: str) -> str:
    """What was pasted, if it is an address. Enter alone, or an input that ends, takes the CUDA build; what is neither
    is asked for again, since gigabytes hang on it."""
    while True:
        try:
            answer = input(sentence("cpu_ask", **sizes)).split()
        except EOFError:
            return ""
        address = answer[-1] if answer else ""  # of a pasted line `--index-url ADDRESS`, the address
        if not address or address.startswith(("https://", "http://")):
            return address
        tell("cpu_no_address")


def weights(name: str, accept_terms: bool) -> None:
    """The model's weights, ready to load. A folder is left as it is; a hub name is fetched."""
    from engine.weights import MODELS, fetched, present

    if (name in MODELS and present(name)) or Path(name).is_dir():
        return
    command = (PYTHON, "-m", "engine.weights")
    lang = ("--lang", language())
    if name in MODELS and not fetched(name):
        model = MODELS[name]
        if model.terms and not accept_terms:
            tell("terms", model=model.title, terms=model.terms)
            raise Stop
        tell("weights_size", model=model.title, licence=model.licence, mb=round(model.bytes / 1e6))
    if run(*command, "fetch", name, *lang, *(["--accept-terms"] if accept_terms else [])):
        raise Stop
    if name in MODELS and run(*command, "prepare", name, *lang):
        raise Stop


def serve(options: argparse.Namespace) -> int:
    """The page, until Ctrl+C."""
    chosen = {"MODEL": options.model, "DEVICE": options.device, "DTYPE": options.dtype, "LAN": "1" * options.lan}
    os.environ.update({f"OPEN_BOOK_EXAM_{name}": value for name, value in chosen.items() if value})
    if not free(options.port):
        tell("port_taken", port=options.port)
        return 1
    tell("address", url=f"http://127.0.0.1:{options.port}")
    if options.lan:
        tell("address_lan", url=f"http://{own_address()}:{options.port}")
    command = [str(PYTHON), "-m", "streamlit", "run", "app.py", "--server.port", str(options.port)]
    command += ["--server.address", "0.0.0.0" if options.lan else "127.0.0.1"]
    os.chdir(ROOT)
    if not WINDOWS:
        os.execv(command[0], command)  # becomes the server: a signal sent to this process reaches it
    return run(*command)


def free(port: int) -> bool:
    """Whether the page can have this port."""
    with socket.socket() as server:
        if not WINDOWS:  # a port that was in use a moment ago counts as free, as for the server itself
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True


def own_address() -> str:
    """This machine's address in its network. Nothing is sent: a datagram socket only looks up the way."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as looking:
        try:
            looking.connect(("192.0.2.1", 9))
        except OSError:
            return socket.gethostname()
        return str(looking.getsockname()[0])


def quick(arguments: list[str]) -> int:
    """Style, and every test that takes no seconds: what one runs after each change."""
    statuses = [run(PYTHON, "-m", "ruff", *check) for check in (("check", "."), ("format", "--check", "."))]
    statuses.append(run(PYTHON, "-m", "pytest", "--ignore=tests/e2e", "-q", "-m", "not slow", *arguments))
    return next(filter(None, statuses), 0)


def test(arguments: list[str]) -> int:
    """Style, types and all tests; the exit status of the first that fails."""
    if browser := find_browser() or install_browser():
        tell("browser_found", path=browser)
        os.environ["OPEN_BOOK_EXAM_BROWSER"] = browser
    checks = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",))
    statuses = [run(PYTHON, "-m", *check) for check in checks]
    statuses.append(scripts_checked())
    statuses.append(side_by_side() if SIDE_BY_SIDE and not arguments else run(PYTHON, "-m", "pytest", *arguments))
    return next(filter(None, statuses), 0)


def scripts_checked() -> int:
    """The types of the page's scripts, where there is npm; its exit status. What checks them is fetched once."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not (npm and node):
        tell("no_npm")
        return 0
    checker = ROOT / "tests" / "scripts"
    version = json.loads((checker / "package.json").read_text("utf-8"))["devDependencies"]["typescript"]
    place = VENV / f"typescript-{version}"
    compiler = place / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.is_file():
        tell("fetching_typescript", version=version)
        place.mkdir(exist_ok=True)
        if status := run(npm, "install", "--prefix", place, "--no-audit", "--no-fund", f"typescript@{version}"):
            tell("no_typescript")
            return status
    return run(node, compiler, "-p", checker)


def side_by_side() -> int:
    """The first files of browser tests here, beside them all others: what those said is shown when both are over."""
    files = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "e2e").glob("test_*.py"))
    here = files[: round(len(files) * SHARE_HERE)]
    others = [str(PYTHON), "-m", "pytest", *(f"--ignore={file}" for file in here), "-p", "no:cacheprovider"]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        beside = subprocess.Popen(others, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
        try:
            status = run(PYTHON, "-m", "pytest", *here)
            status = beside.wait() or status
        finally:
            beside.kill()
        said.seek(0)
        print(said.read(), flush=True)
    return status


def find_browser() -> str | None:
    """An installed browser of Chromium's kind."""
    places = [place.format_map(os.environ) for place in BROWSER_PLACES if _known_places(place)]
    found = [shutil.which(name) for name in BROWSERS] + [place for place in places if Path(place).is_file()]
    return next(filter(None, found), None)


def _known_places(place: str) -> bool:
    return not place.startswith("{") or place[1 : place.index("}")] in os.environ


def install_browser() -> str | None:
    """On Debian as root the system's own, with Chinese fonts; else (None) the one Playwright keeps for itself."""
    tell("browser_install")
    if not WINDOWS and os.geteuid() == 0 and shutil.which("apt-get"):
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-noto-cjk")
        if browser := find_browser():
            return browser
    if run(PYTHON, "-m", "playwright", "install", "chromium"):
        tell("browser_missing")
        raise Stop
    return None


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and, for tests, what is left for pytest."""
    from engine.weights import DEFAULT, MODELS

    known = ", ".join(MODELS)
    parser = argparse.ArgumentParser(prog="start.py", description=sentence("about"), allow_abbrev=False)
    parser.add_argument(
        "task", nargs="?", choices=("serve", "setup", "test"), default="serve", help=sentence("arg_task")
    )
    parser.add_argument("--port", type=int, default=PORT, help=sentence("arg_port"))
    parser.add_argument("--model", default=DEFAULT, metavar="NAME|FOLDER", help=sentence("arg_model", known=known))
    parser.add_argument("--accept-terms", action="store_true", help=sentence("arg_accept_terms"))
    parser.add_argument("--device", default="", help=sentence("arg_device"))
    parser.add_argument("--dtype", default="", help=sentence("arg_dtype"))
    parser.add_argument("--lan", action="store_true", help=sentence("arg_lan"))
    parser.add_argument("--torch-index", default="", metavar="URL", help=sentence("arg_torch_index"))
    parser.add_argument("--quick", action="store_true", help=sentence("arg_quick"))
    options, rest = parser.parse_known_args(arguments)
    if options.task != "test" and (strange := rest + ["--quick"] * options.quick):
        parser.error(f"unrecognized arguments: {' '.join(strange)}")
    if Path(options.model).is_dir():
        options.model = str(Path(options.model).resolve())
    return options, rest


def main(arguments: list[str]) -> int:
    """Runs the task; the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a Windows console's own encoding knows no Chinese
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.version_info < (3, 11):  # noqa: UP036 - someone may well start it with an older one
        tell("too_old", version=platform.python_version())
        return 1
    os.environ.setdefault("PYTHONIOENCODING", "utf-8")  # so do those of what is started here
    options, rest = parse(arguments)
    try:
        environment(options.task == "test", options.torch_index)
        weights(options.model, options.accept_terms)
        if options.task == "test":
            return quick(rest) if options.quick else test(rest)
        if options.task == "setup":
            tell("ready")
            return 0
        return serve(options)
    except Stop:
        return 1
    except KeyboardInterrupt:
        print()
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
