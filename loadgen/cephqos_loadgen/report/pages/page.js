// The script of a report's page: tables that sort, charts that show values, zoom and hide lines.
// It is put into the page, which loads nothing. The charts are SVG of this package: a plotting
// library would be larger than all figures, and what it draws is neither printed well nor an SVG.
"use strict";

{
  const FADED = "0.35";

  const numbers = (element, name) => element.getAttribute(name).split(" ").map(Number);

  // -- tables ---------------------------------------------------------------------------------

  // Numbers by their value, also those that text surrounds in a column of numbers.
  function compare(a, b, numeric) {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [parseFloat(a), parseFloat(b)];
    const exact = String(x) === a && String(y) === b;
    const both = !Number.isNaN(x) && !Number.isNaN(y);
    return exact || (both && numeric) ? x - y : a.localeCompare(b);
  }

  function sortBy(head) {
    const body = head.closest("table").tBodies[0];
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = (row) => row.cells[head.cellIndex].getAttribute("data-v") || "";
    const rows = Array.from(body.rows).sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      const order = compare(a, b, head.className === "n");
      // What has no value stays last in both directions.
      return descending && a !== "" && b !== "" ? -order : order;
    });
    body.append(...rows);
  }

  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => sortBy(button.closest("th")));
  }

  // -- charts ---------------------------------------------------------------------------------
  // `data-time` of a chart: left, right, seconds.
  // `data-y` of a panel: bottom, top, value at the top.

  function added(parent, name, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return parent.appendChild(element);
  }

  // Where a mouse event is, in the units of the drawing.
  function place(svg, event) {
    const point = svg.createSVGPoint();
    [point.x, point.y] = [event.clientX, event.clientY];
    return point.matrixTransform(svg.getScreenCTM().inverse());
  }

  function points(path) {
    path.points ??= path
      .getAttribute("d")
      .slice(1)
      .split(/[LM]/)
      .map((pair) => pair.split(" ").map(Number));
    return path.points;
  }

  // Of points in the order of x.
  function nearest(list, x) {
    let [low, high] = [0, list.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (list[middle][0] < x) low = middle;
      else high = middle;
    }
    return x - list[low][0] < list[high][0] - x ? list[low] : list[high];
  }

  function shown(value) {
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 1 ? 1 : 3;
    return value.toLocaleString("en", { maximumFractionDigits: digits });
  }

  // -- charts: hide a line --------------------------------------------------------------------

  function toggle(key) {
    const hide = key.style.opacity !== FADED;
    key.style.opacity = hide ? FADED : "";
    const lines = `.s${key.dataset.n},.f${key.dataset.n}`;
    for (const line of key.closest(".panel,svg").querySelectorAll(lines)) {
      if (!line.closest(".key")) line.style.display = hide ? "none" : "";
    }
  }

  for (const key of document.querySelectorAll(".chart .key")) {
    key.setAttribute("tabindex", "0");
    key.setAttribute("role", "button");
    key.style.cursor = "pointer";
    key.addEventListener("click", () => toggle(key));
    key.addEventListener("keydown", (event) => {
      if (event.key === "Enter") toggle(key);
    });
  }

  // -- charts: a part of the time --------------------------------------------------------------

  function drawTicks(svg, from, to) {
    const [left, right] = numbers(svg, "data-time");
    const group = svg.querySelector(".times");
    const [y1, y2] = numbers(group, "data-y");
    const rough = (to - from) / 6;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * unit).find((size) => size >= rough);
    group.textContent = "";
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = left + ((right - left) * (at - from)) / (to - from);
      added(group, "line", { x1: x, x2: x, y1, y2, class: "grid" });
      const text = added(group, "text", { x, y: y2 + 16, class: "soft middle" });
      text.textContent = Number(at.toFixed(3));
    }
  }

  function clipOf(svg) {
    const id = `view${document.querySelectorAll("clipPath").length}`;
    const clip = added(added(svg, "clipPath", { id }), "rect", { y: 0, height: 10000 });
    for (const group of svg.querySelectorAll("g.moves")) {
      group.setAttribute("clip-path", `url(#${id})`);
    }
    return clip;
  }

  function stretch(svg, from, to) {
    const [left, right, seconds] = numbers(svg, "data-time");
    const wide = right - left;
    const scale = seconds / (to - from);
    const shift = (wide * from) / (to - from);
    svg.view = [from, to];
    svg.clip ??= clipOf(svg);
    svg.clip.setAttribute("x", scale === 1 ? 0 : left + (wide * from) / seconds);
    svg.clip.setAttribute("width", scale === 1 ? 10000 : (wide * (to - from)) / seconds);
    for (const group of svg.querySelectorAll("g.moves")) {
      group.setAttribute("transform", `matrix(${scale} 0 0 1 ${left * (1 - scale) - shift} 0)`);
    }
    for (const text of svg.querySelectorAll("text.moves")) {
      text.home ??= Number(text.getAttribute("x"));
      const x = left + scale * (text.home - left) - shift;
      text.setAttribute("x", x);
      text.style.display = x < left || x > right - 30 ? "none" : "";
    }
    drawTicks(svg, from, to);
  }

  // -- charts: values under the mouse ----------------------------------------------------------

  const box = document.createElement("div");
  box.id = "values";
  document.body.appendChild(box);

  function showBox(text, event) {
    const page = document.documentElement;
    const within = (at, room) => `${Math.max(0, Math.min(at + 16, room - 8))}px`;
    box.textContent = text;
    box.style.display = "block";
    box.style.left = within(event.clientX, page.clientWidth - box.offsetWidth);
    box.style.top = within(event.clientY, page.clientHeight - box.offsetHeight);
  }

  function readout(svg, event) {
    const [left, right, seconds] = numbers(svg, "data-time");
    const [from, to] = svg.view || [0, seconds];
    const { x } = place(svg, event);
    if (x < left || x > right) {
      box.style.display = "none";
      return;
    }
    const time = from + ((to - from) * (x - left)) / (right - left);
    const home = left + ((right - left) * time) / seconds;
    const lines = [`${shown(time)} s`];
    for (const panel of svg.querySelectorAll(".panel")) {
      const [bottom, top, most] = numbers(panel, "data-y");
      const axis = panel.querySelector("text.axisname")?.textContent;
      for (const path of panel.querySelectorAll("path[data-name]")) {
        const [at, y] = nearest(points(path), home);
        if (path.style.display !== "none" && Math.abs(at - home) <= (right - left) / 20) {
          const value = ((bottom - y) / (bottom - top)) * most;
          lines.push(`${axis}  ${path.dataset.name}: ${shown(value)}`);
        }
      }
    }
    showBox(lines.join("\n"), event);
  }

  // -- charts: zoom ---------------------------------------------------------------------------

  function zoomTime(svg, x1, x2) {
    const [left, right, seconds] = numbers(svg, "data-time");
    const [from, to] = svg.view || [0, seconds];
    const time = (x) => from + ((to - from) * (x - left)) / (right - left);
    const [first, last] = [time(Math.max(x1, left)), time(Math.min(x2, right))];
    if (last - first >= 2) stretch(svg, first, last);
  }

  function makeZoomable(svg) {
    const whole = svg.getAttribute("viewBox");
    const timed = svg.hasAttribute("data-time");
    let [start, frame] = [null, null];

    const rectangle = (event) => {
      const here = place(svg, event);
      return {
        x: Math.min(here.x, start.x),
        y: Math.min(here.y, start.y),
        width: Math.abs(here.x - start.x),
        height: Math.abs(here.y - start.y),
      };
    };
    const end = (event) => {
      box.style.display = "none";
      if (!start) return;
      const { x, y, width, height } = rectangle(event);
      frame.remove();
      start = null;
      if (event.type === "mouseleave" || width < 8) return;
      if (timed) zoomTime(svg, x, x + width);
      else if (height >= 8) svg.setAttribute("viewBox", [x, y, width, height].join(" "));
    };

    svg.addEventListener("mousedown", (event) => {
      if (event.button || event.target.closest(".key")) return;
      start = place(svg, event);
      event.preventDefault();
      frame = added(svg, "rect", { class: "frame", x: start.x, y: start.y, width: 0, height: 0 });
    });
    svg.addEventListener("mousemove", (event) => {
      if (timed) readout(svg, event);
      if (!start) return;
      // A time is chosen over the whole height of the chart.
      const shape = timed ? { y: 0, height: whole.split(" ")[3] } : {};
      for (const [key, value] of Object.entries({ ...rectangle(event), ...shape })) {
        frame.setAttribute(key, value);
      }
    });
    svg.addEventListener("mouseup", end);
    svg.addEventListener("mouseleave", end);
    svg.addEventListener("dblclick", () => {
      svg.setAttribute("viewBox", whole);
      if (timed && svg.view) stretch(svg, 0, numbers(svg, "data-time")[2]);
    });
  }

  document.querySelectorAll("svg.chart").forEach(makeZoomable);
}
