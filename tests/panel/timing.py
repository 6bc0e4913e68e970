"""How long a panel takes in a browser on this machine, from the click to the first result and then.

    python -m tests.panel.timing                    every chapter, each from an empty cache
    python -m tests.panel.timing 02_shared_tile     some

It prints a line for each chapter: seconds from the click to the first result at 128×128×128
(cold); the median of some further runs, each with another α (warm); the longest task that blocked
the page; and where the cold seconds went. Nothing else should run beside it. It ends with 1 if a
figure passes its bound.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from lib.kernels.catalogue import CATALOGUE
from tests.book.conftest import serving, start_browser
from tests.book.views import READING, emulate
from tests.conftest import find_browser
from tests.panel.conftest import fill
from tests.panel.driver import Panel

COLD, WARM = 12.0, 1.5  # s
BLOCKED = 50.0  # ms; shorter tasks are not reported at all
ALPHAS = ("1.5", "2.5", "-0.5")

WATCH = """
window.noted = [];
window.tasks = [];
const status = document.querySelector('[data-part="status"]');
new MutationObserver(() => noted.push([performance.now(), status.textContent]))
  .observe(status, {childList: true});
new PerformanceObserver(list => list.getEntries().forEach(entry => tasks.push(entry.duration)))
  .observe({type: 'longtask'});
"""


def stages(noted: list[tuple[float, str]]) -> dict[str, float]:
    """Seconds of each state of the panel, from what its line of status said when."""
    spent: dict[str, float] = {}
    for (begun, said), (ended, _) in zip(noted, noted[1:], strict=False):
        name = "Loading" if said.startswith("Loading ") and "MB" in said else said
        spent[name] = spent.get(name, 0.0) + (ended - begun) / 1000
    return spent


def measured(browser, address: str, stem: str) -> dict[str, object]:
    """Time one chapter's panel from an empty cache.

    Returns
    -------
    dict
        ``cold`` and ``warm``, s; ``blocked``, ms; ``stages``.

    Raises
    ------
    RuntimeError
        If a run is not right.
    """
    browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", {
        "origin": address.rstrip("/"), "storageTypes": "all"})
    browser.get(f"{address}chapters/{stem}.html")
    panel = Panel(browser)
    browser.execute_script(WATCH)

    def run(**values: str) -> float:
        browser.execute_script("noted.length = 0")
        panel.run(**values)
        if panel.verdict != "right":
            raise RuntimeError(f"{stem}: {panel.status}")
        noted = browser.execute_script("return noted")
        return (noted[-1][0] - noted[0][0]) / 1000

    cold = run()
    spent = stages(browser.execute_script("return noted"))
    warm = statistics.median(run(alpha=alpha) for alpha in ALPHAS)
    blocked = max(browser.execute_script("return tasks"), default=0.0)
    return {"cold": cold, "warm": warm, "blocked": blocked, "stages": spent}


def main() -> int:
    """Read the command line, and print the figures."""
    parser = argparse.ArgumentParser(description="Time the panels in a browser.")
    parser.add_argument("stems", nargs="*", metavar="CHAPTER",
                        help="such as 02_shared_tile; all by default")
    stems = tuple(parser.parse_args().stems) or tuple(CATALOGUE)
    paths = find_browser()
    if paths is None or set(stems) - set(CATALOGUE):
        print("timing: no Chrome or Chromium with its driver" if paths is None else
              f"timing: no such chapter: {', '.join(set(stems) - set(CATALOGUE))}", file=sys.stderr)
        return 2
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "site")
        root.mkdir()
        fill(root, stems)
        browser = start_browser(paths, Path(folder, "profile"))
        with browser, serving(root) as server:
            emulate(browser, **READING)
            for stem in stems:
                found = measured(browser, server.address, stem)
                fits = (found["cold"] <= COLD and found["warm"] <= WARM
                        and found["blocked"] <= BLOCKED)
                passed = passed and fits
                parts = ", ".join(f"{name} {time:.1f}" for name, time in found["stages"].items())
                print(f"{stem:24} cold {found['cold']:5.1f} s, warm {found['warm']:5.2f} s, page "
                      f"blocked {found['blocked']:3.0f} ms{'' if fits else ', over'} ({parts})",
                      flush=True)
    print(f"bounds: cold {COLD:g} s, warm {WARM:g} s, page blocked {BLOCKED:g} ms: "
          f"{'kept' if passed else 'not kept'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
