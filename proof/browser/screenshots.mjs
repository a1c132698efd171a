// Writes docs/images: the page, light and dark, and a request's timeline.
import { join } from "node:path";
import { launch, loaded, open, root, says, serve, visit } from "./stage.mjs";

const stage = await open();
const browser = await launch();
const ui = await serve(stage, "requests");
const shots = { width: 1200, height: 760 };
try {
  for (const dark of [false, true]) {
    const page = await visit(browser, ui.url, { ...shots, dark });
    await loaded(page, 100);
    await says(page, "#kinds", "All 10,000");
    await page.waitForFunction(() => document.querySelector("#rows td")?.textContent === "stuck");
    // The endpoint differs from run to run, and says nothing.
    await page.evaluate(() => { document.querySelector("#about").textContent = "orders · us-east-1"; document.querySelector("#status").textContent = ""; });
    await page.screenshot({ path: join(root, `docs/images/page-${dark ? "dark" : "light"}.png`) });
    if (!dark) {
      await page.evaluate(() => document.querySelector("#rows a").click());
      await says(page, "#story", "charge_created");
      await page.evaluate(() => { document.querySelector("#main").style.gridTemplateColumns = "1fr"; document.querySelector("#list").hidden = true; document.activeElement.blur(); });
      await (await page.$("#record")).screenshot({ path: join(root, "docs/images/timeline.png") });
    }
    await page.browserContext().close();
  }
} finally {
  await browser.end();
  await ui.end();
  await stage.end();
}
