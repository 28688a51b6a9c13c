"use strict";
{
  let latest = 0;
  const say = (text) => { at("asked").textContent = text; };

  async function load(path, options) {
    const reply = await fetch(path, options), found = await reply.json();
    if (!reply.ok) throw new Error(found.error || `status ${reply.status}`);
    return found;
  }

  async function begin() {
    const [languages, settings] = await Promise.all([load("languages"), load("frontend/settings")]);
    const names = new Map(languages.map((each) => [each.code, each.name]));
    const pairs = languages.flatMap((each) => each.targets.map((target) => [each.code, target]));
    options("direction", pairs.map((pair) => [JSON.stringify(pair), pair.map((code) => names.get(code) || code).join(" to ")]), JSON.stringify(pairs[0]));
    at("direction-part").hidden = pairs.length < 2;
    at("with-key").hidden = !settings.keyRequired;
    at("key").required = settings.keyRequired;
    at("sentence").focus();
  }

  async function look(event) {
    event.preventDefault();
    const [source, target] = JSON.parse(at("direction").value), asked = ++latest;
    say("Looking");
    try {
      const body = { q: at("sentence").value, given: at("given").value, source, target, api_key: at("key").value };
      const found = await load("explore", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
      if (asked !== latest) return;
      if (JSON.stringify(data.systems) !== JSON.stringify(found.systems)) data.items = [];
      data.systems = found.systems;
      data.items.push(...found.items);
      say("");
      go({ ...initial, u: state.u, d: 0, g: state.g, s: data.items.length - 1, y: body.given.trim() ? "r" : "0" });
    } catch (error) {
      if (asked === latest) say(`Not translated: ${error.message}`);
    }
  }

  at("form").addEventListener("submit", look);
  begin().catch((error) => say(`The server does not answer: ${error.message}`));
}
