// What both pages share: talking to the server, the person's name, items, messages. The server
// knows everything; the page shows its state and sends what people do. That counts only when the
// server has acknowledged it: until then it is sent again (which the server takes for one).

const RETRY_SECONDS = [0.5, 1, 2, 4, 8];
const STORING = new Set(["/api/answer", "/api/move", "/api/finish"]);
export const $ = (id) => document.getElementById(id);
export const page = { state: null, mode: null }; // what the server last said, and who shows it

// -- talking to the server -----------------------------------------------------------------------

class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function call(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Likewise": "1" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, { ...options, credentials: "same-origin", cache: "no-store" });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error || "The server refused this.");
  return answer;
}

// Try until the server has answered: a lost connection or a busy server is waited for.
async function insist(path, body) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await call(path, body);
      trouble("");
      return answer;
    } catch (error) {
      const passing = !(error instanceof Refused) || error.status === 429 || error.status >= 500;
      if (!passing) throw error;
      const first = STORING.has(path) ? "Not stored yet: the" : "The";
      trouble(`${first} server cannot be reached or is busy. Trying again…`);
      const seconds = RETRY_SECONDS[Math.min(attempt, RETRY_SECONDS.length - 1)];
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    }
  }
}

// Speak to the server as the person this page belongs to. Another tab may have changed the
// session's name meanwhile: then take up our own again, once, and repeat.
export async function asMyself(path, body) {
  const mine = { ...body, annotator: page.state.annotator };
  try {
    return await insist(path, mine);
  } catch (error) {
    if (error.status !== 409 && error.status !== 401) throw error;
    const fresh = await insist("/api/join", { annotator: page.state.annotator });
    try {
      return await insist(path, mine);
    } catch (again) {
      if (again.status !== 409 && again.status !== 422) throw again;
      trouble(sentence(again.message)); // done elsewhere: go on with what is open
      return fresh;
    }
  }
}

// One thing after the other; each waits for those before.
let turn = Promise.resolve();
export let waiting = 0;
export function inTurn(work) {
  waiting += 1;
  turn = turn.then(work).catch((error) => trouble(sentence(error.message))).finally(() => {
    waiting -= 1;
  });
  return turn;
}

// One thing at a time; what is asked for meanwhile is not done.
export function exclusively(work) {
  return waiting > 0 ? turn : inTurn(work);
}

// -- the person ----------------------------------------------------------------------------------

function join(name) {
  return exclusively(async () => {
    $("name-error").textContent = "";
    try {
      show(await insist("/api/join", { annotator: name }));
      page.mode.begin();
      say(page.mode.describe());
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      show({ ...page.state, annotator: null });
      $("name").value = name;
      $("name-error").textContent = sentence(error.message);
      $("name").focus();
    }
  });
}

function leave() {
  return exclusively(async () => {
    history.replaceState(null, "", "/");
    show(await insist("/api/leave", {}));
    $("name").focus();
    $("name").select();
  });
}

// -- what the person sees ------------------------------------------------------------------------

export function show(next) {
  page.state = next;
  const joined = next.annotator !== null;
  const open = joined && page.mode.isOpen(next);
  $("join").hidden = joined;
  $("who").hidden = !joined;
  $("below").hidden = !joined;
  $("judge").hidden = !open || next.mode !== "pairs";
  $("sorting").hidden = !open || next.mode !== "sort";
  $("done").hidden = !joined || open;
  if (!joined) return;
  $("annotator").textContent = next.annotator;
  $("undo").disabled = next.undo === null;
  showProgress(next.mine, next.everyone);
  if (open) page.mode.show(next);
  else showDone(next);
}

function showProgress(mine, everyone) {
  const count = document.createElement("b");
  count.textContent = mine.toLocaleString("en");
  const what = page.mode.did(mine);
  const rest = everyone > mine ? `${what} by you, ${everyone.toLocaleString("en")} in all` : what;
  $("progress").replaceChildren(count, rest === what ? page.mode.done(mine) : rest);
}

function showDone(next) {
  const finish = next.finish || {};
  $("done-title").textContent = next.finish ? "Thank you, that was all" : page.mode.allDone;
  $("done-text").textContent = finish.address
    ? "Every answer is stored. “Finish” takes you back to where you came from."
    : "You have judged all there are. Thank you: every answer is stored, and you may close this page.";
  $("done-code").hidden = !finish.code;
  $("code").textContent = finish.code || "";
  $("done-link").hidden = !finish.address;
  if (finish.address) $("finish-link").href = finish.address;
}

// Everything from an item goes in as text or as an attribute, never as markup.
export function showItem(figure, item, side) {
  const parts = [item.picture ? picture(item.picture, side) : cells(item.cells, side)];
  if (item.name !== undefined) {
    const caption = document.createElement("figcaption");
    caption.textContent = item.name;
    parts.push(caption);
  }
  figure.replaceChildren(...parts);
}

export function picture(url, side) {
  const image = document.createElement("img");
  image.alt = `${side} picture`;
  image.decoding = "async";
  image.draggable = false;
  image.addEventListener("load", () => {
    const side = Math.max(image.naturalWidth, image.naturalHeight);
    image.className = side <= 64 ? "tiny" : side <= 320 ? "small" : "";
  });
  image.addEventListener("error", () => {
    const note = document.createElement("span");
    note.className = "broken";
    note.textContent = page.mode.broken(side);
    image.replaceWith(note);
  });
  image.src = url;
  return image;
}

function cells(rows, side) {
  const list = document.createElement("dl");
  list.className = rows.length === 1 ? "cells single" : "cells";
  list.tabIndex = 0; // long rows scroll, also by keyboard
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", `${side} item`);
  for (const [column, text] of rows) {
    const term = document.createElement("dt");
    const value = document.createElement("dd");
    term.textContent = column;
    value.textContent = text === "" ? "—" : text;
    list.append(term, value);
  }
  return list;
}

export function trouble(text) {
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = text === "";
}

export function say(text) {
  $("status").textContent = text;
}

// A name as the server keeps it.
function tidy(name) {
  return name.normalize("NFC").trim().split(/\s+/).join(" ");
}

export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// -- keys, buttons, the start --------------------------------------------------------------------

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (!page.state || page.state.annotator === null || $("close-up").open) return;
  if (event.target.closest("input[type=text]")) return;
  page.mode.onKey(event, $("shortcuts").checked);
}

function onShortcuts() {
  const on = $("shortcuts").checked;
  document.body.classList.toggle("no-keys", !on);
  localStorage.setItem("likewise-shortcuts", on ? "on" : "off");
}

export async function start(modes) {
  $("shortcuts").checked = localStorage.getItem("likewise-shortcuts") !== "off";
  onShortcuts();
  $("shortcuts").addEventListener("change", onShortcuts);
  document.addEventListener("keydown", onKey);
  $("leave").addEventListener("click", leave);
  $("join-form").addEventListener("submit", (event) => {
    event.preventDefault();
    join($("name").value);
  });

  const address = new URL(location.href);
  if (address.searchParams.has("token")) {
    // The session has it now; it should not stay in the address bar and the history.
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  }
  const first = await insist("/api/state");
  page.mode = modes[first.mode];
  for (const part of document.querySelectorAll("[data-mode]")) {
    part.hidden = part.dataset.mode !== first.mode;
  }
  page.mode.prepare();
  $("question").textContent = first.question;
  $("task").textContent = first.question;
  show(first);
  const given = first.parameters.find((name) => address.searchParams.has(name));
  const name = given === undefined ? null : address.searchParams.get(given);
  if (first.annotator === null) {
    if (name === null) $("name").focus();
    else await join(name);
    return;
  }
  say(page.mode.describe());
  // A link may say who begins here, but not under whose name a person goes on.
  if (name !== null && tidy(name) !== first.annotator) {
    trouble(`You are judging as ${first.annotator}; the link says ${tidy(name)}. `
      + "To judge under that name, press “Change name”.");
    $("name").value = tidy(name);
  }
}
