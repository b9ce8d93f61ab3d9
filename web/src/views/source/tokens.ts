// Words of code by what they are, for colours. Lines are read alone: a text over several lines loses its colour after
// the first, which is rare in kernels.

import type { Stage } from "../../data/code";

export type TokenKind = "comment" | "string" | "keyword" | "number" | "name" | "type" | "register" | "label" | "plain";

export interface Token {
  kind: TokenKind;
  text: string;
}

const PYTHON_KEYWORDS =
  "and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|" +
  "lambda|None|nonlocal|not|or|pass|raise|return|True|False|try|while|with|yield";
const NUMBER = String.raw`\b0[xX][0-9a-fA-F]+\b|\b\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\b`;

/** Longer lines are shown without colours: damaged texts must not hold the page up. */
const MAX_LENGTH = 2000;

const MLIR: [TokenKind, string][] = [
  ["comment", String.raw`//.*|loc\(.*$`],
  ["string", String.raw`"(?:[^"\\]|\\.)*"`],
  ["register", String.raw`%[\w#]+(?::\d+)?`],
  ["label", String.raw`[#@^][\w.]+`],
  ["type", String.raw`!?tt\.ptr|!\w[\w.]*|\b(?:tensor|memdesc|vector)\b|\b[iuf](?:1|8|16|32|64)\b|\bbf16\b|\bindex\b`],
  ["keyword", String.raw`\b[a-z_]\w*\.[\w.]+|\bmodule\b`],
  ["number", NUMBER],
];

const RULES: Record<Stage, [TokenKind, string][]> = {
  python: [
    ["comment", String.raw`#.*`],
    ["string", String.raw`[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`],
    ["label", String.raw`^\s*@[\w.]+`],
    ["keyword", String.raw`\b(?:${PYTHON_KEYWORDS})\b`],
    ["name", String.raw`\b[A-Za-z_]\w*(?=\()`],
    ["number", NUMBER],
  ],
  ttir: MLIR,
  ttgir: MLIR,
  llir: [
    ["comment", String.raw`;.*|,? !dbg !\d+`],
    ["string", String.raw`c?"(?:[^"\\]|\\.)*"`],
    ["register", String.raw`%[\w.]+`],
    ["label", String.raw`[@!#][\w.]+|^\w+:`],
    ["type", String.raw`\b(?:i\d+|half|bfloat|float|double|ptr|void|addrspace)\b`],
    ["keyword", String.raw`(?<=^\s*(?:%[\w.]+ = )?(?:tail )?)[a-z]\w*`],
    ["number", NUMBER],
  ],
  ptx: [
    ["comment", String.raw`//.*|/\*.*?\*/`],
    ["string", String.raw`"[^"]*"`],
    ["register", String.raw`%[\w.]+`],
    ["label", String.raw`\$\w+:?`],
    ["type", String.raw`^\s*\.\w+`],
    ["keyword", String.raw`(?<=^\s*(?:\{\s*)?(?:@!?%\w+\s+)?)[a-z][\w.:]*`],
    ["number", NUMBER],
  ],
  sass: [
    ["label", String.raw`@!?U?P\w+|\x60\([^)]*\)`],
    ["register", String.raw`\b(?:U?R|U?P|SR_|SB|B)(?:\d+|Z|T|\w*_\w+)\b`],
    ["keyword", String.raw`(?<=^\s*(?:@!?U?P\w+\s+)?)[A-Z][\w.]*`],
    ["type", String.raw`\b(?:desc|cx?|gdesc)(?=\[)|\bc\[`],
    ["number", NUMBER],
  ],
};

const PATTERNS = Object.fromEntries(
  Object.entries(RULES).map(([stage, rules]) => [
    stage,
    { kinds: rules.map(([kind]) => kind), pattern: new RegExp(rules.map(([, text]) => `(${text})`).join("|"), "g") },
  ]),
) as Record<Stage, { kinds: TokenKind[]; pattern: RegExp }>;

/** The tokens of a line, in order; together they are the line. */
export function tokensOf(stage: Stage, line: string): Token[] {
  if (line.length > MAX_LENGTH) return [{ kind: "plain", text: line }];
  const { kinds, pattern } = PATTERNS[stage];
  const tokens: Token[] = [];
  let end = 0;
  for (const match of line.matchAll(pattern)) {
    if (match[0] === "") continue;
    if (match.index > end) tokens.push({ kind: "plain", text: line.slice(end, match.index) });
    tokens.push({ kind: kinds[match.slice(1).findIndex((part) => part !== undefined)], text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < line.length) tokens.push({ kind: "plain", text: line.slice(end) });
  return tokens;
}
