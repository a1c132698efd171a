// The page: session, events, addresses, search and keyboard.
import { $, el, number, say, tick } from "./dom.js";
import { enter, get, listen, post } from "./api.js";
import * as list from "./list.js";
import * as record from "./record.js";
import { openSeveral } from "./ask.js";

let about = {};

// trouble shows errors by kind: of a call, of the connection to the server, of the scan.
const troubles = {};
function trouble(kind, e) {
  troubles[kind] = e?.message ?? "";
  const text = [...new Set(Object.values(troubles).filter(Boolean))].join(" ");
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

// guarded wraps fn, and shows its error on the page.
const guarded = (fn) => async (...args) => {
  try {
    const out = await fn(...args);
    trouble("call", null);
    return out;
  } catch (e) {
    trouble("call", e);
  }
};

async function start() {
  for (const id of ["find", "narrow"]) $(id).open = matchMedia("(min-width: 44rem)").matches;
  await enter();
  about = await get("/api/about");
  $("about").textContent = [about.table, about.region, about.endpoint].filter(Boolean).join(" · ");
  document.title = `${about.table} · samekey`;
  list.begin(guarded(async () => {
    const l = await list.refresh();
    drawScan(l.scan);
    say(l.matched === 1 ? "1 request matches." : `${number(l.matched)} requests match.`);
  }));
  record.begin(about.by ?? "", guarded(async (said) => {
    say(said);
    await record.show(record.openKey(), true);
    await list.refresh();
    $("record-head").focus();
  }));
  for (const button of $("several").querySelectorAll("button")) {
    button.addEventListener("click", () => openSeveral(list.chosenFor(button.dataset.many), button.dataset.many, about.by ?? "", guarded(async (said) => {
      say(said);
      list.unpick();
      drawScan((await list.refresh()).scan);
      $("list-head").focus();
    })));
  }
  drawScan((await list.refresh()).scan);
  addEventListener("hashchange", route);
  await route();
  setInterval(tick, 1000);
  listen(heard, (e) => trouble("line", e));
}

// heard loads changed data again, and a long list at most every five seconds.
let due = 0;
let lately = 0;
function heard(event) {
  drawScan(event.scan);
  const pk = record.openKey();
  if (pk && (event.many || event.pks?.includes(pk))) guarded(record.show)(pk, true);
  if (due) return;
  const rows = list.current()?.rows.length ?? 0;
  const pause = Math.max(0, lately + (rows > 1000 ? 5000 : 500) - Date.now());
  due = setTimeout(guarded(async () => {
    due = 0;
    lately = Date.now();
    const before = list.current()?.kinds.waiting ?? 0;
    const l = await list.refresh();
    drawScan(l.scan);
    const more = (l.kinds.waiting ?? 0) - before;
    if (more > 0) say(more === 1 ? "1 more request waits for people." : `${number(more)} more requests wait for people.`);
  }), pause);
}

function drawScan(scan) {
  const l = list.current();
  const live = $("live");
  live.className = scan.live ? "on" : "";
  live.textContent = scan.live ? "live" : scan.running ? "" : scan.ended ? `read at ${new Date(scan.ended).toLocaleTimeString()}` : "";
  const load = $("load");
  // A table that is read repeatedly shows its scans only once.
  const running = scan.running && !(scan.live && scan.ended);
  const key = JSON.stringify([running, scan.complete, scan.live]);
  if (load.dataset.key !== key) {
    load.dataset.key = key;
    const parts = [];
    if (running) parts.push(el("span", { id: "progress" }), el("button", { type: "button", onclick: guarded(() => post("/api/stop", {})) }, "Stop"));
    else if (!scan.live) parts.push(el("button", { type: "button", id: "read", onclick: guarded(readTable) }, scan.complete ? "Read the table again" : "Read the table"));
    load.replaceChildren(...parts);
  }
  if (running && $("progress")) {
    $("progress").textContent = `Reading: ${number(scan.scanned)} items${scan.units ? `, ${number(Math.round(scan.units))} read units` : ""}`;
  }
  trouble("scan", scan.error ? new Error(scan.error) : null);
  const none = $("none");
  none.hidden = !l || l.rows.length > 0;
  none.textContent = l?.total ? "No request matches." : scan.running ? "Reading the table…"
    : scan.complete ? "The table has no requests yet." : scan.query ? "Nothing waits for people. Read the table to see all requests." : "Read the table to see its requests.";
  const bound = $("bound");
  bound.hidden = !l?.dropped && (scan.complete || scan.live || !scan.query);
  bound.textContent = l?.dropped ? `The newest ${number(about.newest)} requests are shown; the table has more.`
    : "Only requests that wait for people are shown so far.";
}

async function readTable() {
  if (!about.local) {
    const size = await get("/api/size");
    const cost = `The table has about ${number(size.items)} items. Reading all of it takes about ${number(Math.ceil(size.units))} read units.`;
    if (!$("load").dataset.cost) {
      $("load").dataset.cost = cost;
      $("load").prepend(el("span", { id: "cost", role: "status" }, cost));
      $("read").textContent = "Read it";
      return;
    }
    delete $("load").dataset.cost;
  }
  drawScan(await post("/api/scan", {}));
}

// Addresses: #/record/KEY is an open record; any other fragment is the list.
const route = guarded(async () => {
  if (location.hash.startsWith("#token=")) {
    location.reload(); // the printed link was opened again
    return;
  }
  const m = /^#\/record\/(.+)$/.exec(location.hash);
  if (!m) {
    const was = record.openKey();
    record.close();
    list.mark("");
    if (was) list.focus(was);
    return;
  }
  const pk = decodeURIComponent(m[1]);
  list.mark(pk);
  await record.show(pk);
  $("record-head").focus();
});

function closeRecord() {
  if (record.openKey()) location.hash = "#/";
}

$("close").addEventListener("click", closeRecord);
$("search-by").addEventListener("change", () => {
  const by = $("search-by").value;
  $("search-more").hidden = by !== "key";
  $("search-text").placeholder = { key: "Idempotency-Key", caller: "subject, or whole scope" }[by] ?? "key or short name  ( / )";
});
// The search goes into the body of a POST: a customer's key never gets
// into an address, the history or a log.
$("search").addEventListener("submit", guarded(async (e) => {
  e.preventDefault();
  const text = $("search-text").value.trim();
  if (!text) return;
  const key = $("search-by").value === "key";
  if ($("search-by").value === "caller") {
    await ofCaller(text);
    return;
  }
  await find(key ? { key: text, scope: $("search-scope").value, namespace: $("search-namespace").value } : { any: text }, key);
}));

async function find(search, scannable) {
  const scan = $("search-scan");
  scan.hidden = true;
  say(search.scan ? "Reading the table…" : "Searching…");
  const { pks, only } = await post("/api/find", search);
  if (!pks?.length) {
    say(["Nothing was found.", only].filter(Boolean).join(" "));
    if (!scannable || search.scan) return;
    const size = await get("/api/size");
    scan.textContent = `Read the table: about ${number(Math.ceil(size.units))} read units`;
    scan.onclick = guarded(() => find({ ...search, scan: true }, false));
    scan.hidden = false;
    return;
  }
  say([pks.length === 1 ? "Found." : `${number(pks.length)} were found; the newest is shown.`, search.scan ? only : ""].filter(Boolean).join(" "));
  location.hash = `#/record/${encodeURIComponent(pks[0])}`;
}

// ofCaller scans the table for all requests of a caller, and lists them.
async function ofCaller(scope) {
  const scan = $("search-scan");
  const size = await get("/api/size");
  scan.textContent = `Read the table: about ${number(Math.ceil(size.units))} read units`;
  scan.onclick = guarded(async () => {
    scan.hidden = true;
    say("Reading the table…");
    const { pks, only } = await post("/api/find", { scope, caller: true, scan: true });
    list.ofCaller(scope);
    say([pks?.length === 1 ? "1 request is of this caller." : `${number(pks?.length ?? 0)} requests are of this caller.`, only].filter(Boolean).join(" "));
  });
  scan.hidden = false;
  if (about.local) scan.click();
}

$("help").addEventListener("click", () => $("keys").showModal());

addEventListener("keydown", (e) => {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  if (e.key === "Escape") {
    if (document.activeElement?.closest("#search")) document.activeElement.blur();
    else closeRecord();
    return;
  }
  if (e.target.closest("input, select, textarea")) return;
  const inList = Boolean(e.target.closest("#rows"));
  if (e.key === "?") $("keys").showModal();
  else if (e.key === "/") {
    $("find").open = true;
    $("search-text").focus();
  }
  else if (e.key === "j" || (e.key === "ArrowDown" && inList)) list.step(1);
  else if (e.key === "k" || (e.key === "ArrowUp" && inList)) list.step(-1);
  else return;
  e.preventDefault();
});

guarded(start)();
