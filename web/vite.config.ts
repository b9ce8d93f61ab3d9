import { defineConfig } from "vitest/config";

// One script and one style sheet with fixed names: the page inlines them, the server serves them.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    outDir: "../build/web",
    emptyOutDir: true,
    cssCodeSplit: false,
    lib: { entry: "src/main.tsx", formats: ["iife"], name: "bragg", fileName: () => "app.js", cssFileName: "app" },
  },
  define: { "process.env.NODE_ENV": '"production"' },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
