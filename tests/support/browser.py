"""Chromium, driven by selenium, for tests of pages; they are skipped with a reason where it cannot be had."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}


@contextmanager
def chromium() -> Iterator[Any]:
    """A started browser without a window."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: no browser test")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and driver):
        pytest.skip("no chromium and chromedriver on the path; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1200,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    from selenium.common.exceptions import WebDriverException

    try:
        driven = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    except WebDriverException as error:
        pytest.skip(f"Chromium is installed but does not start: {(error.msg or '').splitlines()[:1]}")
    try:
        yield driven
    finally:
        driven.quit()


def open_on_phone(driver: Any, page: Path) -> None:
    """Opens a file on a screen of 360 by 740 pixels."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    driver.get(page.as_uri())
