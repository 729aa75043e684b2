"""The simulation of disaggregation: cases worked out by hand, what holds for every crowd, what one alone takes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.disaggregation.costs import Costs, costs_of
from engine.disaggregation.desks import Exam, Setup
from engine.disaggregation.load import MIXES, Arrival, Lengths, arrivals, capacity, work
from engine.disaggregation.told import LOADS, SEEDS, Asked, over_loads, over_ratios, percentile, simulated
from engine.measure.fit import fit_growing

PLAIN = Costs(
    fixed=0, linear=0.001, square=0, lengths=(1, 1000), steps=((0.1, 0.1), (0.15, 0.15)), contexts=(1, 1000), note=1000
)
"""100 tokens are read in 0.1 s; a word takes 0.1 s alone and 0.15 s beside another; 8,000 bits a note."""
TWO = [Arrival(0.0, 100, 3), Arrival(0.15, 200, 3)]


def words(exam: Exam) -> list[list[float]]:
    return [[round(word, 9) for word in person.words] for person in exam.people]


def test_one_machine_by_hand_whoever_writes_waits_for_whoever_is_read() -> None:
    exam = Exam(PLAIN, Setup(machines=1), TWO)
    # First: read until 0.1, a word until 0.2; the second paper is read until 0.4, and only then comes its next word.
    assert words(exam) == [[0.1, 0.2, 0.5], [0.4, 0.6, 0.7]]
    first, second = exam.people
    assert first.pause == pytest.approx(0.3) and first.tpot == pytest.approx(0.2)
    assert second.ttft == pytest.approx(0.25) and second.began == pytest.approx(0.2)
    (machine,) = exam.machines
    assert [(person, tokens) for *_, person, tokens in machine.reads] == [(0, 100), (1, 200)]
    assert [(who, steps) for *_, who, steps in machine.writes] == [((0,), 1), ((0,), 1), ((1,), 2)]


def test_one_machine_by_hand_in_chunks() -> None:
    exam = Exam(PLAIN, Setup(machines=1, chunk=100), TWO)
    # Half of the second paper until 0.3, a word of the first, and the rest until 0.5: nobody writes any more.
    assert words(exam) == [[0.1, 0.2, 0.4], [0.5, 0.6, 0.7]]


def test_one_machine_by_hand_two_write_together() -> None:
    exam = Exam(PLAIN, Setup(machines=1), [Arrival(0.0, 100, 3), Arrival(0.0, 100, 2)])
    assert words(exam) == [[0.1, 0.3, 0.45], [0.2, 0.45]]


def test_no_more_write_together_than_were_measured() -> None:
    exam = Exam(PLAIN, Setup(machines=1), [Arrival(0.0, 100, 4)] * 3)
    # The third paper is begun only when the first answer is done.
    assert words(exam) == [[0.1, 0.3, 0.45, 0.6], [0.2, 0.45, 0.6, 0.8], [0.7, 0.9, 1.0, 1.1]]


def test_two_machines_by_hand_one_reads_and_one_writes() -> None:
    setup = Setup(machines=2, readers=1, bandwidth=8e6, latency=0.01)
    exam = Exam(PLAIN, setup, [*TWO, Arrival(0.15, 100, 2)])
    # Notes of 100 tokens travel 0.01 + 100 × 8,000 / 8,000,000 = 0.11 s; the third's wait for the second's.
    assert words(exam) == [[0.1, 0.31, 0.41], [0.35, 0.66, 0.76], [0.45, 0.86]]
    travels = [(round(a, 9), round(b, 9), person) for a, b, person in exam.travels]
    assert travels == [(0.1, 0.21, 0), (0.35, 0.56, 1), (0.56, 0.67, 2)]
    assert [person.reader for person in exam.people] == ["m1"] * 3 and [p.writer for p in exam.people] == ["m2"] * 3
    assert exam.people[0].ttft == pytest.approx(0.1), "the first word does not wait for the link"


def test_two_machines_by_hand_each_does_both() -> None:
    exam = Exam(PLAIN, Setup(machines=2), TWO)
    assert words(exam) == [[0.1, 0.2, 0.3], [0.35, 0.45, 0.55]], "nobody is in anybody's way"
    assert [person.reader for person in exam.people] == [person.writer for person in exam.people] == ["m1", "m2"]


COSTS = st.builds(
    Costs,
    fixed=st.floats(0, 0.1), linear=st.floats(1e-5, 0.01), square=st.floats(0, 1e-5), lengths=st.just((1, 600)),
    steps=st.lists(st.tuples(st.floats(0.001, 0.2), st.floats(0.001, 0.2)), min_size=2, max_size=5).map(tuple),
    contexts=st.just((1, 800)), note=st.integers(1, 10**6),
)  # fmt: skip
PEOPLE = st.lists(
    st.builds(Arrival, at=st.floats(0, 5), prompt=st.integers(1, 300), answer=st.integers(1, 12)),
    min_size=1,
    max_size=12,
).map(lambda people: sorted(people, key=lambda one: one.at))
SETUPS = st.builds(
    Setup, machines=st.just(3), readers=st.integers(0, 2), chunk=st.sampled_from([0, 64]),
    bandwidth=st.floats(1e6, 1e12), latency=st.floats(0, 0.1),
)  # fmt: skip
CLOSE = 1e-6


@given(COSTS, SETUPS, PEOPLE)
@settings(max_examples=80, deadline=None)
def test_everyone_is_served_once_and_no_work_is_lost(costs: Costs, setup: Setup, people: list[Arrival]) -> None:
    exam = Exam(costs, setup, people)
    for person, came in zip(exam.people, people, strict=True):
        assert (person.at, person.prompt, len(person.words)) == (came.at, came.prompt, came.answer)
        assert all(before < after for before, after in pairwise(person.words))
        assert person.began >= came.at - CLOSE and person.ttft >= costs.read(0, came.prompt) - CLOSE
    for machine in exam.machines:
        spans = sorted([span[:2] for span in machine.reads] + [span[:2] for span in machine.writes])
        assert all(after[0] >= before[1] - CLOSE for before, after in pairwise(spans)), "one thing at a time"
        assert all(1 <= len(who) <= costs.most for *_, who, _ in machine.writes)
    reads = [read for machine in exam.machines for read in machine.reads]
    for person in exam.people:
        assert sum(tokens for *_, number, tokens in reads if number == person.number) == person.prompt
        passes = [stop - start for start, stop, number, _ in reads if number == person.number]
        assert sum(passes) == pytest.approx(
            costs.read(0, person.prompt) + costs.fixed * (len(passes) - 1), rel=1e-6, abs=CLOSE
        )
    writes = [write for machine in exam.machines for write in machine.writes]
    assert sum(len(who) * steps for *_, who, steps in writes) == sum(one.answer - 1 for one in people)
    assert sum(steps for *_, steps in writes) == exam.steps


@given(COSTS, SETUPS, PEOPLE)
@settings(max_examples=60, deadline=None)
def test_notes_travel_once_and_one_after_another(costs: Costs, setup: Setup, people: list[Arrival]) -> None:
    exam = Exam(costs, setup, people)
    travelling = [person for person in exam.people if setup.readers and person.answer > 1]
    assert sorted(number for *_, number in exam.travels) == [person.number for person in travelling]
    assert all(after[0] >= before[1] - CLOSE for before, after in pairwise(exam.travels))
    for person in travelling:
        assert person.sent is not None and person.landed is not None
        expected = setup.latency + 8 * costs.note * person.prompt / setup.bandwidth
        assert person.landed - person.sent == pytest.approx(expected, rel=1e-6, abs=CLOSE)
        assert person.words[0] <= person.sent + CLOSE and person.landed <= person.words[1] + CLOSE
        others = [stop for start, stop, number in exam.travels if number != person.number and start < person.sent]
        waited_for = max([person.words[0], *others])
        assert person.sent == pytest.approx(waited_for, abs=CLOSE), "a free link is not left waiting"
        assert person.reader != person.writer
    if not setup.readers:
        assert all(person.reader == person.writer and person.sent is None for person in exam.people)


def usual() -> Costs:
    found = costs_of(
        [(16, 0.03), (64, 0.05), (192, 0.1), (384, 0.2), (576, 0.32)],
        {(1, 16): 0.019, (1, 704): 0.023, (2, 16): 0.024, (2, 704): 0.032, (8, 16): 0.036, (8, 704): 0.069},
        23040,
    )
    assert found
    return found


REAL = usual()
"""About what a laptop takes."""


@pytest.mark.parametrize("readers", [0, 1])
def test_alone_on_a_perfect_link_each_takes_what_one_takes(readers: int) -> None:
    people = [Arrival(1000.0 * k, one.prompt, one.answer) for k, one in enumerate(arrivals(1, "questions", 10, 3))]
    exam = Exam(REAL, Setup(machines=2, readers=readers, bandwidth=float("inf"), latency=0), people)
    for person in exam.people:
        assert person.ttft == pytest.approx(REAL.read(0, person.prompt))
        alone = sum(REAL.step(1, person.prompt + k) for k in range(1, person.answer))
        assert person.words[-1] - person.words[0] == pytest.approx(alone)
    assert exam.outside == exam.beyond == 0


def test_the_same_seed_brings_the_same_people_only_closer_together() -> None:
    one, again, closer = (arrivals(rate, "questions", 50, 7) for rate in (2.0, 2.0, 4.0))
    assert one == again and one != arrivals(2.0, "questions", 50, 8)
    assert [(a.prompt, a.answer) for a in closer] == [(a.prompt, a.answer) for a in one]
    assert [a.at for a in closer] == pytest.approx([a.at / 2 for a in one])
    assert simulated(REAL, Asked(seed=7)) == simulated(REAL, Asked(seed=7)) != simulated(REAL, Asked(seed=8))


@pytest.mark.parametrize("mix", MIXES)
def test_lengths_stay_where_they_were_measured(mix: str) -> None:
    prompt, answer = MIXES[mix]  # type: ignore[index]
    assert prompt.least >= 16 and prompt.most + answer.most <= 704 and prompt.most <= 576
    drawn = [one.prompt for one in arrivals(1, mix, 400, 1)]  # type: ignore[arg-type]
    assert prompt.least <= min(drawn) and max(drawn) <= prompt.most
    assert sum(drawn) / len(drawn) == pytest.approx(prompt.mean(), rel=0.15)
    assert sorted(drawn)[200] == pytest.approx(prompt.median, rel=0.15)


def test_what_was_not_measured_is_counted_and_not_made_up() -> None:
    people = [Arrival(0.0, 700, 6), Arrival(100.0, 100, 2)]
    exam = Exam(REAL, Setup(machines=1), people)
    assert (exam.beyond, exam.outside, exam.steps) == (1, 1, 6), "positions 701 to 704 were measured, 705 was not"
    assert REAL.step(1, 9000) == REAL.step(1, 704) and REAL.step(1, 1) == REAL.step(1, 16)


def test_costs_go_through_what_was_measured() -> None:
    assert REAL.most == 8 and REAL.contexts == (16, 704) and REAL.lengths == (16, 576)
    assert REAL.step(8, 704) == pytest.approx(0.069) and REAL.step(2, 360) == pytest.approx(0.028)
    assert REAL.step(5, 16) == pytest.approx((0.024 + 0.036) / 2)
    assert REAL.read(0, 384) == pytest.approx(0.2, rel=0.1)
    assert REAL.read(0, 256) + REAL.read(256, 384) == pytest.approx(REAL.read(0, 384) + REAL.fixed)
    assert REAL.travel(200, 1e9, 0.001) == pytest.approx(0.001 + 200 * 23040 * 8 / 1e9)
    few = {(1, 16): 0.1, (1, 704): 0.1}
    assert costs_of([(1, 0.1), (2, 0.2)], {**few, (2, 16): 0.1, (2, 704): 0.1}, 1) is None, "too few lengths"
    reads = [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert costs_of(reads, few, 1) is None and costs_of(reads, {**few, (2, 16): 0.1}, 1) is None
    assert costs_of(reads, {(2, 16): 0.1, (2, 704): 0.1, (4, 16): 0.1, (4, 704): 0.1}, 1) is None, "nobody alone"


def test_reading_can_only_take_longer_the_more_there_is_to_read() -> None:
    exact = fit_growing([(n, 0.02 + 0.0003 * n + 2e-7 * n * n) for n in (16, 64, 192, 384, 576)])
    assert (exact.a, exact.b, exact.c) == (pytest.approx(0.02), pytest.approx(0.0003), pytest.approx(2e-7))
    assert max(map(abs, exact.residuals)) < 1e-12
    bent = fit_growing([(16, 0.05), (64, 0.06), (192, 0.20), (384, 0.30), (576, 0.31)])
    assert min(bent.a, bent.b, bent.c) == 0 == bent.c, "the square would be below zero"
    for points in ([(1, 1.0), (2, 2.0)], [(1, 1.0), (2, 2.0), (3, 0.0)]):
        with pytest.raises(ValueError):
            fit_growing(points)


def test_capacity_is_the_tighter_of_reading_and_writing() -> None:
    read, write = work(REAL, "questions")
    assert capacity(REAL, "questions", 2) == pytest.approx(2 / (read + write))
    assert capacity(REAL, "questions", 4, 3) == pytest.approx(min(3 / read, 1 / write))
    prompt, answer = MIXES["questions"]
    context = prompt.mean() + answer.mean() / 2
    assert write == pytest.approx((answer.mean() - 1) * REAL.step(8, context) / 8)
    steady = Lengths(100, 0.0, 1, 1000)
    assert steady.mean() == 100 and steady.mean(lambda n: REAL.read(0, n)) == REAL.read(0, 100)


def test_percentiles_are_numpys() -> None:
    numpy = pytest.importorskip("numpy")
    values = [0.3, 0.1, 5.0, 0.2, 0.7, 0.4]
    for each in (0, 50, 90, 99, 100):
        assert percentile(values, each) == pytest.approx(float(numpy.percentile(values, each)))


def test_summaries_tell_what_the_people_had() -> None:
    told = simulated(REAL, Asked(load=0.8, seed=5))
    people = arrivals(told["rate"], "questions", told["people"], 5)
    assert told["rate"] == pytest.approx(0.8 * told["capacity"]["together"])
    assert told["capacity"]["link"] == pytest.approx(1 / REAL.travel(MIXES["questions"][0].mean(), 1e10, 0.001))
    for name, setup in (("colocated", Setup()), ("chunked", Setup(chunk=256)), ("split", Setup(readers=1))):
        exam = Exam(REAL, setup, people)
        summary = told["arrangements"][name]
        assert summary["ttft"]["p90"] == percentile([person.ttft for person in exam.people], 90)
        span = exam.end - people[0].at
        busy = [sum(stop - start for m in exam.machines for start, stop, *_ in s(m)) for s in (reads_of, writes_of)]
        assert summary["read"] == pytest.approx(busy[0] / span / 2)
        assert summary["write"] == pytest.approx(busy[1] / span / 2)
        assert summary["words"] == pytest.approx(sum(one.answer for one in people) / span)
        shown = summary["picture"]["people"]
        assert shown[3]["words"] == pytest.approx([word - people[0].at for word in exam.people[3].words], abs=1e-5)
        assert len(shown) >= 24 and not shown[24]["words"]
        for machine, drawn in zip(exam.machines, summary["picture"]["machines"], strict=True):
            until = summary["picture"]["until"]
            assert len(drawn["writes"]) == sum(begin - people[0].at < until - 1e-5 for begin, *_ in machine.writes)
    assert len({told["arrangements"][name]["picture"]["until"] for name in told["arrangements"]}) == 1, "one clock"


def reads_of(machine: object) -> list[tuple[float, ...]]:
    return machine.reads  # type: ignore[attr-defined, no-any-return]


def writes_of(machine: object) -> list[tuple[float, ...]]:
    return machine.writes  # type: ignore[attr-defined, no-any-return]


def test_by_load_every_seed_is_told() -> None:
    told = over_loads(REAL, Asked())
    assert [one["load"] for one in told] == list(LOADS)
    third = told[2]
    for index, seed in enumerate(SEEDS):
        once = simulated(REAL, Asked(load=LOADS[2], seed=seed))
        assert third["split"]["pause"]["p90"][index] == once["arrangements"]["split"]["pause"]["p90"]
    assert told[-1]["colocated"]["ttft"]["p90"] > told[0]["colocated"]["ttft"]["p90"], "a queue grows with the load"


def test_which_ratio_fits_depends_on_the_crowd() -> None:
    told = {one["mix"]: one["ways"] for one in over_ratios(REAL)}
    assert told.keys() == MIXES.keys()
    for mix, ways in told.items():
        assert list(ways) == ["colocated", "3+1", "2+2", "1+3"]
        share = capacity(REAL, mix, 4, 3) / capacity(REAL, mix, 4)  # type: ignore[arg-type]
        assert ways["3+1"]["capacity"] == pytest.approx(share) and ways["colocated"]["capacity"] == 1
    best = {mix: max((name for name in ways if name != "colocated"), key=lambda name: ways[name]["capacity"])
            for mix, ways in told.items()}  # fmt: skip
    assert best["passages"] == "3+1" and best["stories"] != "3+1", "long papers want readers, long answers writers"
