"""The panel in a real browser: from the click to the answer, and what can go wrong on the way."""

import contextlib
import json
import re
import shutil
import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from book import serve
from book.panel import files
from lib.kernels.catalogue import CATALOGUE
from lib.panel.bundle import loads
from lib.panel.session import Session
from lib.paths import ROOT
from tests.book.conftest import serving
from tests.book.test_browser import AXE, RUN_AXE
from tests.book.views import READING, emulate
from tests.panel.conftest import FOLDER
from tests.panel.driver import MAX_SECONDS, Panel
from tests.tables import cases

pytestmark = pytest.mark.browser

@pytest.fixture
def opened(browser, served):
    """Open a page of the small site: `opened(name, …)` returns its first panel."""
    def open_page(name, script="", **settings):
        emulate(browser, **{**READING, **settings})
        before = None
        if script:
            before = browser.execute_cdp_cmd(
                "Page.addScriptToEvaluateOnNewDocument", {"source": script})["identifier"]
        browser.get_log("browser")
        browser.get(f"{served.address}chapters/{name}.html")
        if before:
            browser.execute_cdp_cmd(
                "Page.removeScriptToEvaluateOnNewDocument", {"identifier": before})
        return Panel(browser)

    yield open_page
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", {
        "origin": served.address.rstrip("/"), "storageTypes": "all"})
    emulate(browser, **READING)


@pytest.fixture(scope="module")
def running(browser, panels):
    """A page whose emulator has started, shared by the tests that leave it so."""
    with serving(panels) as server:
        emulate(browser, **READING)
        browser.get(f"{server.address}chapters/02_shared_tile.html")
        panel = Panel(browser)
        panel.run()
        yield panel


def test_a_cold_start_ends_with_a_right_result(running):
    assert "right" in running.status and running.verdict == "right"
    assert running.part("run").text == "Run"
    assert running.part("stop").get_attribute("disabled")


ASK = """
const [stem, request, done] = arguments;
const base = new URL('../_static/live/', location.href).href;
const source = await (await fetch(base + 'worker.js')).text();
const worker = window.asked = window.asked ||
  new Worker(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})), {type: 'module'});
const id = window.number = (window.number || 1) + 1;
worker.addEventListener('message', ({data}) => {
  if (data.id === id) { done(data.answer || JSON.stringify({failed: data.failed})); }
});
worker.postMessage({id, base, stem, request});
"""


def ask(browser, stem, **request):
    """Ask the packed emulator itself, without a panel."""
    browser.set_script_timeout(MAX_SECONDS)
    try:
        return json.loads(browser.execute_async_script(
            f"(async (...arguments) => {{{ASK}}})(...arguments)", stem, json.dumps(request)))
    finally:
        browser.set_script_timeout(30)


# FP32 cores, wmma, TMA, a cut wave, pairs of blocks; the others at night.
@pytest.mark.parametrize("stem", [
    pytest.param(stem, marks=pytest.mark.slow if place % 5 != 2 else ())
    for place, stem in enumerate(CATALOGUE)
])
def test_the_packed_emulator_counts_what_the_native_one_does(running, browser, stem):
    native = files.made(stem, FOLDER)["answer"]
    packed = ask(browser, stem, do="run")
    assert packed["verdict"] == native["verdict"] == "right"
    assert packed["counters"] == native["counters"] and len(packed["counters"]) >= 8
    # wgmma forms float32 products with a BLAS, which adds in another order here than there.
    html = [re.sub(r"error [\d.e-]+", "error", one["html"]) for one in (packed, native)]
    assert html[0] == html[1]
    assert packed["accesses"] == native["accesses"]


def test_bfloat16_counts_in_the_browser_as_it_does_natively(running, browser):
    stem = "18_tma"
    native = Session(loads(files.made(stem, FOLDER)["bundle"]))
    asked = {"do": "run", "variant": "bf16_column", "M": 136, "N": 72, "beta": 0.5}
    packed, wanted = ask(browser, stem, **asked), json.loads(native.ask(json.dumps(asked)))
    assert packed["verdict"] == wanted["verdict"] == "right"
    assert packed["counters"] == wanted["counters"]


@pytest.mark.parametrize("stem", ["05_bank_conflicts", "14_ldmatrix", "16_cp_async",
                                  "19_warp_specialization"])
def test_the_packed_microscope_shows_what_the_native_one_does(running, browser, stem):
    native = Session(loads(files.made(stem, FOLDER)["bundle"]))

    def both(**request):
        packed = ask(browser, stem, **request)
        assert packed == json.loads(native.ask(json.dumps(request)))
        return packed

    recorded = both(do="record", landing="late")
    accesses = recorded["memory"]
    for at in {*range(0, recorded["count"], 97), *accesses[:: len(accesses) // 20 + 1]}:
        both(do="step", at=at)


def test_a_mistake_is_chosen_at_the_line_that_it_changes(running):
    running.choose(0)
    seed = running.seed(0)
    assert seed.get_attribute("aria-pressed") == "true"
    source = (ROOT / "cuda" / "02_shared_tile.cu").read_text(encoding="utf-8").split("\n")
    line, name = seed.text.split("\n")
    assert name == "barrier left out" and line.strip().startswith("__syncthreads();")
    rows = [row.text for row in running.part("seeds").find_elements(By.TAG_NAME, "li")]
    assert len(rows) == len("\n".join(source).rstrip().split("\n"))
    number = next(i for i, row in enumerate(rows, 1) if row == seed.text)
    assert source[number - 1].strip() == line.strip()
    assert running.part("mistake").text == f"barrier left out, line {number}"
    running.run(M="64", N="64", K="64")
    assert running.verdict in ("suspicious", "wrong")
    found = running.part("answer").text
    assert f"barrier left out, 02_shared_tile.cu:{number}" in found and "lane" in found
    assert "with the mistake" in found and "tile32, unchanged" in found
    running.choose(None)
    running.run()
    assert running.verdict == "right" and running.part("mistake").text == "none"


def test_a_second_click_or_another_variant_takes_the_mistake_out(running):
    running.choose(1)
    assert running.field("mistake").get_attribute("value") == "1"
    running.choose(1)
    assert running.field("mistake").get_attribute("value") == ""
    running.choose(1)
    running.run(variant="only_a")
    assert running.verdict == "right" and not running.part("seeds").is_displayed()
    running.run(variant="tile32")


def test_a_mistake_and_the_reader_s_own_ptx_take_turns(running):
    running.choose(0)
    running.press("edit")
    assert running.field("mistake").get_attribute("value") == ""
    running.choose(0)
    assert not running.part("editor").is_displayed()
    running.choose(None)
    running.click("choose")


def test_a_task_sets_the_controls_and_shows_before_and_after(running):
    task = running.root.find_elements(By.CSS_SELECTOR, ".live-tasks > li")[1]
    task.find_element(By.CSS_SELECTOR, "[data-guess]").send_keys("5")
    task.find_element(By.CSS_SELECTOR, "[data-guess]").send_keys(Keys.ENTER)
    status = running.wait()
    assert re.fullmatch(r"barrier left out, 02_shared_tile\.cu:\d+", running.part("mistake").text)
    old, new = re.search(r"(\d+) before, (\d+) after", status).groups()
    assert old == "0" and int(new) > 0
    shown = running.part("answer").text
    assert shown.startswith(f"Your guess: Off by {5 - int(new)}") and "before" in shown
    assert "__syncthreads();" in shown
    running.choose(None)
    running.run()
    assert running.verdict == "right"


def test_the_page_draws_on_while_a_kernel_runs(running, browser):
    browser.execute_script("""
      window.longest = 0;
      window.watch = new PerformanceObserver(list => list.getEntries().forEach(
        entry => { window.longest = Math.max(window.longest, entry.duration); }));
      window.watch.observe({type: 'longtask'});""")
    running.run(M="128", N="128", K="96")
    time.sleep(0.2)
    # Only tasks of 50 ms and more are reported.
    assert browser.execute_script("window.watch.disconnect(); return window.longest") <= 60


def test_the_editor_opens_at_the_inner_loop(running):
    running.press("edit")
    shown = running.part("ptx").get_attribute("value")
    first, last, many = (int(number.replace(",", "")) for number in re.search(
        r"lines ([\d,]+) to ([\d,]+) of ([\d,]+)", running.part("place").text).groups())
    assert shown.count("\n") + 1 == last - first + 1 < 0.6 * many
    assert "fma" in shown and "bra" in shown.split("\n")[-1] and ".entry" not in shown
    assert running.part("all").text == f"Show all {many:,} lines"
    running.click("all")
    whole = running.part("ptx").get_attribute("value")
    assert ".entry" in whole and whole.count("\n") + 1 == many
    assert "\n".join(whole.split("\n")[first - 1 : last]) == shown
    assert not running.part("all").is_displayed()
    running.click("edit")


def test_edited_ptx_is_run(running, browser):
    running.press("edit")
    text = running.part("ptx")
    loop = text.get_attribute("value")
    assert text.is_displayed()
    # What is written in the loop is at its line of the whole text.
    browser.execute_script("arguments[0].value = arguments[1]", text, "\ttrap_;\n" + loop)
    running.click("run")
    line = int(re.search(r"lines ([\d,]+)", running.part("place").text)[1].replace(",", ""))
    assert "stopped" in running.wait() and f"PTX line {line}" in running.status
    browser.execute_script("arguments[0].value = arguments[1]", text, "\t// nothing\n" + loop)
    running.run()
    assert running.verdict == "right" and "your PTX" in running.part("answer").text
    running.click("edit")
    assert not text.is_displayed()


def test_the_cuda_line_of_the_caret_is_marked(running, browser):
    running.press("edit")
    running.click("all")
    browser.execute_script("""
      const text = arguments[0], at = text.value.indexOf('bar.sync');
      text.setSelectionRange(at, at);
      text.dispatchEvent(new Event('click'));""", running.part("ptx"))
    marked = running.part("cuda").find_elements(By.CSS_SELECTOR, ".live-now")
    assert len(marked) == 1 and marked[0].text.strip().startswith("__syncthreads();")
    running.click("edit")


def test_a_line_of_the_cuda_shows_its_ptx(running, browser):
    running.press("edit")
    buttons = running.part("cuda").find_elements(By.TAG_NAME, "button")
    barriers = [one for one in buttons if one.text.strip().startswith("__syncthreads();")]
    browser.execute_script("arguments[0].click()", barriers[0])
    assert running.part("ptx").get_attribute("value").strip().startswith("bar.sync")
    assert re.fullmatch(r"PTX of CUDA line \d+: place 1 of \d+.*", running.status)
    # By the keyboard: one line is reached with Tab, the arrows lead on.
    reached = running.part("cuda").find_elements(By.CSS_SELECTOR, "[tabindex='0']")
    assert reached == [barriers[0]]
    barriers[0].send_keys(Keys.ARROW_UP)
    above = browser.switch_to.active_element
    assert above == buttons[buttons.index(barriers[0]) - 1]
    above.send_keys(Keys.ENTER)
    assert "bar.sync" not in running.part("ptx").get_attribute("value")
    running.click("edit")


def test_a_warp_is_stepped_through(running):
    running.press("microscope")
    first = running.part("moment").text
    assert "PTX line" in first and running.part("of").text.startswith("1 of ")
    running.press("forward")
    second = running.part("moment").text
    assert second != first
    running.press("back")
    assert running.part("moment").text == first
    running.press("line")
    assert running.part("moment").find_element(By.CSS_SELECTOR, "li.live-now").text.strip()
    seen = ""
    for _ in range(6):
        running.press("access")
        seen += running.part("moment").get_attribute("innerHTML")
    for shown in ("ld.global", "4 sectors", "st.shared", "ld.shared", "bank 0"):
        assert shown in seen, shown


def test_a_later_answer_replaces_what_was_refused(running, browser):
    running.run(M="64", N="64", K="64")
    before = running.part("answer").get_attribute("innerHTML")
    browser.execute_script("arguments[0].removeAttribute('max')", running.field("M"))
    assert "from 1 to 256" in running.run(M="300")
    assert "from 1 to 256" in running.part("answer").text and running.verdict == "refused"
    running.run(M="64")
    browser.execute_script("arguments[0].value = '300'", running.field("M"))
    running.run()
    browser.execute_script("arguments[0].value = '64'", running.field("M"))
    running.click("edit")  # another question, whose answer stands elsewhere
    assert "inner loop" in running.wait()
    assert running.part("answer").get_attribute("innerHTML") == before
    assert running.verdict == "right"
    running.click("edit")


def test_a_run_is_stopped_and_the_next_one_starts_anew(opened):
    panel = opened("02_shared_tile")
    panel.click("run")
    panel.until("Starting Python|Loading NumPy|Running")
    assert panel.press("stop").startswith("Stopped")
    assert "right" in panel.run()


def test_two_clicks_are_one_run(opened, browser):
    panel = opened("02_shared_tile")
    browser.execute_script("""
      window.workers = 0;
      const Real = Worker;
      window.Worker = function (...given) { window.workers += 1; return new Real(...given); };""")
    browser.execute_script("arguments[0].click(); arguments[0].click()", panel.part("run"))
    assert "right" in panel.wait()
    assert browser.execute_script("return window.workers") == 1


def test_two_panels_share_one_emulator(opened, browser):
    panel = opened("two")
    other = Panel(browser, 1)
    panel.click("run")
    assert "tile32" in panel.wait() and "spread" in other.run()
    assert (panel.verdict, other.verdict) == ("right", "right")


def test_without_the_server_it_starts_from_what_was_kept(opened, served):
    panel = opened("02_shared_tile")
    panel.run()
    panel.click("stop")
    served.shutdown()
    served.server_close()
    assert "right" in panel.run(M="32")
    # Stop, so that nothing of the first start is left.
    panel.browser.execute_script("arguments[0].disabled = false", panel.part("stop"))
    panel.click("stop")
    assert "right" in panel.run(M="64")


def test_pages_open_where_there_is_no_room_for_copies(opened, browser, served):
    opened("02_shared_tile")
    browser.execute_async_script("""
      const done = arguments[0];
      navigator.serviceWorker.addEventListener('controllerchange', done);
      navigator.serviceWorker.register('../offline.js');""")
    origin = served.address.rstrip("/")
    browser.execute_cdp_cmd(
        "Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 1000})
    try:
        panel = opened("05_bank_conflicts")
        assert "right" in panel.part("answer").text and panel.part("run").is_displayed()
    finally:
        browser.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": origin})


def test_a_second_page_of_a_visit_starts_before_it_is_asked(opened, browser):
    opened("02_shared_tile").run(M="32")
    panel = opened("05_bank_conflicts")
    assert not panel.busy
    WebDriverWait(browser, MAX_SECONDS, 0.2).until(lambda page: page.execute_script(
        "return performance.getEntriesByType('resource').some(e => /worker.js/.test(e.name))"))
    assert "spread" in panel.run(M="32")


def test_nothing_is_loaded_before_a_click(opened, browser, served):
    opened("02_shared_tile")
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map(each => each.name)")
    ours = [name.rpartition("/")[2].partition("?")[0] for name in asked if served.address in name]
    assert sorted(name for name in ours if name != "favicon.ico") == ["panel.css", "panel.js"]


def test_a_page_weighs_little_before_a_click(panels):
    script, sheet = ((panels / "_static" / "live" / name).stat().st_size
                     for name in ("panel.js", "panel.css"))
    assert script < (ROOT / "book" / "panel" / "panel.js").stat().st_size
    for stem in CATALOGUE:
        text, _ = files.written(stem, FOLDER, panels / "_static" / "live", "")
        assert len(text.encode()) + script + sheet <= 30_000, stem


def test_a_click_loads_at_most_ten_megabytes(panels):
    assert max(files.megabytes(panels / "_static" / "live", stem) for stem in CATALOGUE) <= 10


# -- readers ------------------------------------------------------------------------------------

def test_a_phone_shows_it_without_scrolling_sideways(opened, browser):
    panel = opened("05_bank_conflicts", width=360, height=740)
    panel.run(M="32", N="32", K="32", variant="together")
    panel.press("microscope")
    panel.choose(0)
    panel.press("edit")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def test_the_keyboard_runs_it(opened, browser):
    panel = opened("02_shared_tile")
    browser.execute_script("document.querySelector('[name=variant]').focus()")
    reached = []
    for _ in range(30):
        active = browser.switch_to.active_element
        reached.append(active.get_attribute("name") or active.get_attribute("data-part"))
        if reached[-1] == "run":
            break
        active.send_keys(Keys.TAB)
    assert {"variant", "M", "N", "K", "alpha", "beta", "schedule", "landing", "races",
            "choose"} <= set(reached)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert "right" in panel.wait()


def test_the_keyboard_chooses_a_mistake(opened, browser):
    panel = opened("02_shared_tile")
    panel.part("choose").send_keys(Keys.ENTER)
    panel.wait()
    active = browser.switch_to.active_element
    assert active.get_attribute("data-mistake") is not None
    active.send_keys(Keys.TAB)
    active = browser.switch_to.active_element
    active.send_keys(Keys.SPACE)
    assert active.get_attribute("aria-pressed") == "true"
    assert panel.field("mistake").get_attribute("value") == active.get_attribute("data-mistake")
    assert active.text.split("\n")[-1] in panel.part("mistake").text


def test_every_control_has_a_name(opened, browser):
    panel = opened("02_shared_tile")
    panel.press("microscope")
    panel.choose(0)
    panel.press("edit")
    controls = panel.root.find_elements(
        By.CSS_SELECTOR, "input:not([type=hidden]), select, textarea, button")
    assert len(controls) >= 20
    assert [c.get_attribute("outerHTML") for c in controls
            if c.is_displayed() and not c.accessible_name] == []
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    assert browser.execute_async_script(RUN_AXE, True) == []


def test_without_scripts_the_recorded_run_stands(opened):
    panel = opened("05_bank_conflicts", scripts=False)
    assert "right" in panel.part("answer").text and "shared wavefronts" in panel.part("answer").text
    assert panel.part("pictures").find_elements(By.TAG_NAME, "svg")
    assert not panel.part("form").is_displayed()
    assert "The controls need scripts" in panel.root.text


@cases("""
guess | said | shown
8     | Exactly: the run has 8 wavefronts       | 8 wavefronts, ideal 4
1     | Off by 7, a factor of 8: the run has 8  | 8 wavefronts, ideal 4
8,000 | Off by 7,992, a factor of 1000: the run has 8 | ideal 4
many  | Type a number                           |
-3    | Off by 11: the run has 8                | ideal 4
""")
def test_a_prediction_is_compared_with_the_run(browser, served, guess, said, shown):
    emulate(browser, **READING)
    browser.get(f"{served.address}chapters/question.html")
    form = browser.find_element(By.CSS_SELECTOR, "form[data-truth]")
    decides = form.find_element(By.CLASS_NAME, "live-decides")
    answer = browser.find_elements(By.TAG_NAME, "details")[-1]
    assert not decides.is_displayed() and not answer.get_attribute("open")
    form.find_element(By.NAME, "guess").send_keys(f"{guess}{Keys.ENTER}")
    assert said in form.find_element(By.TAG_NAME, "output").text
    assert shown in decides.text and decides.is_displayed() == bool(shown)
    assert bool(answer.get_attribute("open")) == bool(shown)
    loaded = "return performance.getEntriesByType('resource').map(each => each.name).join()"
    assert "worker.js" not in browser.execute_script(loaded)


def test_a_prediction_leads_to_the_panel_that_runs_it_again(browser, served):
    browser.get(f"{served.address}chapters/question.html")
    form = browser.find_element(By.CSS_SELECTOR, "form[data-truth]")
    form.find_element(By.NAME, "guess").send_keys("1" + Keys.ENTER)
    form.find_element(By.LINK_TEXT, "Run it here").click()
    assert browser.execute_script("return document.querySelector(':target').textContent") == (
        "Run it here")
    assert Panel(browser).field("variant").get_attribute("value") == "together"


# -- a tab in the background --------------------------------------------------------------------

NOTING = """
window.frames_ = 0;
const count = () => { window.frames_ += 1; requestAnimationFrame(count); };
requestAnimationFrame(count);
const status = document.querySelector('[data-part="status"]');
let before;
document.addEventListener('visibilitychange', () => { before = window.frames_; });
new MutationObserver(() => localStorage.setItem('said', JSON.stringify(
  [status.textContent, document.visibilityState, window.frames_ - before])))
  .observe(status, {childList: true});
"""


def test_a_run_goes_on_in_a_tab_in_the_background(opened, browser, served):
    panel = opened("02_shared_tile")
    here = browser.current_window_handle
    browser.execute_script(NOTING)
    panel.click("run")
    browser.switch_to.new_window("tab")
    try:
        browser.get(f"{served.address}chapters/question.html")
        said = WebDriverWait(browser, MAX_SECONDS, 0.3).until(lambda page: next(
            (noted for noted in [json.loads(page.execute_script(
                "return localStorage.getItem('said')") or '[""]')] if "error" in noted[0]), None))
    finally:
        browser.close()
        browser.switch_to.window(here)
    # It had ended before anybody looked, and the page had not been drawn once in the meantime.
    assert "right" in said[0] and said[1:] == ["hidden", 0]
    assert panel.wait() == said[0] and panel.verdict == "right"


# -- what can go wrong --------------------------------------------------------------------------

@cases("""
missing                                     | said
delete window.WebAssembly                   | WebAssembly
window.Worker = undefined                   | workers
window.DecompressionStream = undefined      | DecompressionStream
delete HTMLScriptElement.prototype.noModule | module scripts
""")
def test_a_browser_that_lacks_something_says_what(opened, missing, said):
    panel = opened("02_shared_tile", script=missing)
    assert said in panel.run() and "current one" in panel.status
    assert "right" in panel.part("answer").text


def test_a_page_from_a_file_says_to_serve_it(browser, panels):
    emulate(browser, **READING)
    browser.get_log("browser")
    browser.get((panels / "chapters" / "02_shared_tile.html").as_uri())
    panel = Panel(browser)
    assert "Serve the folder" in panel.run()
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


@pytest.fixture
def spoilt(browser, panels, tmp_path):
    """Open a copy of the site with one file changed: `spoilt(name, change)` is its panel.

    A change of None removes the file.
    """
    def start(name, change, cut=0):
        root = tmp_path / "site"
        shutil.copytree(panels, root)
        place = root / "_static" / "live" / name
        if change is None:
            place.unlink()
        else:
            place.write_bytes(change(place.read_bytes()))

        class Cutting(serve.Handler):
            def copyfile(self, source, outputfile):
                if cut and name in self.path:
                    outputfile.write(source.read(cut))
                else:
                    super().copyfile(source, outputfile)

        emulate(browser, **READING)
        address = servers.enter_context(serving(root, Cutting)).address
        browser.get(f"{address}chapters/02_shared_tile.html")
        return Panel(browser)

    with contextlib.ExitStack() as servers:
        yield start


def test_a_file_of_another_digest_is_not_used(spoilt):
    panel = spoilt("lib.zip", lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    assert "lib.zip is not the file that this page was built with" in panel.run()
    assert "right" in panel.part("answer").text


@pytest.mark.parametrize("name", ["pyodide.asm.wasm.gzip", "02_shared_tile.json.gzip"])
def test_a_download_that_is_cut_off_is_said(spoilt, name):
    panel = spoilt(name, lambda data: data, cut=1_000)
    assert re.search("cut off|can't be reached|network error", panel.run())
    assert "right" in panel.part("answer").text


# As V8 and JavaScriptCore say it; the last as Firefox said it before 114.
@cases("""
thrown | said
WebAssembly.instantiate(): Out of memory: Cannot allocate Wasm memory | take a smaller shape
failed to allocate memory                         | take a smaller shape
Dynamic module import is disabled or not supported in this context \
 | This browser has no modules in workers: open the page in a current one
""")
def test_what_a_worker_fails_with_is_said_and_the_recorded_run_stays(spoilt, thrown, said):
    panel = spoilt("worker.js", lambda data: data.replace(
        b"async function answer(",
        f"async function answer() {{ throw new RangeError({thrown!r}); }}\n"
        "async function unused(".encode()))
    assert said in panel.run()
    assert "right" in panel.part("answer").text


def test_a_run_that_takes_too_long_is_stopped(browser, spoilt):
    panel = spoilt("worker.js", lambda data: data.replace(
        b"async function answer(", b"async function answer() { tell(1, 'ready'); "
        b"for (;;) {} }\nasync function unused("))
    browser.execute_script("arguments[0].dataset.limit = '0.5'", panel.root)
    assert panel.run() == "Stopped after 0.5 seconds: take a smaller shape."


def test_the_time_that_a_frozen_tab_sleeps_is_not_counted(browser, spoilt):
    panel = spoilt("worker.js", lambda data: data.replace(
        b"async function answer(", b"""async function answer() {
          tell(1, 'ready');
          for (let i = 0; i < 10; i++) { await new Promise(wake => setTimeout(wake, 100)); }
          return '{"html": "", "said": "awake", "verdict": "right"}';
        }\nasync function unused("""))
    browser.execute_script("arguments[0].dataset.limit = '4'", panel.root)
    panel.click("run")
    panel.until("Running")
    browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "frozen"})
    time.sleep(5)
    browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "active"})
    assert panel.wait().startswith("awake")


@pytest.mark.parametrize("name, change, said", [
    ("manifest.json", lambda data: data.replace(b"lib.zip", b"bil.zip"), "bil.zip"),
    ("manifest.json", None, "manifest.json"), ("worker.js", None, "worker.js"),
    ("02_shared_tile.json.gzip", None, "02_shared_tile.json.gzip"),
])
def test_a_file_that_is_missing_is_said(spoilt, name, change, said):
    panel = spoilt(name, change)
    assert f"{said}: the server answers 404; reload the page" in panel.run()
    assert "right" in panel.part("answer").text


def test_the_script_of_a_click_that_is_missing_is_said_and_another_click_tries_again(
        spoilt, tmp_path):
    panel = spoilt("engine.js", None)
    assert panel.run() == (
        "engine.js can't be loaded: look at the connection, or reload the page.")
    assert "right" in panel.part("answer").text
    (tmp_path / "site" / "_static" / "live" / "engine.js").write_text(
        (ROOT / "book" / "panel" / "engine.js").read_text(encoding="utf-8"), encoding="utf-8")
    assert "right" in panel.run(M="32")
