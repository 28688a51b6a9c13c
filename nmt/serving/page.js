"use strict";
const PAUSE = 400, LONGEST_TYPED = 2000; // milliseconds without a key; characters that are translated unasked
const EXAMPLES = {
  cs: "Ona čte knihu.", de: "Sie liest ein Buch.", en: "She is reading a book.", es: "Ella lee un libro.", fr: "Elle lit un livre.",
  it: "Lei legge un libro.", ja: "彼女は本を読んでいる。", pt: "Ela lê um livro.", ru: "Она читает книгу.", zh: "她在看书。",
};
const at = (id) => document.getElementById(id);
const showStatus = (text) => { at("status").textContent = text; };
let names, limit, settings, sending, timer, running, delay = 0, notBefore = 0;

/** Show what text and direction lead to, and translate after a pause in typing. */
function change() {
  if (!names) return; // too early
  const [source, target] = JSON.parse(at("direction").value), text = at("text").value, length = [...text].length;
  const [line, ...others] = text.split("\n").filter((one) => one.trim());
  clearTimeout(timer);
  running?.abort();
  for (const [id, code] of [["text", source], ["result", target]]) {
    at(id).lang = code;
    at(`${id}-name`).textContent = names.get(code);
  }
  at("swap").value = JSON.stringify([target, source]);
  at("swap").hidden = ![...at("direction").options].some(({ value }) => value === at("swap").value);
  const example = at("example");
  example.value = EXAMPLES[source.slice(0, 2)] ?? "";
  example.textContent = `Try “${example.value}”`;
  example.hidden = Boolean(text) || !example.value;
  at("count").hidden = !example.hidden;
  at("count").textContent = `${length.toLocaleString("en")} of ${limit.toLocaleString("en")} characters`;
  at("count").className = length > limit ? "over" : "";
  at("inside").hidden = !isExplorable(settings, at("direction").value);
  at("inside").textContent = others.length ? "Look inside the first line" : "Look inside";
  at("inside").href = line ? `explore#${new URLSearchParams({ from: source, to: target, q: line.trim() })}` : "explore";
  if (!line) at("result").textContent = "";
  showStatus(length > limit ? "Too long" : !at("key").checkValidity() ? "This server needs an API key"
    : length > LONGEST_TYPED ? "Press Translate: a long text is not translated unasked" : "");
  if (at("key").required) sessionStorage.apiKey = at("key").value;
  delay = 0;
  if (line && length <= Math.min(limit, LONGEST_TYPED) && at("form").checkValidity()) {
    timer = setTimeout(translate, Math.max(PAUSE, notBefore - Date.now()));
  }
}

/** What a reply says of sentences that stay as they are. */
function describe({ unreadSentences, loopedSentences }) {
  const unchanged = (number, reason) => `${number === 1 ? "1 sentence is" : `${number} sentences are`} unchanged: ${reason}`;
  const notes = [];
  if (unreadSentences) notes.push(unchanged(unreadSentences, "the model knows none of the words"));
  if (loopedSentences) notes.push(unchanged(loopedSentences, "the model only repeats words"));
  return notes.join("; ") || "Done";
}

/** Translate the text instead of what is being translated; try again when a busy server allows it. */
async function translate(event) {
  event?.preventDefault();
  const [source, target] = JSON.parse(at("direction").value);
  clearTimeout(timer);
  running?.abort();
  const { signal } = running = new AbortController();
  showStatus("Translating");
  try {
    const body = new URLSearchParams({ q: at("text").value, source, target, api_key: at("key").value });
    const reply = await ask("translate", { method: "POST", body, signal });
    at("result").textContent = reply.translatedText;
    showStatus(describe(reply));
  } catch (error) {
    if (signal.aborted) return;
    delay = Math.max(error.seconds || 0, 2 * delay);
    notBefore = Date.now() + 1000 * delay;
    if (error.seconds) timer = setTimeout(translate, 1000 * delay);
    showStatus(`Not translated: ${error.message}${error.seconds ? `; trying again in ${delay} s` : ""}`);
  }
}

/** Translate a file, and offer what comes back. */
async function translateFile(file) {
  if (!file || !names) return;
  const show = (text) => { at("file-status").textContent = text; }, [source, target] = JSON.parse(at("direction").value);
  sending?.abort();
  at("saved").hidden = true;
  if (!at("key").checkValidity()) {
    at("key").focus();
    return show("This server needs an API key");
  }
  if (file.size > settings.fileLimit) return show(`${file.name} is larger than ${settings.fileLimit.toLocaleString("en")} bytes`);
  const { signal } = sending = new AbortController(), body = new FormData();
  for (const [name, value] of Object.entries({ source, target, api_key: at("key").value, file })) body.append(name, value);
  show(`Translating ${file.name}`);
  try {
    const reply = await ask("translate_file", { method: "POST", body, signal }), name = reply.translatedFileUrl.split("/").pop();
    at("saved").href = `download_file/${name}`;
    at("saved").textContent = `Save ${name.slice(name.indexOf(".") + 1)}`;
    at("saved").hidden = false;
    show(describe(reply));
  } catch (error) {
    if (signal.aborted) return;
    const { seconds } = error;
    show(`Not translated: ${error.message}${seconds ? `; trying again in ${seconds} s` : ""}`);
    if (seconds) setTimeout(() => { if (!signal.aborted) translateFile(file); }, 1000 * seconds); // unless another file came
  }
}

/** Show what the server offers. */
function begin() {
  at("file").accept = settings.supportedFilesFormat.join();
  at("about-inside").hidden = !settings.explorable.length;
  change();
}

function fill(text) {
  at("text").value = text;
  at("text").focus();
  change();
}

for (const id of ["direction", "key", "text"]) at(id).addEventListener(id === "text" ? "input" : "change", change);
at("example").addEventListener("click", () => fill(at("example").value));
at("swap").addEventListener("click", () => {
  at("direction").value = at("swap").value;
  fill(at("result").textContent || at("text").value);
});
at("copy").addEventListener("click", () => {
  getSelection().selectAllChildren(at("result")); // navigator.clipboard is missing on pages without TLS
  showStatus(document.execCommand("copy") ? "Copied" : "Copy the marked text");
});
at("form").addEventListener("submit", translate);
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
at("file").addEventListener("change", () => { translateFile(at("file").files[0]); });
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return; // text is dropped as everywhere
    event.preventDefault();
    at("drop").classList.toggle("over-it", name === "dragover");
    if (name === "drop") {
      at("file").value = "";
      translateFile(event.dataTransfer.files[0]);
    }
  });
}
readOffer().then((offer) => { [names, limit, settings] = offer; begin(); }).catch((error) => showStatus(`The server does not answer: ${error.message}`));
