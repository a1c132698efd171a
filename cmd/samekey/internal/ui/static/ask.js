// Actions: a form, the server's question, then the action.
import { $, el } from "./dom.js";
import { get, post } from "./api.js";

const dialog = $("ask");
let step = async () => {};
let busy = false;

export function begin() {
  $("ask-no").addEventListener("click", () => dialog.close());
  $("ask-form").addEventListener("submit", async (e) => {
    e.preventDefault();
    if (busy) return;
    busy = true; // the button stays as it is: a disabled one would lose the focus
    trouble("");
    try {
      await step();
    } catch (err) {
      trouble(err.message);
    }
    busy = false;
  });
}

function trouble(text) {
  $("ask-error").textContent = text;
  $("ask-error").hidden = !text;
}

function show(title, yes, ...body) {
  $("ask-head").textContent = title;
  $("ask-yes").textContent = yes;
  $("ask-body").replaceChildren(...body);
  trouble("");
}

// open leads a person through an action, and calls done with the
// server's sentence about the outcome.
export function open(story, offer, by, done) {
  const form = forms[offer.do]?.(offer) ?? { body: [], read: () => ({}) };
  const who = el("input", { id: "ask-by", value: by, required: true, maxlength: 256, spellcheck: "false" });
  const first = () => {
    show(offer.label, "Continue", el("p", { class: "quiet" }, offer.hint), ...form.body,
      el("label", { for: "ask-by" }, "Decided by, for the record’s history", who));
    step = async () => {
      const { result, ...read } = form.read();
      const action = { do: offer.do, pk: story.pk, seen: story.seen, by: who.value, ...read };
      const { said } = await post("/api/ask", action, result);
      show(`${offer.label}?`, offer.label, el("p", { class: "sure" }, said));
      $("ask-yes").focus();
      step = async () => {
        const re = await post("/api/act", action, result);
        dialog.close();
        done(re.said);
      };
    };
  };
  first();
  dialog.showModal();
  (dialog.querySelector("#ask-body input, #ask-body textarea, #ask-body select") ?? $("ask-yes")).focus();
}

// field makes the form for a value of a shape: "" is a text, 0 a whole number, 0.5 a
// number, false yes or no, null anything, [x] a list, {"*": x} names with values, and
// any other object fields. The form's read returns the value as JSON text, as typed.
function field(name, shape, optional) {
  const label = (input) => el("label", {}, name + (optional ? ", if there is one" : ""), input);
  if (shape && typeof shape === "object" && !Array.isArray(shape) && !("*" in shape)) {
    const parts = Object.entries(shape).map(([marked, of]) => {
      const key = marked.replace(/\?$/, "");
      return [key, field(key, of, key !== marked)];
    });
    return {
      body: name ? el("fieldset", { class: "in" }, el("legend", {}, name), ...parts.map(([, p]) => p.body)) : el("div", {}, ...parts.map(([, p]) => p.body)),
      read() {
        const all = [];
        for (const [key, part] of parts) {
          const v = part.read();
          if (v !== undefined) all.push(`${JSON.stringify(key)}:${v}`);
        }
        return optional && all.length === 0 ? undefined : `{${all.join()}}`;
      },
    };
  }
  if (typeof shape === "boolean") {
    const input = el("select", {}, el("option", { value: "" }, "choose"), el("option", { value: "true" }, "true"), el("option", { value: "false" }, "false"));
    return { body: label(input), read: () => need(name, optional, input.value) && input.value };
  }
  if (typeof shape === "number") {
    const input = el("input", { inputmode: "decimal", spellcheck: "false" });
    return {
      body: label(input),
      read() {
        if (need(name, optional, input.value) === undefined) return undefined;
        const typed = input.value.trim();
        if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(typed)) throw new Error(`${name || "The result"} is a number.`);
        return typed;
      },
    };
  }
  if (typeof shape === "string") {
    const input = el("input", { spellcheck: "false" });
    return { body: label(input), read: () => need(name, optional, input.value) && JSON.stringify(input.value) };
  }
  const input = el("textarea", { spellcheck: "false", placeholder: "JSON" });
  return {
    body: label(input),
    read() {
      if (need(name, optional, input.value) === undefined) return undefined;
      try {
        JSON.parse(input.value);
        return input.value;
      } catch {
        throw new Error(`${name || "The result"} is not JSON. A text needs quotes.`);
      }
    },
  };
}

// need reports whether a value was typed. It refuses an empty value, and
// returns undefined if the value is optional.
function need(name, optional, value) {
  if (value.trim()) return true;
  if (optional) return undefined;
  throw new Error(`${name || "The result"} is missing.`);
}

// resultOf makes the form for a call's result.
function resultOf(offer) {
  let shape = null;
  try {
    shape = JSON.parse(offer.shape || "null");
  } catch {
    // an unreadable shape counts as no shape
  }
  const form = field("Its result" + (shape === null ? ", as JSON" : ""), shape);
  return { body: el("div", { class: "result" }, form.body), read: form.read };
}

// openSeveral leads a person through one action on several records. It
// names and skips records that are gone or have changed meanwhile.
export function openSeveral(rows, verb, by, done) {
  const what = { redrive: "Hand out parked jobs", retry: "Let them be tried again" }[verb];
  const title = `${what}: ${rows.length === 1 ? "1 request" : `${rows.length} requests`}`;
  const who = el("input", { id: "ask-by", value: by, required: true, maxlength: 256, spellcheck: "false" });
  const lines = (all) => el("ul", { class: "sure" }, ...all.map((t) => el("li", {}, t)));
  show(title, "Continue", lines(rows.map((r) => `${r.name}  ${r.route ?? ""}`)),
    el("label", { for: "ask-by" }, "Decided by, for the records’ history", who));
  step = async () => {
    const actions = [];
    const said = [];
    for (const row of rows) {
      try {
        const story = await get(`/api/record?pk=${encodeURIComponent(row.pk)}`);
        const action = { do: verb, pk: story.pk, seen: story.seen, by: who.value, many: true };
        said.push(`${row.name}: ${(await post("/api/ask", action)).said}`);
        actions.push([row, action]);
      } catch (e) {
        said.push(`${row.name} is left out: ${e.message}`);
      }
    }
    if (actions.length === 0) throw new Error(said.join(" "));
    show(`${what}?`, what, lines(said));
    $("ask-yes").focus();
    step = async () => {
      let did = 0;
      const left = [];
      for (const [row, action] of actions) {
        try {
          await post("/api/act", action);
          did++;
        } catch (e) {
          left.push(`${row.name}: ${e.message}`);
        }
      }
      dialog.close();
      done([`${did} of ${rows.length} done.`, ...left].join(" "));
    };
  };
  dialog.showModal();
  $("ask-yes").focus();
}

const forms = {
  retry(offer) {
    if (!offer.call) return undefined;
    const result = resultOf(offer);
    if (offer.given) return { body: [el("p", {}, `The call ${offer.call} came to this:`), result.body], read: () => ({ result: result.read() }) };
    const choice = (value, text) => el("label", { class: "choice" }, el("input", { type: "radio", name: "outcome", value, required: true }), text);
    const made = offer.result ? [choice("result", "It was made. It came to this:"), result.body] : [];
    const again = offer.result ? [] : [choice("again", "The cause is removed: go on, and repeat it under its own key.")];
    const ask = offer.asks ? [choice("ask", "Let the program ask the provider again, as a completer takes the operation up.")] : [];
    return {
      body: [el("fieldset", {}, el("legend", {}, `What became of the call ${offer.call}?`), ...made,
        choice("not_made", "It was not made, or had no effect: make the call once more."),
        choice("risk_twice", "Nobody knows: make it again, though its effect may then happen twice."), ...again, ...ask)],
      read() {
        const chosen = dialog.querySelector("[name=outcome]:checked")?.value;
        if (chosen === "not_made") return { not_made: true };
        if (chosen === "risk_twice") return { risk_twice: true };
        if (chosen === "again") return {};
        if (chosen === "ask") return { ask: true };
        return { result: result.read() };
      },
    };
  },
  forget(offer) {
    const words = { attempt: "its attempt, which may be at work", work: "its work: a request with the key does it again", jobs: "its jobs that are not delivered" };
    const boxes = (offer.loses ?? []).map((what) => el("input", { type: "checkbox", value: what, required: true }));
    return {
      body: boxes.length ? [el("fieldset", {}, el("legend", {}, "What is given up"), ...boxes.map((b) => el("label", { class: "choice" }, b, words[b.value])))] : [],
      read: () => ({ loses: boxes.filter((b) => b.checked).map((b) => b.value) }),
    };
  },
  settle() {
    const status = el("input", { id: "ask-status", type: "number", min: 200, max: 599, required: true });
    const type = el("input", { id: "ask-type", value: "application/json", spellcheck: "false" });
    const body = el("textarea", { id: "ask-answer", spellcheck: "false" });
    return {
      body: [el("label", { for: "ask-status" }, "Status of the answer", status), el("label", { for: "ask-type" }, "Content-Type", type),
        el("label", { for: "ask-answer" }, "Body of the answer", body)],
      read: () => ({ status: Number(status.value), body: body.value, content_type: type.value }),
    };
  },
  redrive: (offer) => ofJobs(offer, "Jobs to hand out again"),
  cancel: (offer) => ofJobs(offer, "Jobs to cancel"),
};

function ofJobs(offer, title) {
  const boxes = (offer.jobs ?? []).map((job) => el("input", { type: "checkbox", value: job, checked: true }));
  return {
    body: [el("fieldset", {}, el("legend", {}, title), ...boxes.map((b) => el("label", { class: "choice" }, b, b.value)))],
    read() {
      const jobs = boxes.filter((b) => b.checked).map((b) => b.value);
      if (jobs.length === 0) throw new Error("Choose a job.");
      return { jobs };
    },
  };
}
