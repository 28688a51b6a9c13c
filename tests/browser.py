"""A headless Chromium, driven by the Chrome DevTools Protocol over a pair of pipes."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
)


class Page:
    """A page in the browser.

    Attributes:
        problems: Messages of errors and of violations of the content security policy.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self.problems: list[str] = []
        self._reading, self._writing = reading, writing
        self._rest = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Log", "Runtime", "Page"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while (reply := self._receive()).get("id") != number:
            said = reply.get("params", {})
            informs = said.get("entry", {}).get("level") == "info"  # of what it did, such as ignoring an autofocus
            if reply.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown") and not informs:
                self.problems.append(json.dumps(said))
        assert "error" not in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._reading, 1 << 16)
            assert chunk, "Chromium has ended"
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        value: dict[str, Any] = json.loads(message)
        return value

    def open(self, url: str, width: int, height: int = 800) -> None:
        """Load a page in a window of a size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def type(self, text: str) -> None:
        """Insert text where the focus is."""
        self.call("Input.insertText", text=text)

    def click(self, name: str) -> None:
        """Click the middle of the element of an id, as a person does."""
        element = f"document.getElementById({name!r})"
        self.evaluate(f"{element}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(f"{element}.getBoundingClientRect().toJSON()")
        place = {"x": (box["left"] + box["right"]) / 2, "y": (box["top"] + box["bottom"]) / 2}
        for event in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=event, button="left", clickCount=1, **place)

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        """Press and release a key; `code` is its Windows virtual key code, modifier 2 is the control key."""
        for event in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=event,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
                text="\r" if key == "Enter" and event == "keyDown" else "",
            )

    def save_picture(self, path: Path) -> None:
        """Write a screenshot as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def browsing() -> Iterator[Page]:
    """A page of a new browser with an empty profile."""
    assert CHROMIUM is not None
    from_us, ours = os.pipe()
    theirs, to_them = os.pipe()

    def connect() -> None:
        for number, source in ((3, os.dup(from_us)), (4, os.dup(to_them))):
            os.dup2(source, number)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *OPTIONS.split(), f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_them)
        try:
            yield Page(theirs, ours)
        finally:
            process.terminate()
            process.wait()
            os.close(theirs)
            os.close(ours)
