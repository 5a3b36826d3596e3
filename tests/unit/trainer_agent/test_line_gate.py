"""Lines pass as fast as anybody reads; of a flood the last ones stay."""

from __future__ import annotations

from trackway_trainer_agent.worker.line_gate import BURST, LAST_KEPT, LINES_PER_S, LineGate


class Watch:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_passes_whole():
    gate = LineGate[int](Watch())
    assert [line for n in range(BURST) for line in gate.take(n)] == list(range(BURST))


def test_of_a_flood_the_last_lines_stay():
    gate = LineGate[int](Watch())
    passed = [line for n in range(3 * BURST) for line in gate.take(n)]
    assert passed == list(range(BURST))
    assert gate.release() == tuple(range(3 * BURST - LAST_KEPT, 3 * BURST))
    assert gate.dropped == 2 * BURST - LAST_KEPT
    assert gate.release() == ()


def test_after_a_flood_lines_pass_again_in_their_order():
    watch = Watch()
    gate = LineGate[int](watch)
    for n in range(BURST + LAST_KEPT):
        gate.take(n)
    watch.now_s += 1
    assert gate.take(-1) == (*range(BURST, BURST + LAST_KEPT), -1)
    assert gate.dropped == 0
    assert sum(len(gate.take(n)) for n in range(2 * int(LINES_PER_S))) == LINES_PER_S - LAST_KEPT - 1
