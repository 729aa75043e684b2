"""What was measured is kept per subject, survives a restart, and a damaged file is no result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service import kept
from service.kept import Kept

HERE = {"device_name": "a laptop", "threads": 2}


def test_results_are_kept_by_name_and_replaced(tmp_path: Path) -> None:
    store = Kept(tmp_path / "new")
    assert store.read(HERE) == {}
    told = store.put(HERE, "sum", {"rate": 1.5})
    assert told["rate"] == 1.5 and told["taken"].endswith("+00:00")
    store.put(HERE, "other", {"rate": 2.0})
    store.put(HERE, "sum", {"rate": 3.0})
    again = Kept(tmp_path / "new").read(HERE)
    assert {name: one["rate"] for name, one in again.items()} == {"sum": 3.0, "other": 2.0}
    assert list(again) == ["other", "sum"], "the newest is last"


def test_another_subject_has_results_of_its_own(tmp_path: Path) -> None:
    store = Kept(tmp_path)
    store.put(HERE, "sum", {"rate": 1})
    assert store.read({**HERE, "threads": 4}) == {}
    assert set(store.read(dict(reversed(HERE.items())))) == {"sum"}, "the order of what it depends on does not matter"


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"subject": {}, "results": {}}', '{"results": 3}', "[" * 100_000,
     json.dumps({"subject": HERE, "results": {"a": 3}}), json.dumps({"subject": HERE, "results": {"a": {"taken": 3}}})],
)  # fmt: skip
def test_a_damaged_file_counts_as_none_and_is_replaced(tmp_path: Path, content: str) -> None:
    store = Kept(tmp_path)
    store.put(HERE, "sum", {"rate": 1})
    (path,) = tmp_path.glob("*.json")
    path.write_text(content)
    assert store.read(HERE) == {}
    store.put(HERE, "new", {"rate": 2})
    assert set(store.read(HERE)) == {"new"}


def test_both_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_RESULTS", 3)
    monkeypatch.setattr(kept, "MAX_SUBJECTS", 2)
    store = Kept(tmp_path)
    for number in range(5):
        store.put(HERE, str(number), {})
    assert set(store.read(HERE)) == {"2", "3", "4"}
    for threads in range(3, 7):
        store.put({"threads": threads}, "x", {})
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(kept, "MAX_BYTES", 10)
    assert store.read({"threads": 6}) == {}


def test_a_folder_that_cannot_be_written_still_gives_the_result(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Kept(tmp_path / "file" / "inside").put(HERE, "sum", {"rate": 1})["rate"] == 1
