"""The page of a reader's own kernel in a real browser: examples, links, pasted PTX, offline."""

import gzip
import json
import re
import time

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from book import serve
from book.panel import examples, exercises
from lib.__main__ import main as command
from lib.compiler import link
from lib.panel.trial import Trial
from lib.show.zoo import ANY, MISSED
from tests.book.conftest import serving
from tests.book.test_browser import AXE, RUN_AXE
from tests.book.views import READING, emulate
from tests.links import unpacked
from tests.panel import own_site
from tests.panel.driver import Panel
from tests.panel.test_trial import ptx_of

pytestmark = pytest.mark.browser
KERNELS = ("02_shared_tile",)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("own")
    own_site.fill(root, KERNELS)
    return root


class Published(serve.Handler):
    """A server of files alone, as the published site's."""

    def _at_the_door(self):
        return False


@pytest.fixture(scope="module")
def server(site):
    with serving(site, Published) as server:
        server.page = f"{server.address}chapters/try.html"
        yield server


@pytest.fixture(scope="module")
def page(browser, server):
    """The page, its emulator started by the example that it begins with."""
    emulate(browser, **READING)
    browser.get(server.page)
    panel = Panel(browser)
    panel.run()
    return panel


def arrive(panel, fragment):
    """Follow a link within the open page, and run what it holds."""
    panel.browser.execute_script("document.querySelector('[data-part=status]').textContent = '';"
                                 "history.replaceState(null, '', '#');"
                                 "location.hash = arguments[0]", fragment)
    panel.until("is here")
    panel.run()
    return panel.part("answer").get_attribute("textContent")


def put(panel, name, text):
    """Put a text into a field as pasting does."""
    panel.browser.execute_script(
        "arguments[0].value = arguments[1];"
        "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        panel.part(name) if name == "ptx" else panel.field(name), text)


def test_the_first_click_runs_the_example_that_stands_there(page):
    assert page.verdict == "wrong" and "races: 1 found" in page.status


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_an_example_s_link_opens_and_gives_what_the_emulator_says_today(page, site, every):
    names = sorted(path.name.partition(".")[0]
                   for path in (site / "_static" / "live" / "own").iterdir())
    assert len(names) >= 60 and set(names) >= {*KERNELS, *map(exercises.name, KERNELS)}
    for name in {*names[::every], *KERNELS, *map(exercises.name, KERNELS)}:
        shown = arrive(page, f"#example={name}")
        packed = gzip.decompress((site / f"_static/live/own/{name}.json.gzip").read_bytes())
        native = json.loads(Trial().ask(packed.decode()))
        assert page.verdict == native["verdict"], name
        # Sums in FP32 are added in another order by the browser's BLAS.
        if "largest error" not in native["said"]:
            assert native["said"] in shown, name


def test_pasted_triton_runs_and_an_expectation_names_the_first_wrong_element(page):
    put(page, "ptx", ptx_of("triton_softmax_sm_75"))
    page.run()
    rows = page.part("args").find_elements(By.CSS_SELECTOR, ".own-argument")
    assert len(rows) == 6 and page.part("kernel").get_attribute("value") == "softmax"
    page.browser.execute_script(
        "document.querySelector('[name=grid]').value = '64';"
        "document.querySelector('[name=shared]').value = '16'")
    put(page, "expect", "p0 = np.exp(p1) / np.exp(p1).sum(axis=1, keepdims=True)")
    assert "p0 is as expected" in page.run() and page.verdict == "right"
    put(page, "expect", "p0 = np.exp(p1)")
    assert "4,096 of 4,096 elements of p0 are wrong" in page.run()
    assert "the first, p0[0, 0], is" in page.status and page.verdict == "wrong"
    put(page, "expect", "p0 = open('x')")
    assert "unknown name open" in page.run()


def test_source_code_in_place_of_ptx_is_answered_with_how_to_compile_it(page):
    put(page, "ptx", "__global__ void k(float* x) { x[0] = 1; }")
    assert "Compile it to PTX first" in page.status
    assert "nvcc -ptx -lineinfo" in page.part("how").text


def test_by_keyboard_alone_a_kernel_is_run_and_a_line_stepped_through(page):
    arrive(page, "#example=missing_barrier")
    page.part("ptx").click()

    def enter_at(selector):
        """Go on by Tab to what a selector names, see that the focus is shown, and press Enter."""
        for _ in range(60):
            ActionChains(page.browser).send_keys(Keys.TAB).perform()
            there = page.browser.switch_to.active_element
            if page.browser.execute_script("return arguments[0].matches(arguments[1])", there,
                                           selector):
                assert there.value_of_css_property("outline-style") != "none"
                there.send_keys(Keys.ENTER)
                return page.wait()
        raise AssertionError(f"Tab never comes to {selector}")

    enter_at("[data-part=run]")
    assert page.verdict == "wrong" and "races: 1 found" in page.status
    enter_at('[data-row="14"]')
    assert "missing_barrier.cu:14" in page.part("moment").text
    before = page.status
    assert enter_at("[data-part=forward]") != before
    assert page.part("of").text.startswith("2 of ")


# Twelve of the kernels that public reports are of: races, waits, scopes, hangs, bad addresses.
REPORTED = (
    "accumulator_unwritten", "barrier_in_branch", "bulk_copy_misaligned", "bytes_as_words",
    "cluster_barrier_of_block_scope", "flag_read_weakly", "map_changed_in_flight",
    "missing_barrier_in_tree", "producer_parity", "store_without_proxy_fence",
    "two_dynamic_arrays", "wgmma_not_awaited",
)


@pytest.mark.parametrize("one", [
    pytest.param(one, id=one.name, marks=() if one.name in REPORTED else pytest.mark.slow)
    for one in examples.specimens() if one.seen and one.says != MISSED])
def test_a_reported_mistake_s_link_shows_it(page, capsys, one):
    """The link is the command's, as somebody pastes it into a thread."""
    setting = examples._mistake(one)
    status = command([
        "emulate", str(one.path), "--arch", one.arch, "--grid", str(one.grid), "--block",
        str(one.block), "--shared", str(one.shared), "--races", "--strict", "--link",
        "--schedule", setting["schedule"], "--landing", setting["landing"],
        "--seed", str(setting.get("seed", 0)), *(f"--arg={word}" for word in one.words)])
    said, _, address = capsys.readouterr().out.rstrip().rpartition("\n")
    assert status == 1 and address.startswith(link.PAGE)
    shown = arrive(page, "#k=" + address.partition("#k=")[2])
    assert page.verdict == "wrong" and (one.says in shown or one.says == ANY)
    finding = next(line for line in said.split("\n") if one.name + ".cu:" in line)
    assert re.search(rf"{one.name}\.cu:\d+", finding)[0] in shown


def test_what_python_links_the_browser_reads_and_the_other_way_round(page):
    one = examples._foreign("triton_racing_sm_80", **examples._COMPILERS["triton_racing_sm_80"])
    shown = arrive(page, "#k=" + link.link(one).partition("#k=")[2])
    assert "races" in shown and page.verdict == "wrong"
    page.browser.execute_cdp_cmd("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.click("link")
    page.until("is copied|field below")
    back = unpacked(page.browser.current_url)
    assert back["args"] == one["args"] and back["ptx"] == one["ptx"] and back["shared"] == 16
    page.click("report")
    page.until("report is copied|field below")


@pytest.mark.parametrize("fragment", ["k=AAAA", "k=!!", "k=" + "A" * 90, "example=none"])
def test_a_link_that_holds_nothing_is_said(page, fragment):
    page.browser.execute_script("location.hash = arguments[0]", "#" + fragment)
    page.until("holds no kernel|can't be loaded")


def test_a_long_run_says_how_far_it_is_and_is_stopped(page):
    loop = (".version 7.0\n.target sm_80\n.address_size 64\n"
            ".visible .entry spin(.param .u32 n)\n{\n.reg .u32 %r<3>;\n.reg .pred %p1;\n"
            "mov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1;\n"
            "setp.lt.u32 %p1, %r1, 20000;\n@%p1 bra L;\nret;\n}\n")
    fragment = link.link({"ptx": loop, "kernel": "spin", "args": ["n=uint32:1"], "grid": [4096],
                          "block": [256]}).partition("#")[2]
    page.browser.execute_script("location.hash = arguments[0]", "#" + fragment)
    page.until("is here")
    page.click("run")
    page.until(r"Running: [\d,]+ of 4,096 blocks")
    assert "Stopped" in page.press("stop")


def test_nothing_but_the_page_is_loaded_before_a_click(browser, server):
    emulate(browser, **READING)
    browser.get(server.page)
    browser.execute_script("sessionStorage.clear()")
    browser.get(server.page)
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map(each => each.name)")
    ours = {name.rpartition("/")[2].partition("?")[0] for name in names}
    assert ours <= {"panel.css", "panel.js", "own.js", "favicon.ico", "compile"}


@pytest.mark.parametrize("width, theme", [(1440, "light"), (390, "dark")])
def test_axe_finds_nothing_and_nothing_overflows(browser, server, width, theme):
    emulate(browser, **{**READING, "width": width, "theme": theme})
    browser.get(server.page)
    panel = Panel(browser)
    panel.run()
    browser.execute_script("document.querySelector('[data-row=\"14\"]').click()")
    panel.wait()
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    assert browser.execute_async_script(RUN_AXE, True) == []
    assert browser.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    emulate(browser, **READING)


def test_it_opens_and_runs_without_its_server(browser, site):
    emulate(browser, **READING)
    with serving(site) as server:
        address = f"{server.address}chapters/try.html"
        browser.get(address)
        panel = Panel(browser)
        panel.run()
        browser.execute_async_script(
            "const done = arguments[0];"
            "navigator.serviceWorker.ready.then(() => setTimeout(done, 1500))")
        browser.get(address)  # through the worker that keeps what it loads
        time.sleep(0.5)
    browser.get("about:blank")
    browser.get(f"{address}#k=" + link.link(
        examples._mistake(next(one for one in examples.specimens()
                               if one.name == "halo_unwritten"))).partition("#k=")[2])
    panel = Panel(browser)
    panel.until("is here")
    panel.run()
    assert "uninitialised read" in panel.status and panel.verdict == "wrong"


# A file as nvcc takes it.
FILE = """#include <cstdio>
#include <vector>

template <int N>
__global__ void add(const float* in, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = in[i] + N;
}

int main()
{
    std::vector<float> x(1024);
    dim3 block(64);
    add<3><<<16, block>>>(x.data(), x.data());
    printf("done\\n");
}
"""


@pytest.fixture
def compiling(browser, site):
    """The page where its server has a compiler, before a click."""
    with serving(site) as server:
        emulate(browser, **READING)
        browser.get(f"{server.address}chapters/try.html")
        panel = Panel(browser)
        WebDriverWait(browser, 20).until(lambda _: panel.part("compiler").is_displayed())
        yield panel


def run(panel, said):
    """Press "Run", which compiles first where that is due, until something is said."""
    panel.browser.execute_script(
        "document.querySelector('[data-part=status]').textContent = '';")
    panel.click("run")
    panel.until(said)
    panel.wait()


def test_a_cu_file_is_compiled_and_run_by_one_click(compiling):
    put(compiling, "ptx", FILE)
    assert "compiles it and runs it" in compiling.status
    run(compiling, "Done in")
    assert compiling.field("expression").get_attribute("value") == "add<3>"
    assert compiling.field("block").get_attribute("value") == "64,1,1"
    assert "y was written; not compared" in compiling.part("answer").text
    put(compiling, "expect", "y = in + 3")
    run(compiling, "y is as expected")
    # What was typed stays when the source is compiled again.
    put(compiling, "grid", "15")
    source = compiling.part("cuda")
    compiling.browser.execute_script(
        "arguments[0].value = arguments[0].value.replace('+ N', '+ 2 * N')", source)
    run(compiling, "1,024 of 1,024 elements of y are wrong")
    assert compiling.field("grid").get_attribute("value") == "15"


def test_a_launch_that_nobody_chose_is_called_a_guess(compiling):
    put(compiling, "ptx", "__global__ void rows(const float* x, float* y, int columns) {"
                          " int i = blockIdx.x * columns + threadIdx.x; y[i] = x[i]; }")
    run(compiling, "Done in")
    assert compiling.verdict == "wrong"
    assert "The launch is a first guess" in compiling.part("answer").text
    put(compiling, "grid", "1")
    run(compiling, "Done in")
    assert "first guess" not in compiling.part("answer").text


def test_an_example_is_changed_and_compiled(compiling):
    """The arguments of its template, its architecture and its headers are there."""
    for name, old, new in (("02_shared_tile", "sum +=", "sum -="),
                           ("wgmma_not_awaited", "WGMMA_WAIT", "WGMMA_WAIT ")):
        compiling.browser.execute_script(f"location.hash = '#example={name}'")
        compiling.until("is here")
        compiling.browser.execute_script(
            "arguments[0].value = arguments[0].value.replace(...arguments[1]) + '\\n'",
            compiling.part("cuda"), [old, new])
        run(compiling, "Done in|error|header|Template")
        assert compiling.verdict == "wrong", compiling.status


def test_the_compiler_s_refusal_is_said(compiling):
    put(compiling, "ptx", '#include "/etc/passwd"')
    compiling.click("compile")
    compiling.until("is none of the toolkit's")
