"""Tables know whether they fit a phone, and their cells which column they are of."""

from book.tables import arranged, estimated

HEAD = '<table class="table"><thead><tr><th>version</th><th>a &amp; b</th></tr></thead>'


def table(*cells: str) -> str:
    return HEAD + "<tbody><tr>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr></tbody></table>"


def test_a_small_table_stays_one_and_its_cells_are_named():
    made = arranged(table("1", "2"))
    assert '<table class="table">' in made
    assert '<td data-label="version">1</td><td data-label="a &amp; b">2</td>' in made


def test_a_table_wider_than_a_phone_becomes_cards_and_a_very_wide_one_is_set_tight():
    assert '"table table-cards"' in arranged(table("<code>" + "x" * 22 + "</code>", "word " * 9))
    assert '"table table-cards table-tight"' in arranged(table("x" * 50, "y" * 40))


def rows(*cells: tuple[str, ...]) -> str:
    made = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in cells)
    return f"{HEAD}<tbody>{made}</tbody></table>"


def test_numbers_stay_in_rows_and_words_become_cards():
    names = [f"<code>variant_{i}_of_a_kernel</code>" for i in range(3)]
    assert "table-numbers" in arranged(rows(*((name, "1,024.5 TFLOP/s") for name in names)))
    assert "table-cards" in arranged(rows(*((name, "in words, why") for name in names)))
    assert "table-cards" in arranged(
        rows(*((name, "2 · 32 / 63 steps, and less what the sums cost") for name in names)))


def test_only_a_long_name_may_be_broken_behind_its_punctuation():
    long = "<code><span>few_tiles&lt;half, " + "x" * 40 + "&gt;</span></code>"
    made = arranged(table("<code>warp_64x32</code>", long))
    assert made.count("long-name") == 1
    assert "<code><span>few_<wbr>tiles&lt;<wbr>half, xxx" in made and "xx&gt;</span>" in made
    assert estimated([["<code>" + "x" * 60 + "</code>"]]) < 200


def test_words_that_a_phone_would_stack_are_marked():
    made = arranged(rows(("a", "1"), ("b", "twenty-nine letters, of words"), ("c", "2"))
                    .replace("a &amp; b", "a column's long name"))
    assert "<th data-tall>a column's long name</th>" in made and made.count("data-tall") == 2
    assert ' data-tall>twenty-nine' in made


def test_the_name_of_a_row_is_marked_when_it_would_be_a_narrow_column():
    made = arranged(rows(("of these, odd rows", "1"), ("4,096×4,096×4,096", "1"), ("random", "2")))
    assert ' data-tall>of these' in made and made.count("data-tall") == 1


def test_a_range_and_what_is_left_out_of_a_name_stay_on_one_line():
    made = arranged(table("60–70%, 1,024–2,048 rows", "<code><span>impl&lt;…&gt;</span></code>"))
    assert '<span class="whole">60–70%</span>, <span class="whole">1,024–2,048</span> rows' in made
    assert '<code><span>impl<span class="whole">&lt;…&gt;</span></span></code>' in made
    assert '<span class="whole">4.0e-05</span>' in arranged(table("1.0", "4.0e-05"))
    dated = arranged(table("609.7 ± 0.3%", "7d2e, 2026-11-24") + "<em>recorded: 2026-11-27</em>")
    assert '609.7 <span class="whole">± 0.3%</span>' in dated
    assert dated.count('<span class="whole">2026-11-2') == 2


def test_a_table_with_joined_cells_is_left_alone():
    joined = table("1", "2").replace("<td>1", '<td colspan="2">1')
    assert arranged(joined) == joined
