// What is wrong with a report's page, in words. Evaluated in the page.
function () {
  const found = [];
  // Red, green, blue of 255, and how opaque; of `rgb(…)`, and of `color(srgb …)`, whose parts are of 1.
  const parts = (text) => {
    const numbers = (text.match(/[\d.]+/g) || []).map(Number);
    const whole = text.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map((v) => v * whole), numbers[3] ?? 1];
  };
  const light = (colour) => {
    const part = colour.slice(0, 3).map((v) => (v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  // What shines through all that lies below, on white paper.
  const below = (element) => {
    let through = 1;
    const sum = [0, 0, 0];
    const add = (colour, share) => sum.forEach((_, i) => { sum[i] += share * colour[i]; });
    for (let e = element; e && through > 0; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      add(colour, through * colour[3]);
      through *= 1 - colour[3];
    }
    add([255, 255, 255], through);
    return sum;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1)
    found.push("the page is wider than the window");
  document.querySelectorAll("p,li,td,th,h1,h2,div.caveat,svg text").forEach((e) => {
    if (!e.textContent.trim() || e.classList.contains("on")) return;
    const style = getComputedStyle(e);
    const own = parts(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
    if (contrast(own, below(e)) < 4.5) found.push(`'${e.textContent.slice(0, 30)}' can hardly be read`);
  });
  document.querySelectorAll("svg.chart").forEach((svg) => {
    const name = svg.getAttribute("aria-label");
    const view = svg.viewBox.baseVal;
    const marks = Array.from(svg.querySelectorAll("path,rect,polygon,circle")).filter(
      (e) => !e.closest(".key") && !/band|phase|paper/.test(e.getAttribute("class")));
    if (!marks.length || svg.getBoundingClientRect().height < 20) found.push(`${name}: nothing is drawn`);
    svg.querySelectorAll(".panel").forEach((panel) => {
      if (!panel.querySelector("path[data-name]")) found.push(`${name}: an empty panel`);
    });
    const texts = Array.from(svg.querySelectorAll("text")).map((e) => [e.textContent, e.getBBox(), e]);
    texts.forEach(([text, box]) => {
      if (!text.trim()) return;
      if (box.x < -1 || box.y < -1 || box.x + box.width > view.width + 1 || box.y + box.height > view.height + 3)
        found.push(`${name}: '${text}' is cut`);
    });
    texts.forEach(([text, a, one], index) => texts.slice(index + 1).forEach(([other, b, two]) => {
      if (!text.trim() || !other.trim() || [one, two].some((e) => e.closest(".points"))) return;
      const wide = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
      const high = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
      if (wide > 1 && high > 4) found.push(`${name}: '${text}' and '${other}' overlap`);
    }));
  });
  return found;
}
