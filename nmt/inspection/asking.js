"use strict";
/** Ask the server; an error says after how many `seconds` to try again. */
async function ask(path, options) {
  const reply = await fetch(path, options), answer = await reply.json();
  if (reply.ok) return answer;
  throw Object.assign(new Error(answer.error || `status ${reply.status}`), { seconds: Number(reply.headers.get("Retry-After")) });
}

/** True if the server shows the inside of the models of a direction, which is the value of an option. */
const isExplorable = (settings, direction) => settings.explorable.some((pair) => JSON.stringify(pair) === direction);

/** Offer the server's directions, and a field for a key if it needs one: names of languages, characters of a text, all settings. */
async function readOffer() {
  const [languages, settings] = await Promise.all([ask("languages"), ask("frontend/settings")]), select = at("direction");
  const names = new Map(languages.map(({ code, name }) => [code, name]));
  for (const { code, name, targets } of languages) {
    for (const target of targets) select.add(new Option(`${name} to ${names.get(target)}`, JSON.stringify([code, target])));
  }
  select.parentElement.hidden = select.length < 2;
  at("with-key").hidden = !settings.keyRequired;
  at("key").required = settings.keyRequired;
  if (settings.keyRequired) at("key").value ||= sessionStorage.apiKey ?? "";
  return [names, settings.charLimit, settings];
}
