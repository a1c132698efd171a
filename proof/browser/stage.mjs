// The stage of the browser tests: DynamoDB Local with records, samekey ui on a table, and
// a browser that may go nowhere else.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { join } from "node:path";

export const root = process.env.SAMEKEY_ROOT;
export const patience = 120_000; // for a loaded machine; nothing waits so long

// program starts a program, and returns its first line and a way to end it. Its input
// stays open until then.
export async function program(name, args, env = {}) {
  const child = spawn(name, args, { cwd: root, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (d) => { said = (said + d).slice(-20_000); });
  const line = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}: ${said}`)));
    child.once("error", reject);
  });
  return {
    line,
    said: () => said,
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, "exit");
        child.stdin.end();
        if (signal) child.kill(signal);
        await ended;
      }
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
}

// open sets the stage.
export async function open() {
  const p = await program(join(root, ".bin/ui-stage"), []);
  return { ...JSON.parse(p.line), end: p.end };
}

// serve starts samekey ui on a table of the stage.
export async function serve(stage, table, ...args) {
  const p = await program(join(root, ".bin/samekey"), ["ui", ...args], {
    IDEM_TABLE: table, IDEM_NAMESPACE: "rides", USER: "jane", AWS_ENDPOINT_URL_DYNAMODB: stage.endpoint, AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local", AWS_CONFIG_FILE: "/dev/null", AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
  });
  return { ...p, url: p.line, base: p.line.split("/#")[0], end: () => p.end("SIGTERM") };
}

// launch starts the browser: without a sandbox of its own, as in a container, and with
// shared memory in files.
export async function launch() {
  const browser = await puppeteer.launch({
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--font-render-hinting=none"],
    executablePath: await chromium.executablePath(), headless: "shell", protocolTimeout: patience,
  });
  const { pid } = browser.process();
  return Object.assign(browser, {
    async end() {
      await Promise.race([browser.close().catch(() => {}), new Promise((r) => setTimeout(r, 10_000).unref())]);
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it has ended
      }
    },
  });
}

// visit opens the page in a profile of its own, at its link. Requests to other places fail
// and are noted in foreign, errors of scripts in errors. The page's clock is ahead of this
// machine's by window.ahead, in milliseconds, or stands still at window.still. clipboard lets the page write the clipboard.
export async function visit(browser, url, { width = 1280, height = 800, dark = false, calm = true, clipboard = true } = {}) {
  const context = await browser.createBrowserContext();
  await context.overridePermissions(new URL(url).origin, clipboard ? ["clipboard-read", "clipboard-sanitized-write"] : ["clipboard-read"]);
  const page = await context.newPage();
  await page.evaluateOnNewDocument(() => {
    window.ahead = window.still = 0;
    const now = Date.now;
    Date.now = () => window.still || now() + window.ahead;
  });
  page.setDefaultTimeout(patience);
  page.cdp = await page.createCDPSession();
  await page.cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  page.errors = [];
  page.foreign = [];
  const origin = new URL(url).origin;
  await page.setRequestInterception(true);
  page.on("request", (r) => {
    if (r.url().startsWith(origin + "/") || r.url().startsWith("data:")) {
      r.continue();
    } else {
      page.foreign.push(r.url());
      r.abort();
    }
  });
  page.on("pageerror", (e) => page.errors.push(e.message));
  page.on("console", (m) => { if (m.type() === "error") page.errors.push(m.text()); });
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: dark ? "dark" : "light" },
    { name: "prefers-reduced-motion", value: calm ? "reduce" : "no-preference" },
  ]);
  await page.goto(url);
  return page;
}

// loaded waits until the table was read to its end, and shows requests of a kind, or all.
export async function loaded(page, rows = 1, kind = "") {
  await page.waitForSelector(`#kinds [data-kind="${kind ?? ""}"]`);
  if (kind !== null) await page.click(`#kinds [data-kind="${kind}"]`);
  await page.waitForFunction((n) => document.querySelectorAll("#rows tr").length >= n && /live|read/.test(document.querySelector("#live").textContent)
    && document.querySelector("#progress") === null, {}, rows);
}

export const text = (page, selector) => page.$eval(selector, (e) => e.textContent.trim());

export async function says(page, selector, what) {
  await page.waitForFunction((s, w) => document.querySelector(s)?.textContent.includes(w), {}, selector, what)
    .catch(async (e) => { throw new Error(`${selector} says ${await text(page, selector).catch(() => "nothing")}, not ${what}`, { cause: e }); });
}

export async function client(stage, ask) {
  const re = await fetch(stage.client, { method: "POST", body: JSON.stringify(ask) });
  return re.json();
}
