// The list: counts, chart, filters, rows, pages.
import { $, ago, el, number, state, svg, ticking, time, took, when, write, reasonText } from "./dom.js";
import { get } from "./api.js";

const f = { kind: "", reason: "", route: "", caller: "", time: "", from: 0, to: 0, order: "", size: 100, page: 0 };
const shown = new Map(); // rows by their key
let last; // the present listing
let here = ""; // the open record
let asked; // aborts the running call
let chosen = false; // a person has chosen a filter
const picked = new Map(); // rows that are chosen, by their key

export const current = () => last;

function query() {
  const q = new URLSearchParams();
  for (const k of ["kind", "reason", "route", "caller", "order"]) if (f[k]) q.set(k, f[k]);
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
  // At first the list shows what waits for people, if there is anything.
  if (!chosen && last.kinds.waiting) {
    f.kind = "waiting";
    chosen = true;
    return refresh();
  }
  chosen ||= last.scan.complete;
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
    write(button.lastChild, number(kind ? last.kinds[kind] ?? 0 : last.total));
  }
}

function drawChart() {
  const { from, step, buckets } = last.chart;
  const box = $("chart");
  box.hidden = !buckets?.length;
  if (box.hidden) return;
  const most = Math.max(...buckets.map((b) => b[0] + b[1] + b[2]), 1);
  const bars = svg("svg", { viewBox: `0 0 ${buckets.length * 10} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const y of [0.5, 50]) bars.append(svg("line", { class: "line", x1: 0, x2: buckets.length * 10, y1: y, y2: y }));
  buckets.forEach((bucket, i) => {
    let y = 100;
    ["done", "open", "waiting"].forEach((kind, k) => {
      if (!bucket[k]) return;
      const high = Math.max((bucket[k] / most) * 99, 3);
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
  $("chart-most").textContent = number(most);
  $("chart-what").textContent = `${last.matched === 1 ? "1 request" : `${number(last.matched)} requests`} by time, at most ${number(most)} in ${took(step)}`;
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

// drawRows keeps the elements of unchanged rows, so that they keep the focus.
function drawRows() {
  const body = $("rows");
  // The columns of waiting rows are the place and the tries; those of
  // other rows are the caller and the duration.
  const waits = f.kind === "waiting";
  write($("third"), waits ? "At" : "Caller");
  write($("fourth"), waits ? "Tries" : "Took");
  const wanted = last.rows.map((row) => {
    const is = shown.get(row.pk);
    const version = JSON.stringify([row, waits]);
    if (is?.version === version) return is.tr;
    const focused = is?.tr.contains(document.activeElement);
    const tr = rowOf(row, waits);
    if (is) is.tr.replaceWith(tr);
    if (focused) tr.querySelector("a").focus();
    shown.set(row.pk, { tr, version });
    return tr;
  });
  // Remove old rows first: moving a row in front of them would lose its focus.
  const stays = new Set(wanted);
  for (const tr of [...body.children]) {
    if (stays.has(tr)) continue;
    shown.delete(tr.dataset.pk);
    tr.remove();
  }
  let next = body.firstChild;
  for (const tr of wanted) {
    if (tr === next) next = next.nextSibling;
    else body.insertBefore(tr, next);
  }
  mark();
}

// several returns the action that several rows may have at once; "" for none.
function several(row) {
  if (row.reasons?.includes("parked")) return "redrive";
  return row.reasons?.includes("stuck") ? "retry" : "";
}

function pick(row, on) {
  if (on) picked.set(row.pk, row);
  else picked.delete(row.pk);
  const by = (what) => [...picked.values()].filter((r) => several(r) === what);
  $("several").hidden = picked.size === 0;
  $("several-what").textContent = `${number(picked.size)} chosen`;
  for (const b of $("several").querySelectorAll("button")) b.hidden = by(b.dataset.many).length === 0;
}

// chosenFor returns the chosen rows that permit an action.
export const chosenFor = (what) => [...picked.values()].filter((r) => several(r) === what);
export function unpick() {
  for (const row of [...picked.values()]) pick(row, false);
  for (const box of $("rows").querySelectorAll("input")) box.checked = false;
}

function rowOf(row, waits) {
  const what = row.route || (row.reasons?.includes("unreadable") ? "a record that this program can’t read" : "no route");
  const box = waits && several(row)
    ? el("label", { class: "pick" }, el("input", { type: "checkbox", "aria-label": `Choose ${row.name}`, checked: picked.has(row.pk), onchange: (e) => pick(row, e.target.checked) })) : "";
  const tr = el("tr", {},
    el("td", {}, el("span", { class: "first" }, box, state(row))),
    el("td", {}, el("a", { href: `#/record/${encodeURIComponent(row.pk)}` }, what), row.error ? el("span", { class: "quiet" }, row.error) : ""),
    el("td", { class: "wide" }, (waits ? row.phase : row.caller) ?? ""),
    el("td", { class: "wide num" }, waits ? (row.tries ? number(row.tries) : "") : row.took ? took(row.took) : ""),
    el("td", { class: "num" }, row.created ? ticking(time(row.created, ""), (now) => ago(row.created, now, true)) : ""),
    el("td", { class: "wide mono" }, row.name));
  tr.dataset.pk = row.pk;
  return tr;
}

export function mark(pk = here) {
  document.querySelector("tr.here")?.classList.remove("here");
  here = pk;
  shown.get(pk)?.tr.classList.add("here");
}

let changed = () => {};

function set(next, focus) {
  chosen = true;
  if (next.kind !== undefined) unpick();
  Object.assign(f, { page: 0 }, next);
  for (const k of ["time", "order", "caller"]) $(k).value = f[k];
  $("time").querySelector("[value=chart]").hidden = f.time !== "chart";
  changed(focus);
}

export function begin(onChange) {
  changed = onChange;
  for (const k of ["reason", "route", "caller", "order", "size"]) $(k).addEventListener("change", (e) => set({ [k]: e.target.value }));
  $("time").addEventListener("change", (e) => set({ time: e.target.value, from: 0, to: 0 }));
  $("earlier").addEventListener("click", () => set({ page: f.page - 1 }));
  $("later").addEventListener("click", () => set({ page: f.page + 1 }));
  $("rows").addEventListener("pointerover", (e) => {
    const began = e.target.closest("time");
    if (began) began.title = when(new Date(began.dateTime));
  });
  $("rows").addEventListener("click", (e) => {
    if (!e.target.closest("a, label") && !String(getSelection())) e.target.closest("tr")?.querySelector("a").click();
  });
}

// ofCaller shows all requests of a caller.
export const ofCaller = (caller) => set({ caller, kind: "", reason: "", route: "", time: "", from: 0, to: 0 });

// step moves the focus down or up by a row, and reports whether there is a row.
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

// focus sets the focus on a row, or on the heading if there is no such row.
export function focus(pk) {
  const row = shown.get(pk)?.tr.querySelector("a");
  (row ?? $("list-head")).focus();
}
