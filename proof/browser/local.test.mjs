// The page of samekey local: a ride shows live, from its first phase to its answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { launch, loaded, patience, program, says, visit } from "./stage.mjs";

test("a live ride's timeline", { timeout: 5 * patience }, async () => {
  const env = { LOCAL_API_PORT: "0", LOCAL_CONTROL_PORT: "0", LOCAL_WORLD_PORT: "0", LOCAL_STREAM_WINDOW: "0s", LOCAL_FUNCTION_TIMEOUT: "60s" };
  const stack = await program("make", ["--no-print-directory", "local"], env);
  const at = JSON.parse(stack.line);
  const browser = await launch();
  try {
    const page = await visit(browser, at.ui);
    await loaded(page, 0);
    await says(page, "#live", "live");
    // The provider takes its time: the ride is seen while it is open.
    const slow = await fetch(`${at.world}/v1/mode`, { method: "PUT", headers: { "Content-Type": "application/json" }, body: '{"delay_ms":8000,"times":1}' });
    assert.equal(slow.status, 200);
    const ride = fetch(`${at.api}/rides`, {
      method: "POST",
      headers: { Authorization: "Bearer jane@example.com", "Idempotency-Key": "live-ride", "Content-Type": "application/json" },
      body: '{"origin_lat":37.7,"origin_lon":-122.4,"target_lat":37.8,"target_lon":-122.3}',
    });
    await says(page, "#rows", "POST /rides");
    await page.click("#rows a");
    await says(page, "#story", "the client’s request: working");
    await says(page, "#story .spans", "ride_created");
    assert.ok(await page.$("#story .running .bar"), "the attempt is not drawn as running");
    assert.equal((await ride).status, 201);
    // The page follows: nobody reloads it.
    await says(page, "#story", "retries get 201");
    await says(page, "#story", "the client’s request: answered");
    const phases = await page.$$eval("#story .spans li", (all) => all.map((li) => li.textContent).filter((t) => t.startsWith("phase")));
    assert.ok(phases.some((t) => /charge_created.*\d (ms|s)/.test(t)), `the phases are ${phases.join(" | ")}`);
    assert.ok(await page.$$eval("#story .spans .bar", (bars) => bars.every((b) => b.getBoundingClientRect().width >= 3)), "a bar can't be seen");
    await says(page, "#rows", "done 201");
    assert.deepEqual([page.errors, page.foreign], [[], []]);
  } finally {
    await browser.end();
    await stack.end("SIGTERM");
  }
});
