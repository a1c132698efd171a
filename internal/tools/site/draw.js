// Mermaid draws the pictures of a page, in the colours of its theme.
const dark = document.body.dataset.theme === "dark" ||
  document.body.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches;
mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark ? "dark" : "default" });
addEventListener("load", () => mermaid.run({ querySelector: "pre.mermaid" }));
