// One record: what happened, what comes next, the timeline, and what can be done.
import { $, ago, copy, el, kindOf, state, ticking, time, when } from "./dom.js";
import { get, post } from "./api.js";
import { timeline } from "./timeline.js";
import * as ask from "./ask.js";

let open = ""; // the key of the open record
let seen = "";
let by = "";
let acted = () => {};

export const openKey = () => open;
export function begin(name, onAct) {
  by = name;
  acted = onAct;
  ask.begin();
  $("story").addEventListener("click", (e) => {
    if (e.target.id === "personal") personal(e.target);
  });
}

export function close() {
  open = seen = "";
  $("record").hidden = true;
  $("main").classList.remove("both");
  $("story").replaceChildren();
}

// show draws a record. again means that the record is open already and may have changed.
export async function show(pk, again) {
  if (!again) {
    open = pk;
    seen = "";
  }
  let story;
  try {
    story = await get(`/api/record?pk=${encodeURIComponent(pk)}`);
  } catch (e) {
    if (open !== pk) return;
    if (e.status !== 404) throw e;
    frame("No such record", el("p", { class: "lead" }, "There is no such record, or it has expired."));
    seen = "";
    return;
  }
  if (open !== pk || story.seen === seen) return; // another record is open by now, or the record is unchanged
  seen = story.seen;
  draw(story);
}

// frame shows a record's parts. For a changed record the focus stays where it was.
function frame(title, ...body) {
  const was = $("story").contains(document.activeElement) ? nameOf(document.activeElement) : undefined;
  $("record-head").textContent = title;
  $("story").replaceChildren(...body);
  $("record").hidden = false;
  $("main").classList.add("both");
  if (was !== undefined) ([...$("story").querySelectorAll("button")].find((b) => nameOf(b) === was) ?? $("record-head")).focus();
}

const nameOf = (e) => e.dataset.copy ?? e.dataset.do ?? e.id;
const moment = (at, happened) => ticking(time(at), (now) => `${when(at)}, ${ago(at, now, happened)}`);

function draw(s) {
  frame(s.route || "A record without a route",
    el("p", { class: "lead" }, state(s)),
    el("div", { class: "lead" }, ...(s.said ?? []).map((t) => el("p", {}, t))),
    s.next?.length ? el("div", { class: `next ${kindOf(s)}` }, el("h3", {}, "Next"), el("ul", {}, ...s.next.map(step))) : "",
    s.offers?.length
      ? el("div", { class: "buttons", role: "group", "aria-label": "Actions" }, ...s.offers.map((o, i) =>
          el("button", { type: "button", class: i === 0 && !o.call && o.do !== "forget" ? "main" : "", "data-do": o.do, onclick: () => ask.open(s, o, by, acted) }, `${o.label}…`)))
      : "",
    el("h3", {}, "Timeline"),
    s.spans?.length ? timeline(s.spans) : el("p", { class: "quiet" }, "Nothing is known."),
    el("h3", {}, "Facts"),
    el("dl", { class: "facts" }, ...(s.facts ?? []).flatMap((f) =>
      [el("dt", {}, f.label), el("dd", {}, f.at ? moment(f.at, f.label === "Claimed") : el("span", {}, f.value ?? ""),
        ["Record", "Operation", "Scope"].includes(f.label) ? copy(f.value, f.label.toLowerCase()) : "")])),
    el("h3", {}, "Request and answer"),
    el("div", { id: "private" },
      el("p", { class: "quiet" }, "They may be personal, and are shown only on request."),
      el("div", { class: "buttons" }, el("button", { type: "button", id: "personal" }, "Show request, answer, results and jobs"))));
}

function step(n) {
  return el("li", {}, el("b", {}, n.who), " ", n.what, n.at ? el("span", { class: "quiet" }, " — ", moment(n.at)) : "",
    n.command ? el("span", { class: "command" }, el("code", {}, n.command), copy(n.command, `the command: ${n.what}`)) : "");
}

async function personal(button) {
  button.disabled = true;
  const pk = open;
  let story;
  try {
    story = await post("/api/data", { pk });
  } catch (e) {
    button.disabled = false;
    $("private").append(el("p", { role: "alert" }, e.message));
    return;
  }
  if (open !== pk) return;
  const p = story.personal ?? {};
  const message = (name, m) => m
    ? [el("h3", {}, `${name}: ${m.head}`), m.headers?.length ? el("pre", {}, m.headers.map(([k, v]) => `${k}: ${v}`).join("\n")) : "",
        m.note ? el("p", { class: "quiet" }, m.note) : el("pre", { tabindex: "0" }, m.body || "(empty)")]
    : [el("p", { class: "quiet" }, `${name}: not stored.`)];
  $("private").replaceChildren(...message("Request", p.request), ...message("Answer", p.answer),
    ...(p.parts ?? []).flatMap((part) => [el("h3", {}, part.name), el("pre", { tabindex: "0" }, part.json)]));
  $("private").setAttribute("tabindex", "-1");
  $("private").focus();
}
