import { useLayoutEffect, useRef } from "preact/hooks";
import type { ViewRow } from "../views/view";

const PAGE_KEYS: [string, string][] = [
  ["1 … 9", "a view"],
  ["T", "light or dark"],
  ["?", "this list"],
  ["Back", "where you were before"],
];

interface Props {
  row: ViewRow;
  onClose(): void;
}

/** The keys of the page and of its view. */
export function Help({ row, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" onClose={onClose} closedby="any">
      {row.keys.length > 0 && <Keys title={row.label} keys={row.keys} />}
      <Keys title="Everywhere" keys={PAGE_KEYS} />
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

function Keys({ title, keys }: { title: string; keys: [string, string][] }) {
  return (
    <section>
      <h2>{title}</h2>
      <dl>
        {keys.map(([key, what]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </section>
  );
}
