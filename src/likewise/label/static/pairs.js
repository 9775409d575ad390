// Two items, and whether they are of the same kind.
import { $, asMyself, exclusively, page, say, show, showItem } from "/static/page.js";

const WORDS = { same: "same", different: "different", unsure: "not sure" };
const KEYS = {
  s: () => answer("same"),
  d: () => answer("different"),
  n: () => answer("unsure"),
  " ": () => answer("unsure"),
  u: () => undo(),
};

function waitingFor(work) {
  return exclusively(async () => {
    $("pair").classList.add("waiting");
    try {
      await work();
    } finally {
      $("pair").classList.remove("waiting");
    }
  });
}

function answer(choice) {
  return waitingFor(async () => {
    const { pair } = page.state;
    if (!pair) return;
    show(await asMyself("/api/answer", { ticket: pair.ticket, answer: choice }));
    say(`Stored: ${WORDS[choice]}. ${pairs.describe()}`);
  });
}

function undo() {
  return waitingFor(async () => {
    if (page.state.undo === null) return;
    show(await asMyself("/api/undo", { judgement: page.state.undo }));
    say(`Undone. ${pairs.describe()}`);
  });
}

// After a click the focus leaves the button, so that the space bar means "not sure" again and does
// not press it once more. A button pressed by keyboard keeps the focus: detail is 0 then.
function pressed(work) {
  return (event) => {
    if (event.detail > 0) $("question").focus({ preventScroll: true });
    work();
  };
}

export const pairs = {
  allDone: "That was every pair",
  broken: (side) => `The ${side.toLowerCase()} picture cannot be shown: answer “Not sure”.`,
  did: () => "",
  done: () => " judged",
  isOpen: (state) => state.pair !== null,

  prepare() {
    for (const button of document.querySelectorAll("[data-answer]")) {
      button.addEventListener("click", pressed(() => answer(button.dataset.answer)));
    }
    $("undo").addEventListener("click", pressed(undo));
  },

  begin() {
    $("question").focus();
  },

  show({ pair, preload }) {
    $("pair").classList.toggle("rows", pair.left.cells !== undefined);
    showItem($("left"), pair.left, "Left");
    showItem($("right"), pair.right, "Right");
    for (const url of preload) new Image().src = url;
  },

  describe() {
    const { pair, mine, question } = page.state;
    return pair === null ? "That was every pair. Thank you." : `Pair ${mine + 1}. ${question}`;
  },

  onKey(event, letters) {
    // Space belongs to the control that has the focus, and scrolls long text.
    if (event.key === " " && event.target.closest("button, input, label, .cells, a")) return;
    const act = letters && KEYS[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  },
};
