// A screen of items, sorted into piles by dragging, by tapping or by keyboard. A move is shown at
// once, and stays marked until the server has acknowledged it.
import { $, asMyself, inTurn, page, picture, say, show, showItem } from "/static/page.js";

const MOST_PILES = 35;
const DRAG_PIXELS = 6; // before a press becomes a drag
let screen = null; // the items, by key in order, of the open screen, and how the server has them
let cards = new Map(); // the element of each item
let pending = []; // moves that the server has not acknowledged yet
let chosen = new Set(); // items that the next pile takes
let current = null; // the item that the keys are about
let drag = null;

// -- how things stand ----------------------------------------------------------------------------

function piles() {
  const standing = new Map(Object.entries(screen.piles));
  for (const { items, pile } of pending) {
    for (const key of items) {
      if (pile === null) standing.delete(key);
      else standing.set(key, pile);
    }
  }
  return standing;
}

function unsorted() {
  const standing = piles();
  return [...screen.items.keys()].filter((key) => !standing.has(key));
}

function free() {
  const used = new Set(piles().values());
  for (let pile = 0; pile < MOST_PILES; pile += 1) if (!used.has(pile)) return pile;
  return null;
}

// -- what the person does ------------------------------------------------------------------------

function move(items, pile) {
  const standing = piles();
  const moved = items.filter((key) => (standing.get(key) ?? null) !== pile);
  chosen.clear();
  if (moved.length === 0) {
    draw();
    return;
  }
  const step = { items: moved, pile };
  pending.push(step);
  draw();
  const { ticket } = screen;
  const many = moved.length === 1 ? "1 item" : `${moved.length} items`;
  inTurn(async () => {
    try {
      // What was meant for a screen that is gone, in another tab, is not for this one.
      if (screen !== null && screen.ticket === ticket) {
        take(await asMyself("/api/move", { ticket, after: screen.after, ...step }));
      }
    } finally {
      pending = pending.filter((other) => other !== step);
      if (screen !== null) draw();
    }
    const where = pile === null ? "back" : `to pile ${pile + 1}`;
    say(`Moved ${many} ${where}. ${sorting.describe()}`);
  });
}

function put(pile) {
  if (chosen.size === 0) hint("Choose items first: tap them, or press space on them.");
  else if (pile === undefined) hint("There are as many piles as there can be.");
  else move([...chosen], pile);
}

function finish() {
  return inTurn(async () => {
    if (screen === null) return;
    take(await asMyself("/api/finish", { ticket: screen.ticket, after: screen.after }));
    say(`Stored. ${sorting.describe()}`);
  });
}

function undo() {
  return inTurn(async () => {
    const undone = page.state.undo;
    if (undone === null) return;
    const body = { undo: undone, ticket: screen === null ? null : screen.ticket };
    take(await asMyself("/api/undo", body));
    say(`Undone. ${sorting.describe()}`);
  });
}

function take(next) {
  show(next);
  if (next.sort === null) screen = null;
}

function choose(key) {
  if (!chosen.delete(key)) chosen.add(key);
  current = key;
  draw();
}

function lookCloser() {
  if (current === null) return;
  showItem($("close-item"), screen.items.get(current), "Larger");
  $("close-up").showModal();
}

// -- what the person sees ------------------------------------------------------------------------

function card(key, item, number) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = item.picture ? "card" : "card text";
  element.dataset.key = key;
  element.tabIndex = -1;
  if (item.picture) element.append(picture(item.picture, `Item ${number}`));
  else {
    const text = document.createElement("span");
    text.className = "words";
    text.textContent = item.cells.map(([, value]) => value).filter(Boolean).join(" · ") || "—";
    element.append(text);
  }
  if (item.name !== undefined) {
    const name = document.createElement("span");
    name.className = "name";
    name.textContent = item.name;
    element.append(name);
  }
  element.addEventListener("click", () => {
    if (drag !== null && drag.moved) return; // the end of a drag
    choose(key);
  });
  element.addEventListener("focus", () => point(key));
  element.addEventListener("pointerdown", (event) => grab(event, key));
  return element;
}

function point(key) {
  if (current !== null && cards.has(current)) cards.get(current).tabIndex = -1;
  current = key;
  if (key !== null) cards.get(key).tabIndex = 0;
  $("closer").disabled = key === null;
}

// Children are replaced only where they differ: a card that stays keeps the focus.
function fill(container, elements) {
  const same = container.children.length === elements.length
    && elements.every((element, k) => container.children[k] === element);
  if (!same) container.replaceChildren(...elements);
}

function pileElement(pile) {
  let element = document.querySelector(`.pile[data-pile="${pile}"]`);
  if (element !== null) return element;
  element = document.createElement("section");
  element.className = "pile";
  element.dataset.pile = pile;
  element.setAttribute("aria-label", `Pile ${pile + 1}`);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "put";
  const inside = document.createElement("div");
  inside.className = "cards";
  element.append(button, inside);
  element.addEventListener("click", (event) => {
    if (event.target.closest(".card") === null) put(pile);
  });
  return element;
}

function draw() {
  const focused = document.activeElement?.closest(".card")?.dataset.key;
  const standing = piles();
  const left = unsorted();
  const waiting = new Set(pending.flatMap(({ items }) => items));
  let number = 0;
  for (const [key, element] of cards) {
    number += 1;
    const pile = standing.get(key);
    const place = pile === undefined ? "not sorted" : `in pile ${pile + 1}`;
    const words = screen.items.get(key).cells ? `: ${element.firstChild.textContent}` : "";
    const name = screen.items.get(key).name;
    element.setAttribute("aria-label",
      `Item ${number}${name === undefined ? "" : `, ${name}`}, ${place}${words}`);
    element.setAttribute("aria-pressed", String(chosen.has(key)));
    element.classList.toggle("waiting", waiting.has(key));
  }
  fill($("tray-cards"), left.map((key) => cards.get(key)));
  const numbers = [...new Set(standing.values())].sort((a, b) => a - b);
  const elements = numbers.map(pileElement);
  fill($("piles"), [...elements, $("new-pile")]);
  numbers.forEach((pile, k) => {
    const keys = [...screen.items.keys()].filter((key) => standing.get(key) === pile);
    fill(elements[k].lastChild, keys.map((key) => cards.get(key)));
    label(elements[k].firstChild, `Pile ${pile + 1}`, keys.length);
  });
  $("tray-count").textContent = ` ${left.length}`;
  $("new-pile").disabled = numbers.length >= MOST_PILES;
  $("finish").textContent = left.length === 0 ? "Done, next screen"
    : left.length === screen.items.size ? "Skip this screen" : `Done, leave ${left.length} out`;
  $("finish").className = left.length === 0 ? "primary" : "quiet";
  $("sorting").classList.toggle("choosing", chosen.size > 0);
  hint(chosen.size > 0 ? `${chosen.size} chosen: now a pile.` : "");
  if (current === null || !cards.has(current)) point(left[0] ?? [...cards.keys()][0]);
  if (focused !== undefined && document.activeElement === document.body) {
    cards.get(focused)?.focus({ preventScroll: true });
  }
}

function label(button, text, count) {
  const number = document.createElement("span");
  number.className = "count";
  number.textContent = ` ${count}`;
  button.replaceChildren(text, number);
}

function hint(text) {
  const usual = matchMedia("(hover: none) and (pointer: coarse)").matches
    ? "Tap items, then a pile." : "Drag items to piles, or click them, then a pile.";
  $("hint").textContent = text || usual;
}

// -- dragging by mouse or pen; fingers tap, so that they can scroll ------------------------------

function grab(event, key) {
  if (event.pointerType === "touch" || event.button !== 0) return;
  drag = { key, x: event.clientX, y: event.clientY, moved: false, ghost: null };
}

function drop(event) {
  const target = document.elementFromPoint(event.clientX, event.clientY);
  const pile = target?.closest(".pile[data-pile]");
  if (pile) return Number(pile.dataset.pile);
  if (target?.closest("#new-pile, #piles")) return free();
  return target?.closest("#tray") ? null : undefined;
}

function onPointerMove(event) {
  if (drag === null || drag.over) return;
  const far = Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > DRAG_PIXELS;
  if (!drag.moved && !far) return;
  if (!drag.moved) {
    drag.moved = true;
    drag.items = chosen.has(drag.key) ? [...chosen] : [drag.key];
    drag.ghost = cards.get(drag.key).cloneNode(true);
    drag.ghost.className += " ghost";
    drag.ghost.removeAttribute("data-key");
    drag.ghost.setAttribute("aria-hidden", "true");
    document.body.append(drag.ghost);
    document.body.classList.add("dragging");
  }
  drag.ghost.style.transform = `translate(${event.clientX}px, ${event.clientY}px)`;
  for (const element of document.querySelectorAll(".over")) element.classList.remove("over");
  const under = document.elementFromPoint(event.clientX, event.clientY);
  (under?.closest(".pile") ?? under?.closest("#tray") ?? under?.closest("#piles")
    ?.querySelector(".new"))?.classList.add("over");
  const scroller = $("piles");
  const box = scroller.getBoundingClientRect();
  if (event.clientY > box.bottom - 40) scroller.scrollBy(0, 12);
  else if (event.clientY < box.top + 40) scroller.scrollBy(0, -12);
}

function onPointerUp(event) {
  if (drag === null) return;
  const { moved, items, ghost } = drag;
  if (ghost !== null) ghost.remove();
  document.body.classList.remove("dragging");
  for (const element of document.querySelectorAll(".over")) element.classList.remove("over");
  const pile = moved && event.type === "pointerup" ? drop(event) : undefined;
  drag.over = true;
  setTimeout(() => { drag = null; }); // after the click that ends a drag
  if (pile !== undefined) move(items, pile);
}

// -- keys ----------------------------------------------------------------------------------------

// Move what is chosen, else the item that has the focus, and go on to the next one not sorted.
function putByKey(pile) {
  const items = chosen.size > 0 ? [...chosen] : current === null ? [] : [current];
  if (items.length === 0 || pile === undefined) return;
  const left = unsorted();
  const place = Math.max(0, left.findIndex((key) => items.includes(key)));
  move(items, pile);
  const rest = unsorted();
  const next = rest[Math.min(place, rest.length - 1)] ?? items[0];
  cards.get(next).focus();
}

function step(event) {
  const order = [...document.querySelectorAll("#sorting .card")];
  const here = order.indexOf(cards.get(current));
  const flat = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const target = flat !== undefined ? order[here + flat] : beyond(order, here, event.key);
  if (target === undefined) return;
  event.preventDefault();
  target.focus();
}

// The nearest card above or below.
function beyond(order, here, key) {
  const box = (element) => element.getBoundingClientRect();
  const from = box(order[here]);
  const sign = key === "ArrowDown" ? 1 : -1;
  const far = (element) => {
    const to = box(element);
    const down = sign * (to.top - from.top);
    return down < from.height / 2 ? Infinity : down + 2 * Math.abs(to.left - from.left);
  };
  const nearest = order.reduce((a, b) => (far(b) < far(a) ? b : a), order[here]);
  return Number.isFinite(far(nearest)) ? nearest : undefined;
}

const KEYS = {
  n: () => putByKey(free() ?? undefined),
  0: () => putByKey(null),
  u: () => undo(),
  z: () => lookCloser(),
};

export const sorting = {
  allDone: "That was everything",
  broken: () => "This picture cannot be shown: leave it out.",
  did: (count) => (count === 1 ? " screen" : " screens"),
  done: (count) => (count === 1 ? " screen sorted" : " screens sorted"),
  isOpen: (state) => state.sort !== null,

  prepare() {
    $("tray").addEventListener("click", (event) => {
      if (chosen.size > 0 && event.target.closest(".card") === null) put(null);
    });
    $("new-pile").addEventListener("click", () => put(free() ?? undefined));
    $("finish").addEventListener("click", finish);
    $("undo").addEventListener("click", undo);
    $("closer").addEventListener("click", lookCloser);
    $("close-close").addEventListener("click", () => $("close-up").close());
    document.addEventListener("pointermove", onPointerMove);
    document.addEventListener("pointerup", onPointerUp);
    document.addEventListener("pointercancel", onPointerUp);
    document.addEventListener("dragstart", (event) => event.preventDefault());
  },

  begin() {
    $("task").focus();
  },

  show({ sort }) {
    if (screen === null || screen.ticket !== sort.ticket) {
      const items = new Map(sort.items.map((item) => [item.key, item]));
      screen = { ticket: sort.ticket, items };
      cards = new Map();
      pending = [];
      chosen = new Set();
      current = null;
      for (const [key, item] of items) cards.set(key, card(key, item, cards.size + 1));
    }
    screen.after = sort.after;
    screen.piles = sort.piles;
    draw();
  },

  describe() {
    const { sort, mine, question } = page.state;
    if (sort === null) return "That was everything. Thank you.";
    return `Screen ${mine + 1}, ${unsorted().length} of ${screen.items.size} not sorted. ${question}`;
  },

  onKey(event, letters) {
    if (screen === null) return;
    if (event.key === "Escape" && chosen.size > 0) {
      chosen.clear();
      draw();
    } else if (event.key.startsWith("Arrow") && event.target.closest(".card, body")) {
      step(event);
    } else if (letters && /^[1-9]$/.test(event.key)) {
      event.preventDefault();
      putByKey(Number(event.key) - 1);
    } else if (letters && KEYS[event.key.toLowerCase()]) {
      event.preventDefault();
      KEYS[event.key.toLowerCase()]();
    }
  },
};
