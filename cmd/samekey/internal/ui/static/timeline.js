// The timeline: a bar for each attempt, phase and job. The scale is
// logarithmic: it shows gaps from milliseconds to days on one line.
import { copy, el, ticking, took, when } from "./dom.js";

const words = { done: "", running: "running", failed: "failed", unknown: "outcome unknown", waiting: "waiting", parked: "parked" };

// scale returns a function from a time to 0…100.
function scale(times) {
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  const at = new Map();
  let sum = 0;
  sorted.forEach((t, i) => {
    if (i > 0) sum += Math.log2(2 + t - sorted[i - 1]);
    at.set(t, sum);
  });
  return (t) => (sum === 0 ? 0 : (at.get(t) / sum) * 100);
}

export function timeline(spans) {
  const now = Date.now();
  const runs = (s) => s.from && !s.to && s.state === "running";
  // A running span ends now, or at its begin if the clock that noted the begin is ahead.
  const endOf = (s, at = now) => s.to || (runs(s) ? Math.max(at, s.from) : s.from);
  const times = spans.filter((s) => s.from).flatMap((s) => [s.from, endOf(s)]);
  const x = scale(times);
  const first = Math.min(...times);
  const last = (at) => Math.max(...spans.filter((s) => s.from).map((s) => endOf(s, at)));
  return el("div", {},
    el("ol", { class: "spans" }, ...spans.map((s) => {
      const end = endOf(s);
      const track = el("span", { class: "track", "aria-hidden": "true" });
      if (s.from) {
        const bar = el("span", { class: "bar" });
        bar.style.setProperty("--from", `min(${x(s.from).toFixed(2)}%, 100% - 4px)`);
        bar.style.setProperty("--long", `${(x(end) - x(s.from)).toFixed(2)}%`);
        track.append(bar);
      }
      let length = "";
      if (s.from && end > s.from) length = took(end - s.from);
      else if (s.from) length = s.from === first ? "0" : `+${took(s.from - first)}`;
      const long = el("span", { class: "took", title: s.from ? when(s.from) : "" }, length);
      if (runs(s)) ticking(long, (at) => took(endOf(s, at) - s.from));
      return el("li", { class: s.state },
        el("span", { class: "name" }, el("span", { class: "lane" }, s.lane + (words[s.state] ? `, ${words[s.state]}` : "")), s.name),
        track,
        long,
        s.note ? el("span", { class: "note" }, s.note, s.lane === "call" ? copy(s.note.replace("under the key ", ""), `the derived key of ${s.name}`) : "") : "");
    })),
    last(now) > first
      ? el("p", { class: "scale" }, `From ${when(first)}, over `, ticking(el("span"), (at) => took(last(at) - first)), ". Long gaps are drawn shorter.")
      : "");
}
