// Actions: a form, then the server's own words about what will happen, then the act.
import { $, el } from "./dom.js";
import { post } from "./api.js";

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

// open leads through an action; it calls done with the server's sentence.
export function open(story, offer, by, done) {
  const form = forms[offer.do]?.(offer) ?? { body: [], read: () => ({}) };
  const who = el("input", { id: "ask-by", value: by, required: true, maxlength: 256, spellcheck: "false" });
  const first = () => {
    show(offer.label, "Continue", el("p", { class: "quiet" }, offer.hint), ...form.body,
      el("label", { for: "ask-by" }, "Decided by, for the record’s history", who));
    step = async () => {
      const action = { do: offer.do, pk: story.pk, seen: story.seen, by: who.value, ...form.read() };
      const { said } = await post("/api/ask", action);
      show(`${offer.label}?`, offer.label, el("p", { class: "sure" }, said));
      $("ask-yes").focus();
      step = async () => {
        const re = await post("/api/act", action);
        dialog.close();
        done(re.said);
      };
    };
  };
  first();
  dialog.showModal();
  (dialog.querySelector("#ask-body input, #ask-body textarea") ?? $("ask-yes")).focus();
}

const forms = {
  retry(offer) {
    if (!offer.call) return undefined;
    const result = el("textarea", { id: "ask-result", spellcheck: "false", "aria-label": "Result as JSON", placeholder: '"ch_123"' });
    const choice = (value, text) => el("label", { class: "choice" }, el("input", { type: "radio", name: "outcome", value, required: true }), text);
    const came = choice("result", "It was made, and came to this result (JSON):");
    return {
      body: [el("fieldset", {}, el("legend", {}, `What became of the call ${offer.call}?`),
        choice("not_made", "It was not made, or had no effect."), came, result,
        choice("risk_twice", "Nobody knows. Make it again: its effect may then happen twice."))],
      read() {
        const chosen = dialog.querySelector("[name=outcome]:checked")?.value;
        if (chosen === "not_made") return { not_made: true };
        if (chosen === "risk_twice") return { risk_twice: true };
        try {
          return { result: JSON.parse(result.value) };
        } catch {
          throw new Error("The result is not JSON. A text needs quotes.");
        }
      },
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
  redrive(offer) {
    const boxes = (offer.jobs ?? []).map((job) => el("input", { type: "checkbox", value: job, checked: true }));
    return {
      body: [el("fieldset", {}, el("legend", {}, "Jobs to hand out again"), ...boxes.map((b) => el("label", { class: "choice" }, b, b.value)))],
      read() {
        const jobs = boxes.filter((b) => b.checked).map((b) => b.value);
        if (jobs.length === 0) throw new Error("Choose a job.");
        return { jobs };
      },
    };
  },
};
