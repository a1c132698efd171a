// node --test: a diagram that can't be rendered is reported with its file and line.
import assert from "node:assert/strict";
import test from "node:test";
import { check } from "./render.mjs";

test("sound diagrams", async () => {
  const said = [];
  assert.deepEqual(await check(["testdata/sound.txt"], (line) => said.push(line)), { total: 3, broken: 0 }, said.join("\n"));
});

test("broken diagrams", async () => {
  const said = [];
  assert.deepEqual(await check(["testdata/broken.txt"], (line) => said.push(line)), { total: 5, broken: 5 });
  assert.deepEqual(said.map((line) => line.split(":")[1]), ["6", "11", "14", "19", "22"], said.join("\n"));
});
