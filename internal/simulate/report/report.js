"use strict";

// Each chart answers the mouse, a finger and the arrow keys with the row of its table at that place.
for (const chart of document.querySelectorAll(".chart")) {
  const rows = [...chart.querySelectorAll("tr[data-x]")].map((row) => ({
    x: Number(row.dataset.x),
    name: row.cells[0].textContent,
    values: [...row.cells].slice(1).map((cell) => ({ text: cell.textContent, y: Number(cell.dataset.sort) })),
  }));
  const series = [...chart.querySelectorAll("input[data-series]")];
  const percent = rows[0].values[0].text.endsWith("%"); // sorted as shares
  for (const plot of chart.querySelectorAll(".plot")) answer(chart, plot, rows, series, percent ? 100 : 1);
}

function answer(chart, plot, rows, series, scale) {
  const svg = plot.querySelector("svg");
  const at = Object.fromEntries(Object.entries(plot.dataset).map(([name, value]) => [name, Number(value)]));
  const log = chart.dataset.log !== undefined;
  const draw = (name, of) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    element.setAttribute("class", of);
    element.style.display = "none";
    svg.append(element);
    return element;
  };
  const place = (v, min, max) => (log ? Math.log(v / min) / Math.log(max / min) : (v - min) / (max - min));
  const cursor = draw("line", "cursor");
  const dots = series.map((_, i) => {
    const dot = draw("circle", "at");
    dot.setAttribute("r", 4);
    dot.style.fill = `var(--series-${i})`;
    return dot;
  });
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  plot.append(tip);
  plot.tabIndex = 0;
  plot.setAttribute("role", "slider");
  plot.setAttribute("aria-label", `${chart.querySelector("figcaption strong").textContent}: read it with the arrow keys`);
  plot.setAttribute("aria-valuemin", 0);
  plot.setAttribute("aria-valuemax", rows.length - 1);
  let now = 0, zoom = 1;

  const marks = [...svg.querySelectorAll(".mark")]; // from the lowest

  // rescale gives the series that are shown the height that those which are hidden had.
  function rescale() {
    const shown = series.map((box, i) => (box.checked ? Math.max(...rows.map((row) => row.values[i].y)) * scale : 0));
    const steps = marks.length - 1, highest = Math.max(...shown);
    const all = series.every((box) => box.checked) || highest === 0;
    const step = all ? at.maxY / steps : nice((highest * 1.02) / steps);
    zoom = at.maxY / steps / step;
    for (const group of svg.querySelectorAll("g")) {
      if (all) group.removeAttribute("transform");
      else group.setAttribute("transform", `translate(0 ${at.bottom}) scale(1 ${zoom}) translate(0 ${-at.bottom})`);
    }
    marks.forEach((mark, i) => {
      mark.dataset.text ??= mark.textContent;
      mark.textContent = all ? mark.dataset.text : Number((i * step).toPrecision(12)).toLocaleString("en");
    });
    svg.classList.toggle("zoomed", !all);
  }
  if (at.minY === 0 && !log) for (const box of series) box.addEventListener("change", rescale);

  function show(index) {
    now = Math.max(0, Math.min(rows.length - 1, index));
    const row = rows[now];
    const end = rows[now + 1]?.x ?? at.maxX; // of a part, which is shown in its middle
    const x = at.left + place(chart.dataset.reads === "parts" ? (row.x + end) / 2 : row.x, at.minX, at.maxX) * (at.right - at.left);
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", at.top], ["y2", at.bottom]]) cursor.setAttribute(name, value);
    cursor.style.display = "";
    const title = document.createElement("strong");
    title.textContent = row.name;
    tip.replaceChildren(title);
    const said = [row.name];
    series.forEach((box, i) => {
      dots[i].style.display = box.checked ? "" : "none";
      if (!box.checked) return;
      dots[i].setAttribute("cx", x);
      dots[i].setAttribute("cy", at.bottom - ((row.values[i].y * scale - at.minY) / (at.maxY - at.minY)) * zoom * (at.bottom - at.top));
      const line = document.createElement("div");
      const key = document.createElement("i");
      const name = document.createElement("bdi");
      const value = document.createElement("b");
      key.style.background = `var(--series-${i})`;
      name.textContent = box.parentElement.textContent.trim();
      value.textContent = row.values[i].text;
      line.append(key, name, value);
      tip.append(line);
      said.push(`${name.textContent} ${value.textContent}`);
    });
    tip.hidden = false;
    const width = svg.getBoundingClientRect().width;
    const left = (x / svg.viewBox.baseVal.width) * width;
    tip.style.left = `${left > width / 2 ? Math.max(0, left - tip.offsetWidth - 12) : Math.min(width - tip.offsetWidth, left + 12)}px`;
    plot.setAttribute("aria-valuenow", now);
    plot.setAttribute("aria-valuetext", said.join(", "));
  }

  function hide() {
    tip.hidden = true;
    for (const element of [cursor, ...dots]) element.style.display = "none";
  }

  // find returns the row at a place: the last one that has begun, or the nearest one.
  function find(fraction) {
    const where = (i) => place(rows[i].x, at.minX, at.maxX);
    let i = rows.length - 1;
    while (i > 0 && where(i) > fraction) i--;
    if (chart.dataset.reads === "points" && i + 1 < rows.length && where(i + 1) - fraction < fraction - where(i)) i++;
    return i;
  }

  plot.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    show(find((x - at.left) / (at.right - at.left)));
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("focus", () => plot.matches(":focus-visible") && show(now));
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.round(rows.length / 10));
    const to = {
      ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1,
      PageDown: now - page, PageUp: now + page, Home: 0, End: rows.length - 1,
    }[event.key];
    if (event.key === "Escape") hide();
    if (to === undefined) return;
    event.preventDefault();
    show(to);
  });
}

// nice returns 1, 2 or 5 times a power of ten, at least v.
function nice(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  return power * [1, 2, 5, 10].find((m) => m * power >= v);
}

// Tables are sorted by a click on a column: numbers from the highest, names from the first.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const number = head.classList.contains("number");
      const before = head.getAttribute("aria-sort");
      const descending = before === null ? number : before === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (row) => (number ? Number(row.cells[column].dataset.sort) : row.cells[column].textContent);
      const compare = number ? (a, b) => a - b : new Intl.Collator("en").compare;
      body.append(...[...body.rows].sort((a, b) => (descending ? -1 : 1) * compare(key(a), key(b))));
    });
  });
}
