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
    "--disable-component-update --disable-sync --remote-debugging-pipe "
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"  # a mouse
)

LEGIBILITY = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const numbers = (colour) => {
    if (!known.has(colour)) known.set(colour, paintPixel(colour));
    return known.get(colour);
  };
  const paintPixel = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (back, colour, share = 1) => {
    const [r, g, b, a] = numbers(colour);
    return [r, g, b].map((value, n) => a * share * value + (1 - a * share) * back[n]);
  };
  const linear = (value) => (value <= 10.31475 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const isDrawn = (element) => element instanceof SVGElement;
  const paint = (back, element) => {
    const style = getComputedStyle(element);
    if (!isDrawn(element)) return over(back, style.backgroundColor);
    if (/^(svg|g|text)$/.test(element.tagName)) return back;
    return style.fill === "none" ? over(back, style.stroke, style.strokeOpacity)
      : over(back, style.fill, style.fillOpacity);
  };
  const contrast = (one, other) => {
    const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (more + 0.05) / (less + 0.05);
  };
  const hasText = (element) => /^(SELECT|INPUT|TEXTAREA)$/.test(element.tagName)
    || (!/^(OPTION|SCRIPT|STYLE|NOSCRIPT|title)$/.test(element.tagName) && element.checkVisibility()
      && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  return [...document.querySelectorAll("body *")].filter(hasText).map((element) => {
    const box = element.getBoundingClientRect(), svg = element.closest("svg");
    const style = getComputedStyle(element, element.value === "" && element.placeholder ? "::placeholder" : null);
    const layers = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).reverse();
    const place = layers.indexOf(element), scale = svg ? element.getScreenCTM() : { a: 1, b: 0 };
    const back = layers.slice(0, place + 1).reduce(paint, [255, 255, 255]), frame = svg?.getBoundingClientRect();
    const ink = svg ? over(back, style.fill, style.fillOpacity) : over(back, style.color);
    return {
      text: element.textContent.trim().slice(0, 40) || element.id,
      size: parseFloat(style.fontSize) * Math.hypot(scale.a, scale.b),
      contrast: place < 0 ? null : contrast(ink, back),
      cut: Boolean(svg) && (box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1),
    };
  });
})()"""
"""Each text that can be seen, hints of empty fields included: its size in CSS pixels, its contrast with what is
painted below its middle (WCAG 2.2; null where it is scrolled away), and whether its picture cuts it."""


class LeftPageError(Exception):
    """The browser left the page for another one while it was asked."""


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
        if "navigated" in reply.get("error", {}).get("message", ""):
            raise LeftPageError(reply)
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

    def prefer(self, scheme: str, touch: bool = False) -> None:
        """Prefer light or dark, and point by mouse or touch; it holds for pages that are opened later too."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)

    def read_legibility(self) -> list[dict[str, Any]]:
        """What `LEGIBILITY` says of each text, in a window as high as the page."""
        width, height = self.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        texts: list[dict[str, Any]] = self.evaluate(LEGIBILITY)
        return texts

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression is true, on the next page if this one is left."""
        end = time.monotonic() + seconds
        while not self._holds(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.005)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.evaluate(condition))
        except LeftPageError:
            return False

    def type(self, text: str) -> None:
        """Insert text where the focus is; a page gives its field the focus when it is first drawn."""
        self.wait_for("document.activeElement !== document.body")
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
