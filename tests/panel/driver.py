"""How a test works a panel of an open page."""

from __future__ import annotations

import re

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

MAX_SECONDS = 120  # s; a start takes a tenth where nothing else runs


class Panel:
    """One panel of an open page."""

    def __init__(self, browser, number=0):
        self.browser = browser
        self.root = browser.find_elements(By.CSS_SELECTOR, "[data-live]")[number]

    def part(self, name):
        return self.root.find_element(By.CSS_SELECTOR, f'[data-part="{name}"]')

    def field(self, name):
        return self.root.find_element(By.CSS_SELECTOR, f'[name="{name}"]')

    def click(self, name):
        self.browser.execute_script("arguments[0].click()", self.part(name))

    def press(self, name):
        """Click, and wait for the answer."""
        self.click(name)
        return self.wait()

    @property
    def busy(self):
        return self.root.get_attribute("data-busy") is not None

    @property
    def status(self):
        return self.part("status").get_attribute("textContent")

    def wait(self):
        WebDriverWait(self.browser, MAX_SECONDS, 0.1).until(lambda _: not self.busy, self.status)
        return self.status

    def until(self, said):
        WebDriverWait(self.browser, MAX_SECONDS, 0.02).until(
            lambda _: re.search(said, self.status), said)

    def choose(self, number):
        """Choose a mistake at its line of the source; None takes it out."""
        if number is None:
            self.click("cure")
            return
        if not self.part("seeds").is_displayed():
            self.press("choose")
        self.browser.execute_script("arguments[0].click()", self.seed(number))

    def seed(self, number):
        """The button of a mistake."""
        return self.part("seeds").find_element(By.CSS_SELECTOR, f'[data-mistake="{number}"]')

    def run(self, **values):
        for name, value in values.items():
            field = self.field(name)
            if field.tag_name == "select":
                Select(field).select_by_value(value)
            else:
                field.clear()
                field.send_keys(value)
        return self.press("run")

    @property
    def verdict(self):
        return self.root.get_attribute("data-verdict")
