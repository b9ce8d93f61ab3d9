/** A test for names: `/expression/`, or text in any case. A malformed expression is taken as text. */
export function tester(query: string): (text: string) => boolean {
  const expression = /^\/(.+)\/$/.exec(query);
  if (expression) {
    try {
      const compiled = new RegExp(expression[1], "i");
      return (text) => compiled.test(text);
    } catch {
      // As text, below.
    }
  }
  const wanted = query.toLowerCase();
  return (text) => text.toLowerCase().includes(wanted);
}
