// The site of docs/, as make site has built it, in the browser: its links, its search and
// its pictures, without any other place.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { launch, patience, root, visit } from "./stage.mjs";

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png" };
const folder = join(root, "dist/site");
const version = process.env.VERSION || "main";

let server, browser, base;
before(async () => {
  server = createServer(async (request, response) => {
    try {
      const path = decodeURIComponent(new URL(request.url, "http://site").pathname).replace(/\/$/, "/index.html");
      const body = await readFile(join(folder, normalize(path)));
      response.writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  base = `http://127.0.0.1:${server.address().port}/`;
  browser = await launch();
}, { timeout: 5 * patience });
after(async () => {
  await browser?.end();
  server?.closeAllConnections();
  server?.close();
});

// sound checks that a visit met no error and no other place.
function sound(page) {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.foreign, [], "requests to other places");
  return page.browserContext().close();
}

test("every link of the site leads to a page, and to its heading", { timeout: 5 * patience }, async () => {
  const page = await visit(browser, base);
  const links = (url) => page.evaluate(async (url) => {
    const answer = await fetch(url);
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    const all = [...parsed.querySelectorAll("[href], [src]")].map((e) => new URL(e.getAttribute("href") ?? e.getAttribute("src"), url).href);
    return { status: answer.status, ids: [...parsed.querySelectorAll("[id]")].map((e) => e.id), all };
  }, url);
  const known = new Map(), wrong = [];
  const look = async (url) => {
    if (!known.has(url)) known.set(url, await links(url));
    return known.get(url);
  };
  const todo = [base + "index.html"], seen = new Set();
  let followed = 0;
  while (todo.length > 0) {
    const from = todo.pop();
    if (seen.has(from)) continue;
    seen.add(from);
    for (const link of (await look(from)).all) {
      const [url, fragment] = link.split("#");
      if (!url.startsWith(base)) continue;
      followed++;
      const { status, ids } = await look(url);
      if (status !== 200) wrong.push(`${from}: ${link} is ${status}`);
      else if (fragment && url.endsWith(".html") && !ids.includes(decodeURIComponent(fragment))) wrong.push(`${from}: ${link} has no such place`);
      else if (url.endsWith(".html")) todo.push(url);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(seen.size > 40 && followed > 1000, `${seen.size} pages and ${followed} links were seen`);
  await sound(page);
});

test("the search finds a page, and leads there", { timeout: patience }, async () => {
  const page = await visit(browser, `${base}${version}/index.html`);
  await page.type("input[name=q]", "derived key");
  await Promise.all([page.waitForNavigation({ timeout: patience }), page.keyboard.press("Enter")]);
  await page.waitForSelector("#search-results li a", { timeout: patience });
  const found = await page.$$eval("#search-results li a", (all) => all.map((a) => a.getAttribute("href")));
  assert.ok(found.some((href) => href.includes("start/phases.html")), found.join("\n"));
  // A click by the mouse may miss: results still come in, and the page moves.
  await Promise.all([page.waitForNavigation({ timeout: patience }), page.$eval("#search-results li a", (a) => a.click())]);
  assert.ok((await page.$eval("article", (e) => e.textContent)).toLowerCase().includes("derived key"));
  await sound(page);
});

test("a picture is drawn, and the rail has the four shelves", { timeout: patience }, async () => {
  const page = await visit(browser, `${base}${version}/start/phases.html`);
  await page.waitForSelector("pre.mermaid svg", { timeout: patience });
  const shelves = await page.$$eval(".sidebar-tree .caption-text", (all) => all.map((e) => e.textContent));
  assert.deepEqual(shelves, ["Start", "Use", "Operate", "Inside"]);
  await sound(page);
});
