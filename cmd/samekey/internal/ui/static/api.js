// Calls to the server. Only pages of this origin, host and port, can read the session's token.

const kept = "samekey-token";
let token = localStorage.getItem(kept) ?? "";

export class Failure extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function send(method, path, body, signal, result) {
  const headers = { "X-Samekey-Token": token };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let text = body === undefined ? undefined : JSON.stringify(body);
  if (result !== undefined) text = `${text.slice(0, -1)},"result":${result}}`; // as it was typed: a Number would round it
  let re;
  try {
    re = await fetch(path, { method, headers, signal, body: text });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Failure(0, "The server has ended. Start samekey again, and open its link.");
  }
  if (re.ok) return re;
  const said = await re.json().catch(() => ({}));
  throw new Failure(re.status, said.error ?? `status ${re.status}`);
}

export const get = async (path, signal) => (await send("GET", path, undefined, signal)).json();
export const post = async (path, body, result) => (await send("POST", path, body, undefined, result)).json();

// enter exchanges the token in the link's fragment for a session, and
// removes the fragment from the address and the history.
export async function enter() {
  const m = /^#token=(\w+)$/.exec(location.hash);
  if (!m) return;
  history.replaceState(null, "", location.pathname);
  token = (await post("/api/session", { token: m[1] })).token;
  localStorage.setItem(kept, token);
}

// listen calls heard with each event while the page is open. It reads
// the stream itself, since EventSource can't send the token.
export async function listen(heard, lost) {
  for (let pause = 500; ; pause = Math.min(2 * pause, 10_000)) {
    try {
      const re = await send("GET", "/api/events");
      const reader = re.body.pipeThrough(new TextDecoderStream()).getReader();
      lost(null);
      for (let rest = ""; ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        pause = 500;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const e of events) {
          const data = e.split("\n").find((line) => line.startsWith("data: "));
          if (data) heard(JSON.parse(data.slice(6)));
        }
      }
      lost(new Failure(0, "The server has ended. Start samekey again, and open its link."));
    } catch (e) {
      lost(e instanceof Failure ? e : new Failure(0, "The server has ended. Start samekey again, and open its link."));
      if (e.status === 401) return;
    }
    await new Promise((r) => setTimeout(r, pause));
  }
}
