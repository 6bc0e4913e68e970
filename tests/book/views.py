"""How a test looks at a page: the window, the reader's colours, the medium."""

from __future__ import annotations

from selenium.webdriver.support.ui import WebDriverWait

READING = {"width": 1280, "height": 1000, "theme": "light", "media": "screen", "scripts": True}

# Sets the reader's colours and the medium; with it colours fade from one theme to the other.
COLOURS = "Emulation.setEmulatedMedia"

POLL = 0.02  # seconds between two looks at a page that is waited for


def emulate(browser, *, width, height, theme, media, scripts) -> set[str]:
    """Set the size of the window, the reader's colours, the medium, and whether scripts run.

    Only what is set otherwise is set: each costs a layout. Returns the commands that were needed.
    """
    wanted = {
        "Emulation.setDeviceMetricsOverride": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        COLOURS: {
            "media": media, "features": [{"name": "prefers-color-scheme", "value": theme}]},
        "Emulation.setScriptExecutionDisabled": {"value": not scripts},
    }
    windows = browser.__dict__.setdefault("emulated", {})
    now = windows.setdefault(browser.current_window_handle, {})
    needed = {command for command, given in wanted.items() if now.get(command) != given}
    for command in needed:
        browser.execute_cdp_cmd(command, wanted[command])
    now.update(wanted)
    return needed


def wait_until_drawn(browser):
    """Wait until the page is complete, and all of it is laid out."""
    WebDriverWait(browser, 20, POLL).until(
        lambda page: page.execute_script("return document.readyState") == "complete")
    # Two frames, so that what the last change set off has been laid out.
    browser.execute_async_script(
        "const done = arguments[0];"
        "requestAnimationFrame(() => requestAnimationFrame(() => done()));")
