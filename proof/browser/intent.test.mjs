// The button of docs/start/recipes.md, against an engine: doubled, reloaded, with lost
// answers, it pays once for each intent.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { launch, patience, program, root, says, visit } from "./stage.mjs";

let shop, browser, url;
before(async () => {
  shop = await program(join(root, ".bin/browser-shop"), []);
  url = JSON.parse(shop.line).url;
  browser = await launch();
}, { timeout: 5 * patience });
after(async () => {
  await browser?.end();
  await shop?.end();
});
beforeEach(() => set({ Paid: 0, Requests: 0, Keys: [], Lose: 0, Slow: 0, Unstored: false, Refuse: 0, Dated: false, Login: 0 }));

// set changes the network, and returns what the server has seen.
async function set(change = {}) {
  const re = await fetch(url + "set", { method: "POST", body: JSON.stringify(change) });
  return re.json();
}

async function open(to = "/pay") {
  const page = await visit(browser, `${url}?to=${to}`);
  await page.waitForSelector("body[data-ready]");
  return page;
}

async function came(what, wanted) {
  const s = await set();
  assert.deepEqual([s.Paid, s.Requests, s.Keys.length], wanted, what);
  return s;
}

const kept = (page) => page.evaluate(() => Object.keys(sessionStorage).length);

test("a double click pays once, and the next intent pays again", async () => {
  await set({ Slow: 300 });
  const page = await open();
  await page.evaluate(() => { for (let i = 0; i < 3; i++) document.querySelector("button").click(); });
  await says(page, "#said", "201 payment 1");
  const first = await came("three clicks", [1, 1, 1]);
  assert.match(first.Keys[0], /^[0-9a-f-]{36}$/);
  assert.equal(await kept(page), 0, "the answer has not ended the key");
  await page.click("button");
  await says(page, "#said", "201 payment 2");
  await came("another intent", [2, 2, 2]);
});

test("lost answers pay once", async () => {
  await set({ Lose: 2 });
  const page = await open();
  await page.click("button");
  await says(page, "#said", "201 payment 1");
  await came("two lost answers", [1, 3, 1]);
  assert.equal(await kept(page), 0);
});

test("a reload goes on with its key", async () => {
  await set({ Slow: 3000 });
  const page = await open();
  await page.click("button");
  while ((await set()).Paid === 0) await new Promise((r) => setTimeout(r, 20));
  await page.reload();
  await says(page, "#said", "201 payment 1");
  const s = await set();
  assert.deepEqual([s.Paid, s.Keys.length], [1, 1], "reloaded while the payment ran");
  assert.ok(s.Requests > 1, "the reload has asked for nothing");

  // And while every answer is lost: with an answer before the reload there would be nothing to go on with.
  await set({ Paid: 0, Requests: 0, Keys: [], Slow: 0, Lose: 1000 });
  await page.click("button");
  while ((await set()).Requests === 0) await new Promise((r) => setTimeout(r, 20));
  await page.reload();
  await set({ Lose: 0 });
  await says(page, "#said", "201 payment 1");
  const again = await set();
  assert.deepEqual([again.Paid, again.Keys.length], [1, 1], "reloaded after a lost answer");
});

test("a login between two tries pays once", async () => {
  await set({ Lose: 1, Login: 1 });
  const page = await open();
  await page.click("button");
  await says(page, "#said", "401");
  await page.click("button");
  await says(page, "#said", "201 payment 1");
  await came("logged in", [1, 3, 1]);
});

test("Retry-After is obeyed", async () => {
  for (const Dated of [false, true]) {
    await set({ Paid: 0, Requests: 0, Keys: [], Refuse: 1, Dated });
    const page = await open();
    const began = Date.now();
    await page.click("button");
    const lasts = () => page.evaluate(() => (JSON.parse(sessionStorage.getItem("intent:pay:order-7")).until - Date.now()) / 3600e3);
    if (Dated) while (await lasts() > 3) await new Promise((r) => setTimeout(r, 20));
    if (Dated) assert.ok(await lasts() > 2.9, "the key lasts three hours by the server's clock");
    await says(page, "#said", "201 payment 1");
    const waited = Date.now() - began;
    assert.ok(waited >= 1900 && waited < 60_000, `the server has asked for two seconds, the page has waited ${waited} ms`);
    await came("refused once", [1, 2, 1]);
  }
});

test("what another try would run again is not tried again", async () => {
  for (const [to, change, paid] of [["/pay", { Unstored: true }, 0], ["/unkeyed", {}, 1]]) {
    await set({ Paid: 0, Requests: 0, Keys: [], ...change });
    const page = await open(to);
    await page.click("button");
    await page.waitForFunction(() => /^50[02]/.test(document.querySelector("#said").textContent));
    await new Promise((r) => setTimeout(r, 1500)); // longer than the first wait
    await came(to, [paid, 1, 1]);
    assert.equal(await kept(page), 0);
  }
});

test("a key that the server may have forgotten is not sent", async () => {
  const page = await open();
  await page.evaluate(() => sessionStorage.setItem("intent:pay:order-7", JSON.stringify({ key: "0123456789012345678901", url: "/pay", body: "{}", until: Date.now() - 1 })));
  await page.reload();
  await says(page, "#said", "not known whether");
  await came("after the key's lifetime", [0, 0, 0]);
});
