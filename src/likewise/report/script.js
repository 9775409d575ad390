"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Pictures are in the page once, however often they are shown.
  function showPictures() {
    for (const img of document.querySelectorAll("img[data-item]")) {
      img.src = data.pictures[img.dataset.item];
      img.addEventListener("load", () => {
        if (img.naturalWidth <= 32) img.classList.add("tiny");
      });
    }
  }

  // One tooltip for everything that has data-tip.
  const tip = $("tip");
  function placeTip(x, y) {
    const box = tip.getBoundingClientRect();
    const left = Math.min(x + 14, window.innerWidth - box.width - 8);
    const below = y + 16 + box.height < window.innerHeight;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (below ? y + 16 : y - box.height - 10) + "px";
  }
  function showTip(text, x, y, picture) {
    tip.textContent = text;
    if (picture) {
      const img = document.createElement("img");
      img.src = picture;
      img.alt = "";
      tip.append(img);
    }
    tip.hidden = false;
    placeTip(x, y);
  }
  function hideTip() { tip.hidden = true; }
  function followTips() {
    document.addEventListener("pointermove", (event) => {
      const target = event.target.closest && event.target.closest("[data-tip]");
      if (target) showTip(target.dataset.tip, event.clientX, event.clientY);
      else if (!(event.target.closest && event.target.closest("canvas"))) hideTip();
    });
    document.addEventListener("scroll", hideTip, { passive: true });
  }

  // Tables sorted by the column whose head is pressed.
  const numeric = (text) => {
    const number = parseFloat(text.replace(/[,%]/g, ""));
    return Number.isNaN(number) ? null : number;
  };
  function sortBy(table, column, downwards) {
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => {
      const text = row.cells[column].textContent.trim();
      return { row, text, number: numeric(text) };
    });
    const isNumber = table.tHead.rows[0].cells[column].classList.contains("number");
    keyed.sort((a, b) => isNumber ? (a.number ?? -Infinity) - (b.number ?? -Infinity)
      : a.text.localeCompare(b.text, undefined, { numeric: true }));
    if (downwards) keyed.reverse();
    body.append(...keyed.map((entry) => entry.row));
  }
  function makeSortable() {
    for (const table of document.querySelectorAll("table.sortable")) {
      const heads = [...table.tHead.rows[0].cells];
      heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const first = head.classList.contains("number") ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const next = before === first ? other : first;
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", next);
        sortBy(table, column, next === "descending");
      }));
    }
  }
  function makeFilters() {
    for (const input of document.querySelectorAll("input[data-filter]")) {
      const rows = [...$(input.dataset.filter).tBodies[0].rows];
      const count = $(input.dataset.filter + "-count");
      input.addEventListener("input", () => {
        const wanted = input.value.trim().toLowerCase();
        let shown = 0;
        for (const row of rows) {
          row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
          shown += row.hidden ? 0 : 1;
        }
        count.textContent = wanted ? `${shown} of ${rows.length}` : "";
      });
    }
  }

  // Suspected judgements: a page of them at a time, filtered by answer and words.
  function makeSuspects() {
    const list = $("suspect-list");
    if (!list) return;
    const answer = $("suspect-answer"), find = $("suspect-find"), more = $("suspect-more");
    let limit = 24;
    const update = () => {
      const words = find.value.trim().toLowerCase();
      let found = 0;
      for (const entry of list.children) {
        const fits = (!answer.value || entry.dataset.answer === answer.value)
          && entry.dataset.words.toLowerCase().includes(words);
        if (fits) found += 1;
        entry.hidden = !fits || found > limit;
      }
      more.hidden = found <= limit;
      $("suspect-count").textContent = `${Math.min(found, limit)} of ${found} shown`;
    };
    answer.addEventListener("change", update);
    find.addEventListener("input", update);
    more.addEventListener("click", () => { limit += 48; update(); });
    update();
  }

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const shorts = (text) => new Uint16Array(bytes(text).buffer);

  // Matrices of many classes, drawn without numbers.
  function parseColour(colour) {
    const n = parseInt(colour.slice(1), 16);
    return [n >> 16, (n >> 8) & 255, n & 255];
  }
  function drawMatrix(canvas) {
    const matrix = data.matrices[canvas.dataset.matrix];
    const shares = bytes(matrix.shares);
    const rows = matrix.rows.length, columns = matrix.columns.length;
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d");
    const paint = () => {
      const image = context.createImageData(columns, rows);
      const cold = parseColour(css("--card")), hot = parseColour(css("--accent"));
      for (let k = 0; k < shares.length; k += 1) {
        const share = Math.pow(shares[k] / 255, 0.6);
        for (let c = 0; c < 3; c += 1) {
          image.data[4 * k + c] = cold[c] + (hot[c] - cold[c]) * share;
        }
        image.data[4 * k + 3] = 255;
      }
      context.putImageData(image, 0, 0);
    };
    paint();
    dark.addEventListener("change", paint);
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left) / box.width * columns);
      const row = Math.floor((event.clientY - box.top) / box.height * rows);
      if (row < 0 || column < 0 || row >= rows || column >= columns) return hideTip();
      const share = (shares[row * columns + column] / 2.55).toFixed(1);
      showTip(`${matrix.rows[row]} → ${matrix.columns[column]}: ${share}%`, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", hideTip);
  }

  // The map: typed arrays on a canvas.
  function makeMap() {
    const canvas = $("map-canvas"), context = canvas.getContext("2d"), map = data.map;
    const x = shorts(map.x), y = shorts(map.y), cls = shorts(map.cls), sure = bytes(map.sure);
    const truth = map.truth ? shorts(map.truth) : null;
    const kept = map.kept ? new Uint32Array(bytes(map.kept).buffer) : null;
    const hidden = new Set();
    const view = { zoom: 1, dx: 0, dy: 0 };
    let colourBy = "class", upTo = 255, size = { width: 0, height: 0 };
    const pad = 14;

    const groups = () => colourBy === "truth" ? truth : cls;
    const nameOf = (k) => map.names ? map.names[k] : `item ${kept ? kept[k] : k}`;
    const shown = (k) => sure[k] <= upTo && (colourBy === "sure" || !hidden.has(groups()[k]));
    function scale() { return (Math.min(size.width, size.height) - 2 * pad) / 65535 * view.zoom; }
    function place(k) {
      const s = scale();
      return [size.width / 2 + view.dx + (x[k] - 32767) * s, size.height / 2 + view.dy - (y[k] - 32767) * s];
    }
    function colours() {
      if (colourBy !== "sure") return data.colours;
      const low = parseColour(css("--different")), high = parseColour(css("--accent"));
      return Array.from({ length: 16 }, (_, k) => {
        const mixed = low.map((part, c) => Math.round(part + (high[c] - part) * k / 15));
        return `rgb(${mixed.join(" ")})`;
      });
    }
    function draw() {
      context.clearRect(0, 0, size.width, size.height);
      const palette = colours(), of = groups();
      const radius = Math.max(1, Math.min(5, 150 / Math.sqrt(map.n))) * Math.sqrt(view.zoom);
      context.globalAlpha = map.n > 5000 ? 0.65 : 0.82;
      const round = map.n <= 8000;
      let last = -1;
      for (let k = 0; k < map.n; k += 1) {
        if (!shown(k)) continue;
        const [px, py] = place(k);
        if (px < -5 || py < -5 || px > size.width + 5 || py > size.height + 5) continue;
        const group = colourBy === "sure" ? Math.min(15, sure[k] >> 4) : of[k] % palette.length;
        if (group !== last) { context.fillStyle = palette[group]; last = group; }
        if (round) {
          context.beginPath();
          context.arc(px, py, radius, 0, 6.2832);
          context.fill();
        } else context.fillRect(px - radius, py - radius, 2 * radius, 2 * radius);
      }
      context.globalAlpha = 1;
    }
    let waiting = false;
    function redraw() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(); });
    }
    function resize() {
      const box = canvas.getBoundingClientRect(), ratio = Math.min(2, window.devicePixelRatio || 1);
      size = { width: box.width, height: box.height };
      canvas.width = Math.round(box.width * ratio);
      canvas.height = Math.round(box.height * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw();
    }
    function nearest(px, py) {
      let best = -1, reach = 144;
      for (let k = 0; k < map.n; k += 1) {
        if (!shown(k)) continue;
        const [qx, qy] = place(k);
        const distance = (qx - px) ** 2 + (qy - py) ** 2;
        if (distance < reach) { reach = distance; best = k; }
      }
      return best;
    }
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, dx: view.dx, dy: view.dy };
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("dragging");
      hideTip();
    });
    canvas.addEventListener("pointerup", () => { drag = null; canvas.classList.remove("dragging"); });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        view.dx = drag.dx + event.clientX - drag.x;
        view.dy = drag.dy + event.clientY - drag.y;
        return redraw();
      }
      const box = canvas.getBoundingClientRect();
      const k = nearest(event.clientX - box.left, event.clientY - box.top);
      if (k < 0) return hideTip();
      const words = [nameOf(k), `${data.names[cls[k]]}, ${Math.round(sure[k] / 2.55)}%`];
      if (truth) words.push(`truly ${map.truthNames[truth[k]]}`);
      showTip(words.join(" · "), event.clientX, event.clientY, data.pictures[kept ? kept[k] : k]);
    });
    canvas.addEventListener("pointerleave", hideTip);
    const zoom = (factor) => {
      const next = Math.max(1, Math.min(40, view.zoom * factor));
      view.dx *= next / view.zoom;
      view.dy *= next / view.zoom;
      view.zoom = next;
      redraw();
    };
    $("map-in").addEventListener("click", () => zoom(1.6));
    $("map-out").addEventListener("click", () => zoom(1 / 1.6));
    $("map-reset").addEventListener("click", () => {
      Object.assign(view, { zoom: 1, dx: 0, dy: 0 });
      redraw();
    });
    $("map-unsure").addEventListener("input", (event) => {
      upTo = Math.round(event.target.value * 2.55);
      $("map-unsure-value").textContent = event.target.value + "%";
      redraw();
    });
    function legend() {
      const names = colourBy === "truth" ? map.truthNames : data.names;
      const palette = data.colours;
      const list = $("map-legend");
      list.replaceChildren();
      list.hidden = colourBy === "sure";
      names.forEach((name, group) => {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-pressed", String(!hidden.has(group)));
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = palette[group % palette.length];
        button.append(swatch, name);
        button.addEventListener("click", () => {
          if (hidden.has(group)) hidden.delete(group);
          else hidden.add(group);
          button.setAttribute("aria-pressed", String(!hidden.has(group)));
          redraw();
        });
        const entry = document.createElement("li");
        entry.append(button);
        list.append(entry);
      });
    }
    $("map-colour").addEventListener("change", (event) => {
      colourBy = event.target.value;
      hidden.clear();
      legend();
      redraw();
    });
    dark.addEventListener("change", redraw);
    legend();
    resize();
    new ResizeObserver(resize).observe(canvas);
  }

  // Where the reader is, in the list of sections.
  function followReader() {
    const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    }, { rootMargin: "-20% 0px -70% 0px" });
    for (const id of links.keys()) observer.observe($(id));
  }

  showPictures();
  followTips();
  makeSortable();
  makeFilters();
  makeSuspects();
  document.querySelectorAll("canvas[data-matrix]").forEach(drawMatrix);
  makeMap();
  followReader();
  window.addEventListener("beforeprint", () => {
    for (const entry of document.querySelectorAll("details")) entry.open = true;
  });
})();
