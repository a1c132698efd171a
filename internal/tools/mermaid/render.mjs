// Renders the Mermaid diagrams of files, and reports those that can't be rendered:
//
//	node render.mjs FILE...
//
// The DOM is jsdom's, which measures no text: sizes are estimated, so the pictures are not for looking at.
import { readFile } from "node:fs/promises";
import { argv, exit, stderr, stdout } from "node:process";
import { JSDOM } from "jsdom";

// diagrams returns the blocks of a page, or of Go comments, with the line on which each begins.
export function diagrams(text) {
  const found = [];
  let block = null;
  text.split("\n").forEach((line, i) => {
    const bare = line.replace(/^\s*(\/\/)?\s*/, "");
    if (block === null) {
      const fence = bare.match(/^(`{3,}|~{3,})\s*mermaid\s*$/);
      if (fence) block = { line: i + 1, fence: fence[1], lines: [] };
    } else if (bare.startsWith(block.fence) && bare.replace(/[`~]/g, "").trim() === "") {
      found.push({ line: block.line, source: block.lines.join("\n") });
      block = null;
    } else {
      block.lines.push(line.replace(/^\s*\/\/ ?/, ""));
    }
  });
  if (block !== null) found.push({ line: block.line, source: null });
  return found;
}

// renderer returns a function that renders one diagram, and throws if it can't.
export async function renderer() {
  const { window } = new JSDOM("<!DOCTYPE html><body></body>", { pretendToBeVisual: true });
  globalThis.window = window;
  for (const name of ["document", "Element", "SVGElement", "HTMLElement", "Node", "DOMParser", "XMLSerializer", "getComputedStyle", "requestAnimationFrame", "CSSStyleSheet"]) {
    globalThis[name] ??= window[name];
  }
  // jsdom has no layout. These are the methods of SVG that Mermaid asks for sizes.
  const width = (element) => 8 + 8 * (element.textContent ?? "").length;
  window.SVGElement.prototype.getBBox = function () {
    return { x: 0, y: 0, width: width(this), height: 20 };
  };
  window.SVGElement.prototype.getComputedTextLength = function () {
    return width(this);
  };
  const { default: mermaid } = await import("mermaid");
  // strict is what GitHub uses. Without htmlLabels, labels are SVG's own text.
  mermaid.initialize({ startOnLoad: false, securityLevel: "strict", suppressErrorRendering: true, htmlLabels: false });
  let n = 0;
  return async (source) => {
    const { svg } = await mermaid.render(`diagram${++n}`, source);
    if (!svg.startsWith("<svg")) throw new Error("no picture came out");
    return svg;
  };
}

// check renders the diagrams of files, prints a line for each that is broken, and returns how many there are.
export async function check(files, say) {
  const render = await renderer();
  let total = 0;
  let broken = 0;
  for (const file of files) {
    for (const { line, source } of diagrams(await readFile(file, "utf8"))) {
      total++;
      try {
        if (source === null) throw new Error("the block has no end");
        await render(source);
      } catch (err) {
        broken++;
        // Mermaid counts from the first line of the diagram.
        const at = String(err.message).match(/line (\d+)/i);
        say(`${file}:${line + (at ? Number(at[1]) : 0)}: ${String(err.message).trim()}`);
      }
    }
  }
  return { total, broken };
}

if (import.meta.filename === argv[1]) {
  const { total, broken } = await check(argv.slice(2), (line) => stderr.write(line + "\n"));
  stdout.write(`${total} diagrams, ${broken} broken\n`);
  exit(broken > 0 || total === 0 ? 1 : 0);
}
