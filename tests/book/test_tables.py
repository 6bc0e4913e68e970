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


def test_numbers_are_listed_by_column_and_words_by_row():
    names = [f"<code>variant_{i}_of_a_kernel</code>" for i in range(3)]
    listed = arranged(rows(*((name, "1,024.5 TFLOP/s") for name in names)))
    assert "table-columns" in listed
    assert ('data-label="a &amp; b" data-row="variant_2_of_a_kernel">1,024.5 TFLOP/s</td>'
            in listed)
    assert "table-cards" in arranged(rows(*((name, "in words, why") for name in names)))
    # Two rows are compared as they stand; rows of one name could not be told apart in a list.
    assert "table-cards" in arranged(rows(*((name, "1,024.5 TFLOP/s") for name in names[:2])))
    assert "table-cards" in arranged(rows(*((names[0], "1,024.5 TFLOP/s") for _ in range(3))))


def test_only_a_long_name_may_be_broken():
    made = arranged(table("<code>warp_64x32</code>", "<code>" + "x" * 60 + "</code>"))
    assert made.count("long-name") == 1
    assert estimated([["<code>" + "x" * 60 + "</code>"]]) < 200


def test_a_table_with_joined_cells_is_left_alone():
    joined = table("1", "2").replace("<td>1", '<td colspan="2">1')
    assert arranged(joined) == joined
