// The page, on records that the engine has written.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmdirSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { client, launch, loaded, open, patience, says, serve, text, visit } from "./stage.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let stage, browser, requests;
before(async () => {
  stage = await open(); // in turn: what began is ended, also after a failure
  browser = await launch();
  requests = await serve(stage, "requests");
}, { timeout: 5 * patience });
after(async () => {
  await browser?.end();
  await requests?.end();
  await stage?.end();
});

// sound checks what holds for every visit.
function sound(page) {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.foreign, [], "requests to other places");
  return page.browserContext().close();
}

async function accessible(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target + " " + n.failureSummary).join("; ")}`), [], where);
}

// reachable checks that a finger can hit what can be pressed: 44 pixels. A control within a
// label is as large as that.
async function reachable(page, where) {
  const small = await page.$$eval("button, select, input, textarea, summary, a:not(.skip)", (all) => all.map((e) => [e.closest("label") ?? e, e])
    .filter(([box]) => box.getClientRects().length > 0 && (!document.querySelector("dialog[open]") || box.closest("dialog")))
    .map(([box, e]) => [`${e.tagName} ${e.id || e.textContent.slice(0, 20)}`, box.getBoundingClientRect().height, (e.closest("td") ?? box).getBoundingClientRect().height])
    .filter(([, high, cell]) => Math.max(high, cell) < 43.5));
  assert.deepEqual(small, [], where);
}

// busy is the page's time on its thread in milliseconds, by the thread's own clock, without
// layout and styles: an upper bound of its script time. (ScriptDuration leaves out what runs
// after an await.)
async function busy(page) {
  const { metrics } = await page.cdp.send("Performance.getMetrics");
  const of = (name) => metrics.find((m) => m.name === name).value * 1000;
  return Math.round(of("TaskDuration") - of("LayoutDuration") - of("RecalcStyleDuration"));
}

test("10,000 requests take less than a second of script time", async () => {
  const page = await visit(browser, requests.url);
  await loaded(page, 100);
  await says(page, "#kinds", "All 10,000");
  const first = await busy(page);
  assert.equal(new URL(page.url()).hash, "", "the token is still in the address");
  // Ten thousand rows at once, on one page.
  await page.select("#size", "10000");
  await loaded(page, 10_000);
  const all = (await busy(page)) - first;
  console.log(`# at most ${first} ms of script show a table of 10,000 requests by pages of 100; at most ${all} ms more show all rows on one page`);
  // The second figure has the painting of 10,000 rows in it, too.
  assert.ok(first < 1000 && all < 5000, `${first} ms and ${all} ms of script`);
  await sound(page);
});

test("filters by state, cause, route and time, and pages", async () => {
  const page = await visit(browser, requests.url);
  await loaded(page, 100);
  await page.click("#kinds [data-kind=waiting]");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 3);
  await page.select("#reason", "unreadable");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 1);
  await says(page, "#rows", "layout version 9 is not known");
  await page.click("#rows a");
  await says(page, "#story", "can't read the record");
  assert.equal(await page.$("#story .buttons[aria-label=Actions]"), null, "an unreadable record offers actions");
  await page.keyboard.press("Escape");
  await page.select("#reason", "");
  await page.click("#kinds [data-kind='']");
  await page.select("#route", "POST /refunds");
  await page.waitForFunction(() => [...document.querySelectorAll("#rows a")].every((a) => a.textContent === "POST /refunds"));
  await says(page, "#page", "Page 1 of 20, ");
  await page.click("#later");
  await says(page, "#page", "Page 2 of 20, ");
  await page.select("#time", "300");
  await says(page, "#page", "Page 1 of ");
  await page.select("#order", "oldest");
  await page.waitForFunction(() => {
    const times = [...document.querySelectorAll("#rows time")].map((t) => t.dateTime);
    return times.length > 10 && times.every((t, i) => i === 0 || times[i - 1] <= t);
  });
  await sound(page);
});

test("a stuck request is settled from the page, and the client's retry gets that answer", async () => {
  const page = await visit(browser, requests.url);
  await loaded(page, 100);
  await page.click("#kinds [data-kind=waiting]");
  await page.select("#reason", "unknown");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 1);
  await page.click("#rows a");
  await says(page, "#story", "charge_created");
  await says(page, "#story", "the provider's answer was lost");
  assert.ok(!(await page.content()).includes("4242"), "the request is shown unasked");
  await page.click("#personal");
  await says(page, "#private", "ride_7");

  // Two operators at once: the other one's page is open on the same record.
  const other = await visit(browser, requests.url);
  await loaded(other, 100);
  await other.evaluate((hash) => { location.hash = hash; }, new URL(page.url()).hash);
  await says(other, "#story", "charge_created");
  await other.click("#story [data-do=retry]");

  await page.click("#story [data-do=settle]");
  await page.type("#ask-status", "201");
  await page.type("#ask-answer", '{"ride":"by hand"}');
  await page.click("#ask-yes");
  await says(page, "#ask-body .sure", "the client gets 201 from now on, with this body of 18 bytes");
  const before = await client(stage, { table: "requests", key: stage.key, lost: true });
  assert.ok(before.error, `answered before anybody agreed: ${JSON.stringify(before)}`);
  await page.click("#ask-yes");
  await says(page, "#status", "done: the client gets 201 from now on");
  await says(page, "#story", "Done: retries get 201");
  const after = await client(stage, { table: "requests", key: stage.key });
  assert.deepEqual([after.status, after.body, after.replayed], [201, '{"ride":"by hand"}', true]);

  // The other one's decision comes too late, and says so.
  await other.click("#ask [value=not_made]");
  await other.click("#ask-yes");
  await says(other, "#ask-error", "changed since it was shown");
  await other.keyboard.press("Escape");
  assert.equal((await client(stage, { table: "requests", key: stage.key })).body, '{"ride":"by hand"}');
  other.errors = other.errors.filter((e) => !e.includes("409")); // Chromium notes the refusal
  await sound(other);
  await sound(page);
});

test("keys alone: find, open, act, close", async () => {
  const page = await visit(browser, requests.url);
  await loaded(page, 100);
  const newest = await text(page, "#rows tr td:last-child");
  assert.ok((await client(stage, { table: "requests", key: "order-keys", lost: true })).error);
  await page.waitForFunction((n) => {
    const row = document.querySelector("#rows tr");
    return row.lastChild.textContent !== n && row.firstChild.textContent === "stuck";
  }, {}, newest);
  const focused = () => page.evaluate(() => document.activeElement.closest("tr")?.dataset.pk ?? document.activeElement.id);
  const name = await text(page, "#rows tr td:last-child");
  await page.keyboard.press("/");
  assert.equal(await focused(), "search-text");
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  await says(page, "#story", "charge_created");
  const pk = decodeURIComponent(new URL(page.url()).hash.slice("#/record/".length));
  await page.waitForFunction(() => document.activeElement.id === "record-head");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("#record").hidden);
  assert.equal(await focused(), pk, "the focus is not back on the row");
  await page.keyboard.press("j");
  assert.notEqual(await focused(), pk);
  await page.keyboard.press("k");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  assert.equal(await focused(), pk);
  await page.keyboard.press("Enter");
  await says(page, "#story", "charge_created");
  await page.waitForFunction(() => document.activeElement.id === "record-head");
  const tab = async (until) => {
    for (let i = 0; i < 30; i++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const e = document.activeElement;
        const style = getComputedStyle(e);
        return { id: e.id || e.dataset.do || e.value, seen: style.outlineStyle !== "none" && e.getClientRects().length > 0 };
      });
      assert.ok(at.seen, `the focus on ${at.id} can't be seen`);
      if (at.id === until) return;
    }
    assert.fail(`Tab does not come to ${until}`);
  };
  await tab("retry");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#ask[open]");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("#ask").open);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.do), "retry", "the focus is not back on the button");
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowDown"); // the second choice: it was not made
  await page.keyboard.press("Enter");
  await says(page, "#ask-body", "had no effect. The call is made once more.");
  await page.keyboard.press("Enter");
  await says(page, "#status", "open: only the client's next retry with the same key continues the operation");
  const now = await client(stage, { table: "requests", key: "order-keys" });
  assert.equal(now.status, 201, JSON.stringify(now));
  await sound(page);
});

test("it opens on what waits for people, and a phone shows it at once", async () => {
  const page = await visit(browser, requests.url, { width: 360 });
  await loaded(page, 2, null);
  await page.waitForFunction(() => document.querySelector("#kinds [data-kind=waiting]").getAttribute("aria-pressed") === "true");
  const rows = await page.$$eval("#rows tr", (all) => all.map((tr) => tr.getBoundingClientRect().top));
  assert.ok(rows.length >= 2 && rows[0] < 400, `the first row begins at ${rows[0]} px`);
  const clipped = () => page.$$eval("#rows .state", (all) => all.filter((s) => s.scrollWidth > s.clientWidth || s.getBoundingClientRect().right > s.closest("td").getBoundingClientRect().right + 0.5).map((s) => s.textContent));
  assert.deepEqual(await clipped(), [], "states are clipped");
  await page.click("#kinds [data-kind='']");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 100);
  assert.deepEqual(await clipped(), [], "states are clipped");
  await sound(page);
  // A wide page has columns that say something of what it shows.
  const wide = await visit(browser, requests.url);
  await loaded(wide, 2, null);
  await says(wide, "#third", "At");
  await wide.click("#kinds [data-kind=done]");
  await says(wide, "#third", "Caller");
  await says(wide, "#rows", "jwt:jane@example.com");
  await says(wide, "#chart-what", "requests by time, at most");
  await wide.keyboard.press("?");
  await says(wide, "#keys", "down and up in the list");
  await accessible(wide, "the help");
  await wide.keyboard.press("Escape");
  assert.equal(await wide.$eval("#keys", (d) => d.open), false);
  await sound(wide);
});

test("a charge whose outcome is unknown: both outcomes, a form, a correction", async (t) => {
  const ui = await serve(stage, "several");
  t.after(() => ui.end());
  const page = await visit(browser, ui.url);
  await loaded(page, 5, null);
  await page.select("#reason", "unknown");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 1);
  assert.equal(await page.$("#rows input"), null, "a doubt can be chosen with others");
  await page.click("#rows a");
  await says(page, "#story [data-do=retry]", "Decide…");
  assert.equal(await page.$("#story .buttons .main"), null, "a decision is urged");
  await says(page, "#story .next code", "--result");
  await page.click("#story [data-do=retry]");
  assert.deepEqual(await page.$$eval("#ask [name=outcome]", (all) => all.map((e) => [e.value, e.checked])), [["result", false], ["not_made", false], ["risk_twice", false]]);
  await accessible(page, "a decision");
  await page.click("#ask [value=result]");
  await page.click("#ask-yes");
  await says(page, "#ask-error", "id is missing");
  const fill = async (values) => {
    for (const [name, v] of Object.entries(values)) {
      const input = await page.evaluateHandle((n) => [...document.querySelectorAll("#ask .result label")].find((l) => l.firstChild.textContent === n).querySelector("input, select"), name);
      if (await input.evaluate((e) => e.tagName) === "SELECT") {
        await input.select(v);
      } else {
        await input.type(v);
      }
    }
  };
  await fill({ id: "ch_wrong", amount: "1200", paid: "true" });
  await page.click("#ask-yes");
  await says(page, "#ask-body .sure", '"id": "ch_wrong"');
  await says(page, "#ask-body .sure", "can be corrected until an attempt has used it");
  await page.click("#ask-yes");
  await says(page, "#story [data-do=retry]", "Correct the result…");
  await page.click("#story [data-do=retry]");
  await fill({ id: "ch_9", amount: "1200", paid: "true" });
  await page.click("#ask-yes");
  await page.waitForSelector("#ask-body .sure");
  await page.click("#ask-yes");
  await page.waitForFunction(() => !document.querySelector("#ask").open);
  const now = await client(stage, { table: "several", key: "unknown-1" });
  assert.equal(now.body, '{"ride":"ride_7","charge":"ch_9"}', JSON.stringify(now));
  await sound(page);
});

test("several at once: parked jobs, and tries without a doubt; a record that has gone loses nothing", async (t) => {
  const ui = await serve(stage, "several");
  t.after(() => ui.end());
  const page = await visit(browser, ui.url);
  await loaded(page, 4, null);
  const choose = async (word) => {
    await page.evaluate((w) => [...document.querySelectorAll("#rows tr")].filter((tr) => tr.textContent.includes(w)).forEach((tr) => tr.querySelector("input").click()), word);
    await says(page, "#several-what", "2 chosen");
  };
  await choose("job parked");
  await accessible(page, "chosen requests");
  // Another operator is faster at one of them.
  const other = await visit(browser, ui.url);
  await loaded(other, 4, null);
  await other.evaluate(() => [...document.querySelectorAll("#rows tr")].find((tr) => tr.textContent.includes("job parked")).querySelector("a").click());
  await other.waitForSelector("#story [data-do=redrive]");
  // A third one is in the list, below it.
  const third = await visit(browser, ui.url);
  await loaded(third, 4, null);
  const rows = await third.$$eval("#rows tr", (all) => all.length);
  await third.focus("#rows tr:last-child a");
  await page.click("#several [data-many=redrive]");
  await says(page, "#ask-head", "2 requests");
  await page.keyboard.press("Enter");
  await says(page, "#ask-body", "Jobs to redrive: 1");
  await other.click("#story [data-do=redrive]");
  await other.click("#ask-yes");
  await other.waitForSelector("#ask-body .sure");
  await other.click("#ask-yes");
  await says(other, "#status", "jobs redriven: 1;");
  await sound(other);
  await third.waitForFunction((n) => document.querySelectorAll("#rows tr").length === n - 1, {}, rows);
  assert.ok(await third.evaluate(() => document.querySelector("#rows tr:last-child").contains(document.activeElement)), "a row that goes takes the focus from another");
  await sound(third);
  await page.keyboard.press("Enter");
  await says(page, "#status", "1 of 2 done.");
  await says(page, "#status", "nothing to redrive: the record has no parked job, or none of the named jobs is parked");
  page.errors = page.errors.filter((e) => !e.includes("422")); // Chromium notes the refusal
  await page.waitForFunction(() => !document.querySelector("#rows").textContent.includes("job parked"));
  await choose("stuck");
  await page.click("#several [data-many=retry]");
  await page.keyboard.press("Enter");
  await says(page, "#ask-body", "The operation becomes open");
  await page.keyboard.press("Enter");
  await says(page, "#status", "2 of 2 done.");
  await sound(page);
});

test("release and forget, with their warnings", async (t) => {
  const ui = await serve(stage, "several");
  t.after(() => ui.end());
  const page = await visit(browser, ui.url);
  await loaded(page, 5);
  await page.evaluate(() => [...document.querySelectorAll("#rows tr")].find((tr) => tr.textContent.includes("POST /tips")).querySelector("a").click());
  await page.waitForSelector("#story [data-do=forget]");
  await page.click("#story [data-do=forget]");
  await says(page, "#ask-body", "Dangerous");
  await page.click("#ask-yes");
  assert.equal(await page.$(".sure"), null, "forgotten without a yes to the loss");
  for (const box of await page.$$("#ask [type=checkbox]")) await box.click();
  await page.click("#ask-yes");
  await says(page, "#ask-body .sure", "This can't be undone.");
  await page.click("#ask-yes");
  await says(page, "#status", "forgotten: operation");
  await page.keyboard.press("Escape");
  await page.evaluate(() => [...document.querySelectorAll("#rows tr")].find((tr) => tr.textContent.includes("POST /slow")).querySelector("a").click());
  await page.waitForSelector("#story [data-do=release]");
  await page.click("#story [data-do=release]");
  await page.click("#ask-yes");
  await says(page, "#ask-body .sure", "Do this only if the attempt is dead.");
  await page.click("#ask-yes");
  await says(page, "#status", "released");
  await sound(page);
});

test("search by a customer's key: with its caller, by the bare subject, or alone", async () => {
  const page = await visit(browser, requests.url);
  await loaded(page, 100);
  const asked = [];
  page.on("request", (r) => asked.push(r.url()));
  await page.select("#search-by", "key");
  await page.type("#search-text", stage.key);
  for (const [scope, namespace] of [[stage.scope, "rides"], ["jane@example.com", "rides"]]) {
    await page.evaluate((s, n) => { document.querySelector("#search-scope").value = s; document.querySelector("#search-namespace").value = n; }, scope, namespace);
    await page.focus("#search-text");
    await page.keyboard.press("Enter");
    await says(page, "#record-head", "POST /rides");
    await says(page, "#story", "jwt:jane@example.com");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("#record").hidden);
  }
  // By the key alone it is not among what waits, once it is settled: the scan has its price.
  await page.evaluate(() => { document.querySelector("#search-scope").value = document.querySelector("#search-namespace").value = ""; });
  await page.focus("#search-text");
  await page.keyboard.press("Enter");
  await says(page, "#search-scan", "read units");
  await page.click("#search-scan");
  await says(page, "#record-head", "POST /rides");
  await says(page, "#story", "jwt:jane@example.com");
  assert.ok(!asked.some((u) => u.includes(stage.key)) && !page.url().includes(stage.key), "the key is in an address");
  await sound(page);
});

test("hostile texts stay texts", async (t) => {
  const ui = await serve(stage, "hostile");
  t.after(() => ui.end());
  const page = await visit(browser, ui.url);
  await loaded(page, 2);
  await page.click("#rows a");
  await says(page, "#story", "onerror");
  await page.click("#personal");
  await page.waitForFunction(() => !document.querySelector("#personal"));
  await page.click("#story [data-do=retry]");
  await page.click("#ask [value=not_made]");
  await page.click("#ask-yes");
  await says(page, "#ask-body .sure", "<img src=x onerror");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.$$eval("main img, main script, dialog img, dialog script", (all) => all.length), 0);
  await sound(page);
});

// opened shows a request of the table of awkward texts.
async function opened(t, route, how = {}) {
  const ui = how.ui ?? await serve(stage, "awkward");
  t.after(() => ui.end());
  const page = Object.assign(await visit(browser, ui.url, how), { ui });
  await loaded(page, 2);
  await page.evaluate((r) => [...document.querySelectorAll("#rows a")].find((a) => a.textContent === r).click(), route);
  await says(page, "#record-head", route);
  return page;
}

const pasted = (page) => page.evaluate(() => navigator.clipboard.readText());

// words are those that a shell makes of a command.
function words(command) {
  const cwd = mkdtempSync(join(tmpdir(), "words-"));
  const all = execFileSync("bash", ["-c", `samekey() { printf '%s\\0' "$@"; }\n${command}`], { encoding: "utf8", cwd }).split("\0").slice(0, -1);
  rmdirSync(cwd); // fails if the shell has run a part of the text
  return all;
}

test("each button copies the text beside it, and a shell takes a command as it is meant", async (t) => {
  const page = await opened(t, "POST /quotes");
  const pk = `v1#rides#${stage.awkward}`;
  const buttons = await page.$$("#story .copy");
  const copied = new Map();
  for (const button of buttons) {
    const name = await button.evaluate((b) => b.getAttribute("aria-label"));
    const shown = await button.evaluate((b) => (b.previousSibling.innerText ?? b.previousSibling.textContent).replace("under the key ", ""));
    await button.click();
    await page.waitForFunction((b) => b.textContent === "Copied", {}, button);
    const got = await pasted(page);
    assert.equal(got, shown, name);
    copied.set(name, got);
  }
  assert.equal(copied.get("Copy record"), pk);
  assert.equal(copied.get("Copy scope"), `jwt:${stage.awkward}`);
  assert.match(copied.get("Copy operation"), /^\w{26}$/);
  assert.match([...copied].find(([name]) => name.startsWith("Copy the derived key of the bank"))[1], /^[0-9a-f-]{36}$/);
  const commands = [...copied].filter(([name]) => name.startsWith("Copy the command")).map(([, c]) => words(c));
  assert.deepEqual(commands, [
    ["settle", pk, "--result", '{"price in $":0}'], ["settle", pk, "--not-made"], ["settle", pk, "--risk-twice"],
    ["settle", pk, "--answer", "STATUS", "--body", "TEXT"],
  ]);
  await sound(page);
});

test("copying by keys: each time it is announced, and only the last text is said to be copied", async (t) => {
  const page = await opened(t, "POST /quotes");
  await page.evaluate(() => { // what a screen reader would say
    window.heard = [];
    new MutationObserver(() => { const s = document.querySelector("#status").textContent; if (s) window.heard.push(s); })
      .observe(document.querySelector("#status"), { childList: true, characterData: true, subtree: true });
  });
  const heard = (n) => page.waitForFunction((many) => window.heard.length >= many, {}, n).then(() => page.evaluate(() => window.heard));
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  while (!(await focused())?.startsWith("Copy the command")) await page.keyboard.press("Tab");
  const first = await page.evaluateHandle(() => document.activeElement);
  await page.keyboard.press("Enter");
  const [said] = await heard(1);
  assert.match(said, /^Copied: the command: if the call of phase "quoted" was made/);
  assert.equal(await first.evaluate((b) => b.textContent), "Copied");
  assert.match(await focused(), /^Copied the command/, "the name doesn't have the word that is shown");
  const empty = page.waitForFunction(() => document.querySelector("#status").textContent === "", { polling: "mutation" });
  await page.keyboard.press("Space"); // the same again: a live region that doesn't change is silent
  await empty;
  assert.deepEqual(await heard(2), [said, said]);
  await accessible(page, "a copied command");
  const was = await pasted(page);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await heard(3);
  assert.notEqual(await pasted(page), was);
  assert.equal(await first.evaluate((b) => b.textContent), "Copy", "two texts are said to be in the clipboard");
  await sound(page);

  const refused = await opened(t, "POST /quotes", { clipboard: false });
  await refused.click("#story .command .copy");
  await says(refused, "#status", "Not allowed: the command");
  await sound(refused);
});

test("a record that moves keeps the focus on its button", async (t) => {
  const page = await opened(t, "POST /quotes");
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await page.focus("#story .command .copy");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.textContent === "Copied");
  const button = await page.evaluateHandle(() => document.activeElement);
  // Another operator decides, and takes it back.
  const other = await opened(t, "POST /quotes", page);
  await other.click("#story [data-do=retry]");
  await other.click("#ask [value=not_made]");
  await other.click("#ask-yes");
  await other.waitForSelector("#ask-body .sure");
  await other.click("#ask-yes");
  await says(page, "#story", "released");
  assert.equal(await button.evaluate((b) => b.isConnected), false);
  assert.equal(await page.evaluate(() => document.activeElement.id), "record-head", `the focus is on ${await focused()}`);
  await sound(other);
  await sound(page);
});

test("how long ago: in each unit, by a clock that is behind, and while the page stays open", async (t) => {
  const page = await opened(t, "POST /slow");
  const began = await page.$eval("#rows tr:first-child time", (e) => Date.parse(e.dateTime));
  const claimed = `#story dd time[datetime="${new Date(began).toISOString()}"]`;
  const at = async (later, said, lease) => {
    await page.evaluate((now) => { window.still = now; }, began + later);
    await page.waitForFunction((w) => document.querySelector("#rows tr:first-child time").textContent === w, {}, said) // 23 s end with "3 s ago", too
      .catch(async (e) => { throw new Error(`the row says ${await text(page, "#rows tr:first-child time")}, not ${said}`, { cause: e }); });
    await page.waitForFunction((s, w) => document.querySelector(s).textContent.endsWith(`, ${w}`), {}, claimed, said)
      .catch(async (e) => { throw new Error(`the record says ${await text(page, claimed)}, not ${said}`, { cause: e }); });
    if (lease) await page.waitForFunction((w) => [...document.querySelectorAll("#story dt")].find((d) => d.textContent === "Lease ends").nextSibling.textContent.endsWith(w), {}, lease);
  };
  const [s, m, h, d] = [1e3, 60e3, 3600e3, 86400e3];
  await at(3 * s, "3 s ago");
  await at(50 * s, "50 s ago");
  await at(60 * s, "1 m ago");
  await at(59 * m, "59 m ago");
  await at(60 * m, "1 h ago");
  await at(2 * h, "2 h ago", "59 m ago"); // the lease has ended after an hour and a margin
  await at(23.5 * h, "23 h ago");
  await at(24 * h, "1 d ago");
  await at(400 * d, "400 d ago");
  await at(-20 * s, "now", "in 1 h"); // the record's clock is ahead of the page's: it has happened all the same
  await at(-2 * h + s, "1 h ahead of this clock");
  // An attempt at work goes on.
  await page.evaluate((b) => { window.ahead = window.still = 0; window.ahead = b + 3 * 3600e3 - Date.now(); }, began);
  await page.waitForFunction(() => document.querySelector("#story .spans .running .took").textContent.startsWith("3 h"));
  await page.waitForFunction(() => document.querySelector("#story .scale").textContent.includes(", over 3 h"));
  await sound(page);
});

test("phone width, dark, and without violations of axe's rules", async () => {
  const paper = async (page) => page.$eval("body", () => getComputedStyle(document.documentElement).backgroundColor);
  const seen = new Set();
  for (const dark of [false, true]) {
    for (const width of [360, 768, 1440]) {
      const where = `${dark ? "dark" : "light"}, ${width} px`;
      const page = await visit(browser, requests.url, { width, dark });
      await loaded(page, 100);
      seen.add(await paper(page));
      const fits = async (what) => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${where}: ${what} scrolls sideways`);
      await fits("the list");
      await reachable(page, `${where}: the list`);
      await accessible(page, `${where}: the list`);
      await page.evaluate(() => document.querySelector("#rows a").click());
      await says(page, "#story", "Timeline");
      await fits("a record");
      await reachable(page, `${where}: a record`);
      await page.evaluate(() => document.querySelector("#personal").click());
      await page.waitForFunction(() => !document.querySelector("#personal"));
      await fits("a request and its answer");
      await accessible(page, `${where}: a record`);
      await page.keyboard.press("Escape");
      await page.click("#kinds [data-kind=waiting]");
      await page.waitForFunction(() => document.querySelectorAll("#rows tr").length < 10);
      await page.evaluate(() => [...document.querySelectorAll("#rows tr")].find((tr) => tr.textContent.includes("parked")).querySelector("a").click());
      await page.waitForSelector("#story [data-do=redrive]");
      await page.click("#story [data-do=redrive]");
      await fits("a dialog");
      await reachable(page, `${where}: a dialog`);
      await accessible(page, `${where}: a dialog`);
      const box = await page.$eval("#ask", (d) => d.getBoundingClientRect().toJSON());
      assert.ok(box.left >= 0 && box.right <= width, `${where}: the dialog is cut`);
      await sound(page);
    }
  }
  assert.equal(seen.size, 2, "dark looks like light");
});

test("nothing moves for people who ask for that", async () => {
  const page = await visit(browser, requests.url, { calm: true });
  await loaded(page, 100);
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  await sound(page);
});

test("without the link there is nothing, and an ended server is said so", async (t) => {
  const ui = await serve(stage, "empty");
  t.after(() => ui.end());
  const stranger = await visit(browser, ui.base + "/");
  await says(stranger, "#trouble", "open the link that samekey printed");
  assert.equal(await text(stranger, "#about"), "");
  await stranger.goto(ui.base + "/#token=WRONG");
  await stranger.reload();
  await says(stranger, "#trouble", "wrong token");
  const page = await visit(browser, ui.url);
  await says(page, "#none", "no requests yet");
  await page.reload(); // the session lives on
  await says(page, "#none", "no requests yet");
  await ui.end();
  await says(page, "#trouble", "The server has ended");
});

test("no table", async () => {
  await assert.rejects(serve(stage, "missing"), /no table missing/);
});
