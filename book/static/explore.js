// The interactive figure: IoU threshold and beta over one small scene, computed here by the rules of the book.
"use strict";

(() => {
  const TOLERANCE = 1e-9; // a ratio that is the threshold in decimals is a match whatever the rounding
  const INK = "#1b1f24", MUTED = "#57606a", GRID = "#d8dee4";
  const STYLES = {
    // as in the pictures of the report: found, false, missed
    gold: { stroke: "#0072B2", "stroke-width": 2.5 },
    missed: { stroke: "#CC79A7", "stroke-width": 5 },
    found: { stroke: "#009E73", "stroke-width": 2.5, "stroke-dasharray": "7 4" },
    false: { stroke: "#D55E00", "stroke-width": 2.5, "stroke-dasharray": "2 4" },
  };

  // -- the rules

  const area = ([left, top, right, bottom]) => (right - left) * (bottom - top);

  function iou(a, b) {
    const width = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
    const height = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
    const shared = Math.max(width, 0) * Math.max(height, 0);
    return shared > 0 ? shared / (area(a) + area(b) - shared) : 0;
  }

  // Of all sets of pairs the largest, and of those the one that overlaps most: every set is tried, the scene is small.
  function match(scene, threshold, from = 0, taken = new Set()) {
    if (from === scene.gold.length) return { pairs: [], overlap: 0 };
    let best = match(scene, threshold, from + 1, taken);
    scene.predicted.forEach((said, number) => {
      const overlap = iou(scene.gold[from].box, said.box);
      if (taken.has(number) || said.class !== scene.gold[from].class || overlap < threshold - TOLERANCE) return;
      const rest = match(scene, threshold, from + 1, new Set(taken).add(number));
      const found = { pairs: [[from, number, overlap], ...rest.pairs], overlap: overlap + rest.overlap };
      const more = found.pairs.length - best.pairs.length;
      if (more > 0 || (more === 0 && found.overlap > best.overlap)) best = found;
    });
    return best;
  }

  const divide = (numerator, denominator) => (denominator === 0 ? NaN : numerator / denominator);

  function score(scene, threshold, beta) {
    const { pairs } = match(scene, threshold);
    const tp = pairs.length, fp = scene.predicted.length - tp, fn = scene.gold.length - tp;
    const weighted = (1 + beta ** 2) * tp;
    const f = divide(weighted, weighted + fp + beta ** 2 * fn);
    return { pairs, tp, fp, fn, precision: divide(tp, tp + fp), recall: divide(tp, tp + fn), f };
  }

  // -- drawing

  function element(name, attributes = {}, ...children) {
    const svg = ["svg", "rect", "line", "text", "path", "circle", "g"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  function slider(id, label, attributes, words) {
    const input = element("input", { type: "range", id, ...attributes });
    const output = element("output", { for: id });
    const show = () => {
      output.textContent = Number(input.value).toFixed(2);
      input.setAttribute("aria-valuetext", `${output.textContent}, ${words(Number(input.value))}`);
    };
    input.addEventListener("input", show);
    show();
    return [input, element("p", {}, element("label", { for: id }, label), input, output)];
  }

  function drawScene(svg, scene, { pairs }) {
    const gold = new Set(pairs.map(([one]) => one)), said = new Set(pairs.map(([, other]) => other));
    const draw = (box, style, name, below) => {
      const [x, y, right, bottom] = box;
      const shape = { x, y, width: right - x, height: bottom - y, fill: "none" };
      svg.append(element("rect", { ...shape, ...STYLES[style] }));
      const place = below ? { x: right - 4, y: bottom - 6, "text-anchor": "end" } : { x: x + 4, y: y + 14 };
      svg.append(element("text", { ...place, fill: INK, "font-size": 13 }, name));
    };
    svg.replaceChildren(element("rect", { x: 0, y: 0, width: scene.width, height: scene.height, fill: "#fff", stroke: GRID }));
    scene.gold.forEach((one, at) => draw(one.box, gold.has(at) ? "gold" : "missed", one.class + (gold.has(at) ? "" : ": missed")));
    scene.predicted.forEach((one, at) => draw(one.box, said.has(at) ? "found" : "false", said.has(at) ? "found" : "false", true));
  }

  function drawCurve(svg, scene, threshold, beta, now) {
    const left = 40, top = 12, width = 270, height = 190;
    const x = (value) => left + value * width, y = (value) => top + (1 - value) * height;
    const text = (at, words, more = {}) => element("text", { x: at[0], y: at[1], fill: INK, "font-size": 11, ...more }, words);
    svg.replaceChildren(element("rect", { x: 0, y: 0, width: 330, height: 250, fill: "#fff" }));
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      svg.append(element("line", { x1: left, x2: left + width, y1: y(tick), y2: y(tick), stroke: GRID }));
      svg.append(text([left - 6, y(tick) + 4], tick.toFixed(2), { "text-anchor": "end" }));
      svg.append(text([x(tick), y(0) + 16], tick.toFixed(2), { "text-anchor": "middle" }));
    }
    const steps = Array.from({ length: 100 }, (_, step) => (step + 1) / 100);
    const path = steps.map((step, at) => `${at ? "L" : "M"}${x(step)} ${y(score(scene, step, beta).f)}`).join("");
    svg.append(element("path", { d: path, fill: "none", stroke: "#0072B2", "stroke-width": 2 }));
    svg.append(element("line", { x1: x(threshold), x2: x(threshold), y1: y(0), y2: y(1), stroke: MUTED, "stroke-dasharray": "3 3" }));
    svg.append(element("circle", { cx: x(threshold), cy: y(now.f), r: 6, fill: "#D55E00", stroke: "#fff" }));
    svg.append(text([left + width / 2, y(0) + 36], "IoU threshold", { "text-anchor": "middle" }));
    svg.append(text([left + 4, top + 12], `F at beta ${beta.toFixed(2)}`));
  }

  function build(root) {
    const scene = JSON.parse(root.querySelector("script").textContent);
    const [threshold, first] = slider("explore-iou", "IoU threshold", { min: 0.05, max: 1, step: 0.05, value: 0.5 }, (value) =>
      value > 0.5 ? "stricter than the headline" : value < 0.5 ? "looser than the headline" : "the headline");
    const [beta, second] = slider("explore-beta", "beta", { min: 0.25, max: 4, step: 0.25, value: 2 }, (value) =>
      value > 1 ? "recall weighs more" : value < 1 ? "precision weighs more" : "both weigh alike");
    const picture = element("svg", { viewBox: `-2 -2 ${scene.width + 4} ${scene.height + 4}`, role: "img" });
    const curve = element("svg", { viewBox: "0 0 330 250", role: "img" });
    const names = ["tp", "fp", "fn", "precision", "recall", "f"];
    const heads = ["TP", "FP", "FN", "precision", "recall", "F"];
    const cells = Object.fromEntries(names.map((name) => [name, element("td")]));
    const table = element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, element("tr", {}, ...names.map((name) => cells[name]))));
    const said = element("p", { "aria-live": "polite" });

    function update() {
      const level = Number(threshold.value), weight = Number(beta.value);
      const now = score(scene, level, weight);
      for (const name of names) {
        const whole = name.length === 2;
        const shown = Number.isNaN(now[name]) ? "\u2013" : whole ? String(now[name]) : now[name].toFixed(3);
        cells[name].replaceChildren(element("data", { value: now[name], id: `explore-${name}` }, shown));
      }
      const placed = now.pairs.map(([one, , overlap]) => `${scene.gold[one].class} (IoU ${overlap.toFixed(2)})`);
      said.textContent = placed.length ? `Found: ${placed.join(", ")}.` : "Nothing is found.";
      picture.setAttribute("aria-label", `${scene.gold.length} gold and ${scene.predicted.length} predicted boxes. ${said.textContent}`);
      curve.setAttribute("aria-label", `F over the IoU threshold at beta ${weight.toFixed(2)}: ${cells.f.textContent} at ${level.toFixed(2)}.`);
      drawScene(picture, scene, now);
      drawCurve(curve, scene, level, weight, now);
    }
    threshold.addEventListener("input", update);
    beta.addEventListener("input", update);
    root.append(first, second, element("div", { class: "explore-figures" }, picture, curve), table, said);
    update();
  }

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("explore");
    if (root) build(root);
  });
})();
