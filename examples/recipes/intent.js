// send carries out an intent once: a double click, a lost answer and a reload repeat it under its key, which
// its answer ends. Name an intent by its work, "pay:order-7". An error says that the outcome isn't known.
const open = new Map(); // in this page

export function send(intent, url, body) {
  if (!open.has(intent)) open.set(intent, attempts("intent:" + intent, url, body).finally(() => open.delete(intent)));
  return open.get(intent);
}

// resume continues what a reload has interrupted. Call it as the page starts.
export const resume = () => Object.keys(sessionStorage).filter((name) => name.startsWith("intent:")).map((name) => send(name.slice(7)));

async function attempts(name, url, body) {
  const kept = JSON.parse(sessionStorage.getItem(name)) ??
    { key: crypto.randomUUID(), url, body: JSON.stringify(body), until: Date.now() + 24 * 3600e3 };
  for (let n = 0; n < 6; n++) {
    const now = Date.now();
    if (now >= kept.until) break; // the server may have forgotten the key: another try could be a second payment
    sessionStorage.setItem(name, JSON.stringify(kept)); // before it is sent
    const answer = await once(kept).catch(() => null); // null: lost, or torn
    const header = (h) => answer?.headers.get(h);
    const last = ["unstored", "ignored"].includes(header("Idempotency-Status")); // another try would run again
    const again = !answer || [409, 429].includes(answer.status) || answer.status >= 500;
    if (last || !again || header("Idempotent-Replayed") === "true") {
      const login = [401, 403, 407].includes(answer.status); // tells nothing of the try before it: the key stays
      if (!login) sessionStorage.removeItem(name);
      return answer;
    }
    const left = (h) => Date.parse(header(h)) - (Date.parse(header("Date")) || now); // by the server's clock
    kept.until = now + left("Idempotency-Expires") - 2000 || kept.until; // a date has whole seconds, and a request takes time
    sessionStorage.setItem(name, JSON.stringify(kept));
    const asked = 1000 * header("Retry-After") || left("Retry-After") || 0; // seconds, or a date
    if (asked > 60e3) break;
    await new Promise((wait) => setTimeout(wait, Math.max(asked, 500 * 2 ** n)));
  }
  throw new Error("not known whether " + name + " was done");
}

async function once({ key, url, body }) {
  const answer = await fetch(url, { method: "POST", body, headers: { "Content-Type": "application/json", "Idempotency-Key": key } });
  return { status: answer.status, headers: answer.headers, body: await answer.text() };
}
