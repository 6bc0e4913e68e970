"""The two explorers of layouts, clicked through in a real browser.

What they show is compared with the model, which runs of the emulator are held against elsewhere
(`tests/show/test_operand.py`, `test_fragment_maps.py`).
"""

import json
import random

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from lib.show import operand as model
from lib.show.fragment_maps import maps
from lib.show.operand import Tile
from lib.show.operand import tiles as explorer
from tests.book.views import READING, emulate, wait_until_drawn

pytestmark = pytest.mark.browser
PAGE = "chapters/layouts.html"
CONTROLS = {control.label: [value for _, value in control.options]
            for control in explorer().controls}


@pytest.fixture
def page(browser, address):
    """The page, opened anew."""
    emulate(browser, **READING)
    browser.get(address + PAGE)
    browser.get_log("browser")
    wait_until_drawn(browser)
    yield browser
    emulate(browser, **READING)


@pytest.fixture
def tile(page):
    return page.find_elements(By.CSS_SELECTOR, ".live")[0]


@pytest.fixture
def registers(page):
    return page.find_elements(By.CSS_SELECTOR, ".live")[1]


def names(one, row, k):
    """The lane whose address makes ldmatrix.x4 read an element."""
    (line, chunk), _ = one.chunk(row, k)
    [lane] = np.flatnonzero((one.addressed == (line % 16, chunk % 2)).all(axis=1))
    return lane


def holder(one, row, column):
    """Lane, register and part of it that hold an element of a map."""
    at, of = (row, one.rows) if one.down else (column, one.columns)
    other = one.columns == column if one.down else one.rows == row
    [(register, lane)] = np.argwhere(other & (of <= at) & (at < of + one.packed)).tolist()
    return lane, register, at - of[register, lane]


def found(box):
    text = box.find_element(By.CSS_SELECTOR, ".live-body").get_attribute("data-found")
    return json.loads(text) if text else None


def says(box):
    return box.find_element(By.CSS_SELECTOR, ".live-says").text


def typed(box, **fields):
    for name, value in fields.items():
        field = box.find_element(By.CSS_SELECTOR, f"input[data-name={name}]")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(str(value))


def choose(box, *values):
    """Click the buttons of all controls: reader, type, direction, swizzle, operand, rows, depth.

    By the page's own events: a click at a place on the screen takes long, and `press` does one.
    """
    places = [options.index(value)
              for options, value in zip(CONTROLS.values(), values, strict=True)]
    labels = box.parent.execute_script("""
        return Array.from(arguments[0].querySelectorAll('fieldset'), (fieldset, number) => {
          fieldset.querySelectorAll('label')[arguments[1][number]].click();
          return fieldset.querySelector('legend').textContent;
        });""", box, places)
    assert labels == list(CONTROLS)


def press(box, label, value):
    """Click one button where it is on the screen."""
    number = list(CONTROLS).index(label)
    fieldset = box.find_elements(By.CSS_SELECTOR, "fieldset")[number]
    button = fieldset.find_elements(By.TAG_NAME, "label")[CONTROLS[label].index(value)]
    box.parent.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def pick(select, value):
    select.parent.execute_script("""
        arguments[0].value = arguments[1];
        arguments[0].dispatchEvent(new Event('input', {bubbles: true}));
        """, select, value)
    assert select.get_attribute("value") == value


TEXTS = """
return Array.from(arguments[0].querySelectorAll(arguments[1]),
  one => [one.textContent, one.className]);
"""


def legal(count):
    """Some tiles of every reader, swizzle and direction, as either operand."""
    rng = random.Random(5)
    by_kind = {}
    for _, one in model.every_tile():
        if isinstance(one, Tile):
            by_kind.setdefault((one.reader, one.order, one.mode), []).append(one)
    some = [rng.choice(group) for group in by_kind.values()]
    return [Tile(one.reader, one.item, one.order, one.mode, one.rows, one.k_bytes, side)
            for one, side in zip(some, "AB" * len(some), strict=False)][:count]


def test_what_a_reader_sees_first_is_the_first_position(tile):
    assert found(tile)["bits"] == f"{Tile().bits(13, 5):016x}"
    assert says(tile).startswith("Row 13, k 5: byte 2,778, bank 22.")
    assert tile.find_element(By.CSS_SELECTOR, ".live-body").is_displayed()
    assert not tile.find_element(By.CSS_SELECTOR, ".live-still").is_displayed()
    assert len(tile.accessible_name) > 10


# A third of the choices; the others at night.
@pytest.mark.parametrize("number", [
    pytest.param(number, marks=pytest.mark.slow if number else ()) for number in range(3)
])
def test_every_choice_shows_what_the_model_has(tile, number):
    of = legal(99)
    assert len(of) > 20
    rng = random.Random(number)
    for one in of[number::3]:
        choose(tile, one.reader, one.item, one.order, one.mode, one.side, one.rows, one.k_bytes)
        row, k = rng.randrange(one.rows), rng.randrange(one.k)
        typed(tile, row=row, k=k)
        seen, place, held = found(tile), one.element(row, k), one.holder(row, k)
        assert (seen["address"], seen["bank"], seen["waves"]) == (*place, one.wavefronts(row, k))
        if one.reader == "ldmatrix":
            assert seen["names"] == names(one, row, k) and "bits" not in seen
        else:
            assert int(seen["bits"], 16) == one.bits(row, k)
            cells = [text for text, _ in tile.parent.execute_script(TEXTS, tile, "td")]
            for i, (low, width, name) in enumerate(model.FIELDS[one.reader]):
                stands = one.bits(row, k) >> low & (1 << width) - 1
                assert cells[4 * i + 1] == name
                assert cells[4 * i + 2].split(" =")[0] == f"{stands:,}"
        assert seen.get("holder") == (list(held[1:]) if held else None)
        # The cell that is marked lies where the model says, by its row's first byte and its bank.
        grid = tile.find_elements(By.CSS_SELECTOR, ".live-picture .live-grid")[1]
        cells = tile.parent.execute_script(TEXTS, grid, "span")
        [at] = [i for i, (_, kind) in enumerate(cells) if "live-own" in kind]
        line = int(cells[at // 9 * 9][0].replace(",", ""))
        assert line + (at % 9 - 1) * 16 == place.address // 16 * 16


def test_what_nothing_reads_says_why(tile):
    choose(tile, "wgmma", 1, "MN", "128", "A", 128, 128)
    assert "only of 16-bit types" in says(tile) and found(tile) is None
    choose(tile, "wgmma", 1, "K", "128", "A", 128, 64)
    assert "64 bytes, fewer than the 128" in says(tile)
    choose(tile, "wgmma", 1, "K", "64", "A", 128, 64)
    assert found(tile)["waves"] == 1


def test_a_click_on_a_cell_follows_its_chunk(tile):
    of = Tile()
    meant, lying = tile.find_elements(By.CSS_SELECTOR, ".live-picture .live-grid")
    cells = lying.find_elements(By.CSS_SELECTOR, ".live-cell")
    line, chunk = map(int, cells[8 * 2 + 3].text.split("."))
    cells[8 * 2 + 3].click()
    assert found(tile)["address"] == of.element(line, 8 * chunk).address
    assert says(tile).startswith(f"Row {line}, k {8 * chunk}:")
    meant = tile.find_elements(By.CSS_SELECTOR, ".live-picture .live-grid")[0]
    meant.find_elements(By.CSS_SELECTOR, ".live-cell")[0].click()
    assert says(tile).startswith("Row 8, k 0:")


def test_conflicts_are_told_and_coloured(tile):
    press(tile, "Read by", "ldmatrix")
    press(tile, "Swizzle", "none")
    assert "take 8 wavefronts" in says(tile) and tile.find_elements(By.CSS_SELECTOR, ".live-bad")
    press(tile, "Swizzle", "padded")
    assert "take 1 wavefront." in says(tile)
    assert not tile.find_elements(By.CSS_SELECTOR, ".live-bad")
    assert "No tensor map writes padded rows" in tile.text


def test_the_keyboard_alone_moves_it(tile):
    reader = tile.find_element(By.CSS_SELECTOR, "input[type=radio]:checked")
    reader.send_keys(Keys.ARROW_RIGHT)
    assert int(found(tile)["bits"], 16) == Tile("tcgen05").bits(13, 5)
    row = tile.find_element(By.CSS_SELECTOR, "input[data-name=row]")
    row.send_keys(Keys.ARROW_UP)
    assert found(tile)["address"] == Tile("tcgen05").element(14, 5).address
    typed(tile, row=999)
    row.send_keys(Keys.TAB)
    assert found(tile)["address"] == Tile("tcgen05").element(63, 5).address


def test_each_map_shows_what_the_model_has(registers):
    rng = random.Random(7)
    instruction = registers.find_element(By.CSS_SELECTOR, "select[data-name=instruction]")
    matrix = registers.find_element(By.CSS_SELECTOR, "select[data-name=matrix]")
    options = [one.text for one in instruction.find_elements(By.TAG_NAME, "option")]
    assert options == list(maps())
    for name, each in maps().items():
        pick(instruction, name)
        shown = [text for text, _ in registers.parent.execute_script(TEXTS, matrix, "option")]
        assert shown == [one.matrix for one in each]
        for one in each:
            pick(matrix, one.matrix)
            row, column = (rng.randrange(size) for size in one.shape)
            typed(registers, row=row, column=column)
            seen = found(registers)
            assert (seen["lane"], seen["register"], seen["part"]) == holder(one, row, column)
            assert f"lane {seen['lane']}, register {seen['register']}" in says(registers)
            lane, register = rng.randrange(32), rng.randrange(len(one.rows))
            typed(registers, lane=lane, register=register)
            seen = found(registers)
            assert (seen["row"], seen["column"]) == (one.rows[register, lane],
                                                     one.columns[register, lane])
            own = registers.find_element(By.CSS_SELECTOR, ".live-own")
            assert own.text == f"r{register}"


@pytest.mark.parametrize("width, theme", [(360, "light"), (390, "dark")])
def test_a_phone_shows_every_kind_of_tile_without_scrolling_sideways(page, width, theme):
    emulate(page, **{**READING, "width": width, "theme": theme})
    [tile, registers] = page.find_elements(By.CSS_SELECTOR, ".live")
    widest = [("ldmatrix", 2, "MN", "none", "A", 256, 256),
              ("tcgen05", 4, "MN", "128/32", "B", 256, 256),
              ("wgmma", 2, "MN", "none", "B", 256, 256), ("wgmma", 1, "K", "128", "A", 64, 32)]
    for values in widest:
        choose(tile, *values)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        cut = page.execute_script("""
            return Array.from(arguments[0].querySelectorAll('.live-grid > span'))
              .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent);
            """, tile)
        assert cut == []
    typed(registers, lane=31, register=3)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_without_scripts_the_first_position_is_a_figure(browser, address):
    emulate(browser, **{**READING, "scripts": False})
    browser.get(address + PAGE)
    boxes = browser.find_elements(By.CSS_SELECTOR, ".live")
    assert len(boxes) == 2
    for box in boxes:
        assert box.find_element(By.CSS_SELECTOR, ".live-still svg").is_displayed()
        assert "need scripts" in box.find_element(By.CSS_SELECTOR, ".live-still").text
        assert not box.find_element(By.CSS_SELECTOR, ".live-body").is_displayed()
    emulate(browser, **READING)
