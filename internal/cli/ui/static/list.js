// The list: counts, chart, filters, rows, pages.
import { $, ago, el, number, state, svg, time, when, reasonText } from "./dom.js";
import { get } from "./api.js";

const f = { kind: "", reason: "", route: "", time: "", from: 0, to: 0, order: "", size: 100, page: 0 };
const shown = new Map(); // rows by their key
let last; // the listing that is shown
let here = ""; // the record that is open
let asked; // aborts the call under way

export const current = () => last;

function query() {
  const q = new URLSearchParams();
  for (const k of ["kind", "reason", "route", "order"]) if (f[k]) q.set(k, f[k]);
  let { from, to } = f;
  if (f.time && f.time !== "chart") [from, to] = [Date.now() - f.time * 1000, 0];
  if (from) q.set("from", Math.floor(from));
  if (to) q.set("to", Math.ceil(to));
  q.set("size", f.size);
  q.set("page", f.page);
  return q;
}

export async function refresh() {
  asked?.abort();
  asked = new AbortController();
  try {
    last = await get(`/api/requests?${query()}`, asked.signal);
  } catch (e) {
    if (e.name === "AbortError") return last;
    throw e;
  }
  draw();
  return last;
}

function draw() {
  drawKinds();
  drawChart();
  options($("reason"), f.reason, Object.entries(last.reasons).sort().map(([why, n]) => [why, `${reasonText(why)} (${number(n)})`]));
  options($("route"), f.route, (last.routes ?? []).map((r) => [r.name, `${r.name} (${number(r.count)})`]));
  drawRows();
  f.page = last.page;
  $("pages").hidden = last.pages < 2;
  $("page").textContent = `Page ${number(last.page + 1)} of ${number(last.pages)}, ${number(last.matched)} requests`;
  $("earlier").disabled = last.page === 0;
  $("later").disabled = last.page + 1 >= last.pages;
}

const kinds = [["", "All"], ["done", "Done"], ["open", "Open"], ["waiting", "Waiting for people"]];

function drawKinds() {
  const box = $("kinds");
  if (box.childElementCount === 0) {
    for (const [kind, name] of kinds) {
      box.append(el("button", { type: "button", "data-kind": kind, onclick: () => set({ kind }) },
        kind ? el("span", { class: `dot ${kind}`, "aria-hidden": "true" }) : "", `${name} `, el("b")));
    }
  }
  for (const button of box.children) {
    const kind = button.dataset.kind;
    button.setAttribute("aria-pressed", String(f.kind === kind));
    text(button.lastChild, number(kind ? last.kinds[kind] ?? 0 : last.total));
  }
}

function drawChart() {
  const { from, step, buckets } = last.chart;
  const box = $("chart");
  box.hidden = !buckets?.length;
  if (box.hidden) return;
  const most = Math.max(...buckets.map((b) => b[0] + b[1] + b[2]), 1);
  const bars = svg("svg", { viewBox: `0 0 ${buckets.length * 10} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
  buckets.forEach((bucket, i) => {
    let y = 100;
    ["done", "open", "waiting"].forEach((kind, k) => {
      if (!bucket[k]) return;
      const high = Math.max((bucket[k] / most) * 96, 3);
      y -= high;
      bars.append(svg("rect", { class: kind, x: i * 10 + 1, width: 8, y, height: high }));
    });
    const hit = svg("rect", { class: "hit", x: i * 10, width: 10, y: 0, height: 100 });
    const title = svg("title");
    title.textContent = `${when(from + i * step)}: ${bucket[0]} done, ${bucket[1]} open, ${bucket[2]} waiting for people`;
    hit.append(title);
    hit.addEventListener("click", () => set({ time: "chart", from: from + i * step, to: from + (i + 1) * step }));
    bars.append(hit);
  });
  box.querySelector("svg")?.remove();
  box.prepend(bars);
  $("chart-from").textContent = when(from);
  $("chart-what").textContent = "requests by time";
  $("chart-to").textContent = when(from + buckets.length * step);
}

function options(select, value, list) {
  const wanted = [["", "any"], ...list];
  if (value && !list.some(([v]) => v === value)) wanted.push([value, `${value} (0)`]);
  if (JSON.stringify(wanted) !== select.dataset.list) {
    select.dataset.list = JSON.stringify(wanted);
    select.replaceChildren(...wanted.map(([v, text]) => el("option", { value: v }, text)));
  }
  select.value = value;
}

// drawRows keeps the elements of rows that stay, and so the focus.
function drawRows() {
  const body = $("rows");
  const wanted = last.rows.map((row) => {
    const is = shown.get(row.pk);
    const version = JSON.stringify(row);
    if (is?.version === version) return is.tr;
    const focused = is?.tr.contains(document.activeElement);
    const tr = rowOf(row);
    if (is) is.tr.replaceWith(tr);
    if (focused) tr.querySelector("a").focus();
    shown.set(row.pk, { tr, version, began: tr.querySelector("time"), at: row.created });
    return tr;
  });
  let next = body.firstChild;
  for (const tr of wanted) {
    if (tr === next) next = next.nextSibling;
    else body.insertBefore(tr, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    shown.delete(gone.dataset.pk);
    gone.remove();
  }
  mark();
  ages();
}

function rowOf(row) {
  const what = row.route || (row.reasons?.includes("unreadable") ? "a record that this program can’t read" : "no route");
  const tr = el("tr", {},
    el("td", {}, state(row)),
    el("td", {}, el("a", { href: `#/record/${encodeURIComponent(row.pk)}` }, what), row.error ? el("span", { class: "quiet" }, row.error) : ""),
    el("td", { class: "wide" }, row.phase ?? ""),
    el("td", { class: "wide num" }, row.tries ? number(row.tries) : ""),
    el("td", { class: "num" }, row.created ? time(row.created, "") : ""),
    el("td", { class: "wide mono" }, row.name));
  tr.dataset.pk = row.pk;
  return tr;
}

// ages tells how long ago the rows began, without reading them again.
export function ages() {
  const now = Date.now();
  for (const { began, at } of shown.values()) if (began) text(began, ago(at, now));
}

function text(node, s) {
  if (node.textContent !== s) node.textContent = s;
}

export function mark(pk = here) {
  document.querySelector("tr.here")?.classList.remove("here");
  here = pk;
  shown.get(pk)?.tr.classList.add("here");
}

let changed = () => {};

function set(next, focus) {
  Object.assign(f, { page: 0 }, next);
  for (const k of ["time", "order"]) $(k).value = f[k];
  $("time").querySelector("[value=chart]").hidden = f.time !== "chart";
  changed(focus);
}

export function begin(onChange) {
  changed = onChange;
  for (const k of ["reason", "route", "order", "size"]) $(k).addEventListener("change", (e) => set({ [k]: e.target.value }));
  $("time").addEventListener("change", (e) => set({ time: e.target.value, from: 0, to: 0 }));
  $("earlier").addEventListener("click", () => set({ page: f.page - 1 }));
  $("later").addEventListener("click", () => set({ page: f.page + 1 }));
  $("rows").addEventListener("pointerover", (e) => {
    const began = e.target.closest("time");
    if (began) began.title = when(new Date(began.dateTime));
  });
  $("rows").addEventListener("click", (e) => {
    if (!e.target.closest("a") && !String(getSelection())) e.target.closest("tr")?.querySelector("a").click();
  });
}

// step moves the focus down or up by a row. It reports whether there was a row.
export function step(by) {
  const rows = [...$("rows").children];
  if (rows.length === 0) return false;
  const at = rows.findIndex((tr) => tr.contains(document.activeElement));
  const from = at >= 0 ? at : rows.findIndex((tr) => tr.classList.contains("here"));
  const to = from < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(from + by, 0), rows.length - 1);
  rows[to].querySelector("a").focus();
  rows[to].scrollIntoView({ block: "nearest" });
  return true;
}

// focus puts the focus back on a row.
export function focus(pk) {
  const row = shown.get(pk)?.tr.querySelector("a");
  (row ?? $("list-head")).focus();
}
