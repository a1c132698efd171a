// Elements and texts. Every text becomes a text node, so nothing from a record is markup.

export const $ = (id) => document.getElementById(id);

// el makes an element. A string among the children becomes a text node.
export function el(name, props = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (k === "class") e.className = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return e;
}

export function svg(name, props = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

const units = [["d", 86400e3], ["h", 3600e3], ["m", 60e3], ["s", 1e3]];

// took formats a duration in milliseconds in its two largest units.
export function took(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10e3) return `${(ms / 1000).toFixed(1)} s`;
  const parts = [];
  for (const [name, size] of units) {
    const n = Math.floor(ms / size);
    if (n > 0 || parts.length > 0) parts.push(n > 0 ? `${n} ${name}` : "");
    if (parts.length === 2) break;
    ms -= n * size;
  }
  return parts.filter(Boolean).join(" ");
}

// ago formats the distance of a time from now in the largest unit. A past event with a
// later time means that this clock is behind, or the clock that noted the event was ahead.
export function ago(at, now = Date.now(), happened = false) {
  const ms = Math.abs(now - at);
  for (const [name, size] of units) {
    if (ms < size) continue;
    const long = `${Math.floor(ms / size)} ${name}`;
    if (at <= now) return `${long} ago`;
    if (!happened) return `in ${long}`;
    if (ms >= 60e3) return `${long} ahead of this clock`;
  }
  return "now";
}

// say announces a text to screen readers, also if it is the same text again.
export function say(text) {
  const status = $("status");
  if (text && status.textContent === text) {
    status.textContent = "";
    setTimeout(() => { status.textContent ||= text; }, 100);
  } else status.textContent = text;
}

let copied = () => {}; // resets the button of the last copied text

// copy makes a button that copies a text. what names the text for screen readers.
export function copy(text, what) {
  const button = el("button", { type: "button", class: "copy", "data-copy": what });
  const named = (word) => {
    button.textContent = word;
    button.setAttribute("aria-label", `${word} ${what}`);
  };
  named("Copy");
  button.addEventListener("click", async () => {
    copied();
    copied = () => named("Copy");
    try {
      await navigator.clipboard.writeText(text);
      named("Copied");
    } catch {
      named("Not allowed");
    }
    say(`${button.textContent}: ${what}`);
  });
  return button;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
export const when = (at) => clock.format(new Date(at));
export const number = (n) => n.toLocaleString();

// time makes a time element with a tooltip. In long lists the mouse adds the tooltip.
export function time(at, text) {
  return el("time", { datetime: new Date(at).toISOString(), title: text === "" ? null : when(at) }, text ?? when(at));
}

// ticking updates the text of an element while the page is open. said
// makes the text from the present time.
const ticked = document.getElementsByClassName("ticking");
export function ticking(e, said) {
  e.classList.add("ticking");
  e.said = said;
  e.textContent = said(Date.now());
  return e;
}

export function tick(now = Date.now()) {
  for (const e of ticked) write(e, e.said(now));
}

// write changes a text only if it differs.
export function write(node, s) {
  if (node.textContent !== s) node.textContent = s;
}

const reasons = {
  unknown: "stuck", stuck: "stuck", blocked: "blocked", parked: "job parked", unreadable: "unreadable", open: "abandoned", no_request: "abandoned",
  expiring: "expiring", undelivered: "job late", kept: "kept",
};
const longReasons = {
  unknown: "stuck: a call is in doubt", stuck: "stuck: a person decides", blocked: "blocked: the program refuses to continue", parked: "a job is parked",
  unreadable: "unreadable", open: "abandoned: the completer ends it", no_request: "abandoned: only the client can end it",
  expiring: "abandoned: will be forgotten", undelivered: "a job is late", kept: "done, but still kept",
};
export const reasonText = (why) => longReasons[why] ?? why;
const people = ["unknown", "stuck", "blocked", "parked", "unreadable"];

// kindOf returns done, open or waiting (for people).
export function kindOf(row) {
  if ((row.reasons ?? []).some((w) => people.includes(w))) return "waiting";
  return row.state === "done" ? "done" : "open";
}

export function state(row) {
  const kind = kindOf(row);
  const why = row.reasons?.find((w) => people.includes(w)) ?? row.reasons?.[0];
  const text = why ? reasons[why] ?? why : row.state === "done" && row.status ? `done ${row.status}` : row.state;
  return el("span", { class: `state ${kind}` }, el("span", { class: `dot ${kind}`, "aria-hidden": "true" }), text);
}
