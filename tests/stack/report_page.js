// What is wrong with a report's page, in words. Evaluated in the page.
function () {
  const found = [];
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = (colour) => {
    const part = rgb(colour).slice(0, 3).map((v) => (v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const below = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (rgb(colour)[3] !== 0 && colour !== "transparent") return colour;
    }
    return "rgb(255,255,255)";
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1)
    found.push("the page is wider than the window");
  document.querySelectorAll("p,li,td,th,h1,h2,div.caveat,svg text").forEach((e) => {
    if (!e.textContent.trim() || e.classList.contains("on")) return;
    const style = getComputedStyle(e);
    const own = e.namespaceURI.endsWith("svg") ? style.fill : style.color;
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
