"""The page of a reader's own kernel in a real browser: examples, links, pasted PTX, offline."""

import functools
import gzip
import http.server
import json
import threading
import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from book import serve
from book.panel import examples
from lib.compiler import link
from lib.panel.trial import Trial
from tests.book.test_browser import AXE, RUN_AXE
from tests.book.views import READING, emulate
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
    handler = functools.partial(Published, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.page = f"http://127.0.0.1:{server.server_port}/chapters/try.html"
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def page(browser, server):
    """The page, its emulator started by the example that it begins with."""
    emulate(browser, **READING)
    browser.get(server.page)
    panel = Panel(browser)
    panel.click("run")
    panel.wait()
    return panel


def arrive(panel, fragment):
    """Follow a link within the open page, and run what it holds."""
    panel.browser.execute_script("document.querySelector('[data-part=status]').textContent = '';"
                                 "history.replaceState(null, '', '#');"
                                 "location.hash = arguments[0]", fragment)
    panel.until("is here")
    panel.click("run")
    panel.wait()
    return panel.part("answer").get_attribute("textContent")


def put(panel, name, text):
    """Put a text into a field as pasting does."""
    panel.browser.execute_script(
        "arguments[0].value = arguments[1];"
        "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        panel.part(name) if name == "ptx" else panel.field(name), text)


def test_the_first_click_runs_the_example_that_stands_there(page):
    assert page.verdict == "wrong" and "races: 1 found" in page.status


def test_every_example_s_link_opens_and_gives_what_the_emulator_says_today(page, site):
    names = sorted(path.name.partition(".")[0]
                   for path in (site / "_static" / "live" / "own").iterdir())
    assert len(names) >= 60
    for name in names:
        shown = arrive(page, f"#example={name}")
        packed = gzip.decompress((site / f"_static/live/own/{name}.json.gzip").read_bytes())
        native = json.loads(Trial().ask(packed.decode()))
        assert page.verdict == native["verdict"], name
        # Sums in FP32 are added in another order by the browser's BLAS.
        if "largest error" not in native["said"]:
            assert native["said"] in shown, name


def test_a_wrong_kernel_shows_its_line_and_its_cure(page):
    shown = arrive(page, "#example=missing_barrier")
    assert "race: missing_barrier.cu:10 and missing_barrier.cu:14" in shown
    assert "What to do: __syncthreads() between the two lines" in shown
    marked = page.part("answer").find_elements(By.CSS_SELECTOR, ".try-source .live-now code")
    assert [one.get_attribute("textContent").strip() for one in marked] == [
        "s[threadIdx.x] = x[threadIdx.x];", "y[threadIdx.x] = s[63 - threadIdx.x];"]


def test_pasted_triton_runs_and_an_expectation_names_the_first_wrong_element(page):
    put(page, "ptx", ptx_of("triton_softmax_sm_75"))
    page.click("run")
    page.wait()
    rows = page.part("args").find_elements(By.CSS_SELECTOR, ".own-argument")
    assert len(rows) == 6 and page.part("kernel").get_attribute("value") == "softmax"
    page.browser.execute_script(
        "document.querySelector('[name=grid]').value = '64';"
        "document.querySelector('[name=shared]').value = '16'")
    put(page, "expect", "p0 = np.exp(p1) / np.exp(p1).sum(axis=1, keepdims=True)")
    page.click("run")
    assert "p0 is as expected" in page.wait() and page.verdict == "right"
    put(page, "expect", "p0 = np.exp(p1)")
    page.click("run")
    assert "4,096 of 4,096 elements of p0 are wrong" in page.wait()
    assert "the first, p0[0, 0], is" in page.status and page.verdict == "wrong"
    put(page, "expect", "p0 = open('x')")
    page.click("run")
    assert "unknown name open" in page.wait()


def test_source_code_in_place_of_ptx_is_answered_with_how_to_compile_it(page):
    put(page, "ptx", "__global__ void k(float* x) { x[0] = 1; }")
    assert "Compile it to PTX first" in page.status
    assert "nvcc -ptx -lineinfo" in page.part("how").text


def test_a_line_leads_to_the_stepper(page):
    arrive(page, "#example=missing_barrier")
    page.browser.execute_script("document.querySelector('[data-row=\"14\"]').click()")
    page.wait()
    assert "missing_barrier.cu:14" in page.part("moment").text
    before = page.status
    page.click("forward")
    assert page.wait() != before and page.part("of").text.startswith("2 of ")


def test_what_python_links_the_browser_reads_and_the_other_way_round(page):
    one = examples._foreign("triton_racing_sm_80", **examples._COMPILERS["triton_racing_sm_80"])
    shown = arrive(page, "#k=" + link.link(one).partition("#k=")[2])
    assert "races" in shown and page.verdict == "wrong"
    page.browser.execute_cdp_cmd("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.click("link")
    page.until("is copied|field below")
    back = link.unpacked(page.browser.current_url)
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
    page.click("stop")
    assert "Stopped" in page.wait()


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
    panel.click("run")
    panel.wait()
    browser.execute_script("document.querySelector('[data-row=\"14\"]').click()")
    panel.wait()
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    assert browser.execute_async_script(RUN_AXE, True) == []
    assert browser.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    emulate(browser, **READING)


def test_it_opens_and_runs_without_its_server(browser, site):
    handler = functools.partial(serve.Handler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/chapters/try.html"
    emulate(browser, **READING)
    browser.get(address)
    panel = Panel(browser)
    panel.click("run")
    panel.wait()
    browser.execute_async_script(
        "const done = arguments[0];"
        "navigator.serviceWorker.ready.then(() => setTimeout(done, 1500))")
    browser.get(address)  # through the worker that keeps what it loads
    time.sleep(0.5)
    server.shutdown()
    server.server_close()
    browser.get("about:blank")
    browser.get(f"{address}#k=" + link.link(
        examples._mistake(next(one for one in examples.specimens()
                               if one.name == "halo_unwritten"))).partition("#k=")[2])
    panel = Panel(browser)
    panel.until("is here")
    panel.click("run")
    panel.wait()
    assert "uninitialised read" in panel.status and panel.verdict == "wrong"


def test_cuda_is_compiled_where_the_server_has_a_compiler(browser, site):
    handler = functools.partial(serve.Handler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    emulate(browser, **READING)
    browser.get(f"http://127.0.0.1:{server.server_port}/chapters/try.html")
    panel = Panel(browser)
    WebDriverWait(browser, 20).until(lambda _: panel.part("compiler").is_displayed())
    put(panel, "ptx", "template <int N> __global__ void add(const float* x, float* y)\n{\n"
                      "    int i = blockIdx.x * 256 + threadIdx.x;\n    y[i] = x[i] + N;\n}\n")
    assert "then compile" in panel.status
    panel.field("expression").send_keys("add<3>")
    panel.click("compile")
    panel.until("Compiled")
    browser.execute_script("document.querySelector('[name=grid]').value = '4'")
    put(panel, "expect", "y = x + 3")
    panel.click("run")
    assert "y is as expected" in panel.wait()
    put(panel, "ptx", '#include "/etc/passwd"')
    panel.click("compile")
    panel.until("is none of the toolkit's")
    server.shutdown()
    server.server_close()
