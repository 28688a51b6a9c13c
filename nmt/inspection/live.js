"use strict";
{
  let latest = 0;
  const say = (text) => { at("asked").textContent = text; };

  async function begin() {
    const [, , settings] = await readOffer(), select = at("direction");
    if (settings.explorable.length) { // else the server's reply says why none is
      for (const option of [...select.options]) if (!isExplorable(settings, option.value)) option.remove();
    }
    select.parentElement.hidden = select.length < 2;
    at("sentence").focus();
  }

  /** Show what is in the form; false if it was not translated, or something else was asked meanwhile. */
  async function look() {
    const [source, target] = JSON.parse(at("direction").value), asked = ++latest;
    say("Looking");
    try {
      const body = { q: at("sentence").value, given: at("given").value, source, target, api_key: at("key").value };
      const found = await ask("explore", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
      if (asked !== latest) return false;
      if (JSON.stringify(data.systems) !== JSON.stringify(found.systems)) data.items = [];
      data.systems = found.systems;
      // Each reply numbers its words anew.
      data.items.push(...found.items.map((item) => ({ ...item, words: found.words, from: source, to: target })));
      say("");
      go({ ...initial, u: state.u, o: state.o, d: 0, g: state.g, s: data.items.length - 1, y: body.given.trim() ? "r" : "0" });
      return true;
    } catch (error) {
      if (asked === latest) say(`Not translated: ${error.message}`);
      return false;
    }
  }

  /** Show the sentence that the address names. */
  async function open() {
    const hash = location.hash, wanted = new URLSearchParams(hash.slice(1));
    if (!wanted.get("q")) return;
    if (wanted.has("from")) {
      at("direction").value = JSON.stringify([wanted.get("from"), wanted.get("to")]);
      if (!at("direction").value) {
        at("direction").selectedIndex = 0;
        return say(`Not translated: this server shows no model from ${wanted.get("from")} to ${wanted.get("to")}`);
      }
    }
    at("sentence").value = wanted.get("q");
    at("given").value = wanted.get("p") ?? "";
    if (!await look()) return;
    history.replaceState(null, "", `${hash}&s=${data.items.length - 1}`);
    follow();
  }

  // The address names the sentence itself, as its place in the list ends with the page.
  data.asked = (s) => ({ s: 0, q: data.items[s]?.source, p: data.items[s]?.of[0].ref?.text, from: data.items[s]?.from, to: data.items[s]?.to });
  on("form", "submit", (event) => { event.preventDefault(); look(); });
  addEventListener("hashchange", open);
  begin().then(open).catch((error) => say(`The server does not answer: ${error.message}`));
}
