// Tables that sort by a click on a column's head and filter by a word, wide tables that scroll by keyboard, and folded parts
// that open for the printer.
// Without this script they are the same tables, in their first order.
"use strict";

(() => {
  const NUMBER = /^[+\u2212-]?[\d,]*\.?\d+/; // also the start of an interval or a starred point
  const DASH = "\u2013";
  const FEW = 8; // rows that need no filter
  const plain = (text) => text.normalize("NFC").toLowerCase();

  // The value of a cell to sort by: a number, a text, or null for a dash, which comes last either way.
  function value(row, column, numeric) {
    const text = row.cells[column].textContent.trim();
    if (text === DASH || text === "") return null;
    return numeric ? Number(text.match(NUMBER)[0].replaceAll(",", "").replace("\u2212", "-")) : text;
  }

  function compare(a, b) {
    return typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
  }

  function sort(body, rows, column, direction) {
    const texts = rows.map((row) => row.cells[column].textContent.trim()).filter((text) => text && text !== DASH);
    const numeric = texts.every((text) => NUMBER.test(text));
    const keyed = rows.map((row) => [value(row, column, numeric), row]);
    keyed.sort(([a], [b]) => (a === null ? (b === null ? 0 : 1) : b === null ? -1 : direction * compare(a, b)));
    body.append(...(direction ? keyed.map(([, row]) => row) : rows));
  }

  function addSorting(table, body, rows) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        // numbers are most often looked at from the largest, so a click more turns them round, and a third restores
        const next = { none: "descending", descending: "ascending", ascending: "none" }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", other === head ? next : "none"));
        sort(body, rows, column, { none: 0, ascending: 1, descending: -1 }[next]);
      });
    });
  }

  function addFilter(table, rows) {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "search" });
    const count = document.createElement("output");
    label.className = "table-filter";
    label.append("Rows with ", input, count);
    table.before(label);
    input.addEventListener("input", () => {
      const wanted = plain(input.value.trim());
      rows.forEach((row) => (row.hidden = !plain(row.textContent).includes(wanted)));
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = wanted ? ` ${shown} of ${rows.length}` : "";
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const table of document.querySelectorAll(".bd-article table.sortable")) {
      const body = table.tBodies[0];
      const rows = [...body.rows];
      addSorting(table, body, rows);
      if (rows.length > FEW) addFilter(table, rows);
    }
    // Sphinx gives entries of a bibliography a role that is no longer in use.
    document.querySelectorAll(".citation-list > .citation").forEach((entry) => entry.setAttribute("role", "listitem"));
    addEventListener("beforeprint", () => document.querySelectorAll(".bd-article details").forEach((part) => (part.open = true)));
    const scrolls = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
        else target.removeAttribute("tabindex");
      }
    });
    document.querySelectorAll(".bd-article table, .bd-article pre").forEach((part) => scrolls.observe(part));
  });
})();
