"""Pictures of pipelines: blocks that are shifted against each other."""

from lib.show import pipelines


def test_shifted_blocks_do_the_same_a_part_of_a_round_later():
    rows = pipelines.shifted(4, [("load", 6.0), ("compute", 2.0)])
    assert [name for name, _ in rows] == ["block 0", "block 1", "block 2", "block 3"]
    for _, spans in rows:
        assert sum(s.end - s.start for s in spans) == 16
        assert sum(s.end - s.start for s in spans if s.kind == "compute") == 4
    assert all(sum(s.start <= t < s.end for _, row in rows for s in row if s.kind == "compute") == 1
               for t in (1.5, 3.5, 9.5))
