// The page on which people judge. The server knows everything; this file shows its state and
// sends answers. An answer counts only when the server has acknowledged it: until then the pair
// stays, and the same answer is sent again (which the server takes for one).
"use strict";

const RETRY_SECONDS = [0.5, 1, 2, 4, 8];
const WORDS = { same: "same", different: "different", unsure: "not sure" };
const $ = (id) => document.getElementById(id);

let state = null; // what the server last said
let busy = false; // an answer is on its way

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
      const first = path === "/api/answer" ? "Not stored yet: the" : "The";
      trouble(`${first} server cannot be reached or is busy. Trying again…`);
      const seconds = RETRY_SECONDS[Math.min(attempt, RETRY_SECONDS.length - 1)];
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    }
  }
}

// -- what the person does ------------------------------------------------------------------------

async function exclusively(work) {
  if (busy) return;
  busy = true;
  $("pair").classList.add("waiting");
  try {
    await work();
  } catch (error) {
    trouble(sentence(error.message));
  } finally {
    busy = false;
    $("pair").classList.remove("waiting");
  }
}

// Speak to the server as the person this page belongs to. Another tab may have changed the
// session's name meanwhile: then take up our own again, once, and repeat.
async function asMyself(path, body) {
  const mine = { ...body, annotator: state.annotator };
  try {
    return await insist(path, mine);
  } catch (error) {
    if (error.status !== 409 && error.status !== 401) throw error;
    const fresh = await insist("/api/join", { annotator: state.annotator });
    try {
      return await insist(path, mine);
    } catch (again) {
      if (again.status !== 409 && again.status !== 422) throw again;
      trouble(sentence(again.message)); // answered elsewhere: go on with what is open
      return fresh;
    }
  }
}

function answer(choice) {
  return exclusively(async () => {
    if (!state || !state.pair) return;
    show(await asMyself("/api/answer", { ticket: state.pair.ticket, answer: choice }));
    say(`Stored: ${WORDS[choice]}. ${describe()}`);
  });
}

function undo() {
  return exclusively(async () => {
    if (!state || state.undo === null) return;
    show(await asMyself("/api/undo", { judgement: state.undo }));
    say(`Undone. ${describe()}`);
  });
}

function join(name) {
  return exclusively(async () => {
    $("name-error").textContent = "";
    try {
      show(await insist("/api/join", { annotator: name }));
      $("question").focus();
      say(describe());
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      show({ annotator: null, question: $("question").textContent });
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

function show(next) {
  state = next;
  const joined = next.annotator !== null;
  $("join").hidden = joined;
  $("who").hidden = !joined;
  $("below").hidden = !joined;
  $("judge").hidden = !joined || next.pair === null;
  $("done").hidden = !joined || next.pair !== null;
  $("question").textContent = next.question;
  if (!joined) return;
  $("annotator").textContent = next.annotator;
  $("undo").disabled = next.undo === null;
  showProgress(next.mine, next.everyone);
  if (next.pair === null) return;
  $("pair").classList.toggle("rows", next.pair.left.cells !== undefined);
  showItem($("left"), next.pair.left, "Left");
  showItem($("right"), next.pair.right, "Right");
  for (const url of next.preload) new Image().src = url;
}

function showProgress(mine, everyone) {
  const count = document.createElement("b");
  count.textContent = mine.toLocaleString("en");
  const rest = everyone > mine ? ` by you, ${everyone.toLocaleString("en")} in all` : " judged";
  $("progress").replaceChildren(count, rest);
}

// Everything from an item goes in as text or as an attribute, never as markup.
function showItem(figure, item, side) {
  const parts = [item.picture ? picture(item.picture, side) : cells(item.cells, side)];
  if (item.name !== undefined) {
    const caption = document.createElement("figcaption");
    caption.textContent = item.name;
    parts.push(caption);
  }
  figure.replaceChildren(...parts);
}

function picture(url, side) {
  const image = document.createElement("img");
  image.alt = `${side} picture`;
  image.decoding = "async";
  image.addEventListener("load", () => {
    const side = Math.max(image.naturalWidth, image.naturalHeight);
    image.className = side <= 64 ? "tiny" : side <= 320 ? "small" : "";
  });
  image.addEventListener("error", () => {
    const note = document.createElement("p");
    note.className = "broken";
    note.textContent = `The ${side.toLowerCase()} picture cannot be shown: answer “Not sure”.`;
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

function trouble(text) {
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = text === "";
}

function say(text) {
  $("status").textContent = text;
}

function describe() {
  if (state.pair === null) return "That was every pair. Thank you.";
  return `Pair ${state.mine + 1}. ${state.question}`;
}

// A name as the server keeps it.
function tidy(name) {
  return name.normalize("NFC").trim().split(/\s+/).join(" ");
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// -- keys, buttons, the start --------------------------------------------------------------------

const KEYS = {
  s: () => answer("same"),
  d: () => answer("different"),
  n: () => answer("unsure"),
  " ": () => answer("unsure"),
  u: () => undo(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (!$("shortcuts").checked || !state || state.annotator === null) return;
  const on = event.target;
  if (on.closest("input[type=text]")) return;
  // Space belongs to the control that has the focus, and scrolls long text.
  if (event.key === " " && on.closest("button, input, label, .cells")) return;
  const act = KEYS[event.key.toLowerCase()];
  if (!act) return;
  event.preventDefault();
  act();
}

function onShortcuts() {
  const on = $("shortcuts").checked;
  document.body.classList.toggle("no-keys", !on);
  localStorage.setItem("likewise-shortcuts", on ? "on" : "off");
}

// After a click the focus leaves the button, so that the space bar means "not sure" again and does
// not press it once more. A button pressed by keyboard keeps the focus: detail is 0 then.
function pressed(work) {
  return (event) => {
    if (event.detail > 0) $("question").focus({ preventScroll: true });
    work();
  };
}

async function start() {
  $("shortcuts").checked = localStorage.getItem("likewise-shortcuts") !== "off";
  onShortcuts();
  $("shortcuts").addEventListener("change", onShortcuts);
  document.addEventListener("keydown", onKey);
  for (const button of document.querySelectorAll("[data-answer]")) {
    button.addEventListener("click", pressed(() => answer(button.dataset.answer)));
  }
  $("undo").addEventListener("click", pressed(undo));
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
  const name = address.searchParams.get("annotator");
  show(await insist("/api/state"));
  if (state.annotator === null) {
    if (name === null) $("name").focus();
    else await join(name);
    return;
  }
  say(describe());
  // A link may say who begins here, but not under whose name a person goes on.
  if (name !== null && tidy(name) !== state.annotator) {
    trouble(`You are judging as ${state.annotator}; the link says ${tidy(name)}. `
      + "To judge under that name, press “Change name”.");
    $("name").value = tidy(name);
  }
}

start().catch((error) => trouble(sentence(error.message)));
