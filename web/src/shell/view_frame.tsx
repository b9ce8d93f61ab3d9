import { Component, createRef } from "preact";
import type { ProfileData } from "../data/profile";
import type { Host, View, ViewRow } from "../views/view";

interface Props {
  row: ViewRow;
  data: ProfileData;
  host: Host;
  state: Record<string, string>;
  onView(view: View | null): void;
}

/** The place of a view: makes it, hands it addresses, and ends it. */
export class ViewFrame extends Component<Props> {
  private readonly element = createRef<HTMLElement>();
  private view: View | null = null;

  override componentDidMount(): void {
    const { row, data, host, state, onView } = this.props;
    if (row.needs(data)) return;
    this.view = new row.view(data, host);
    this.view.mount(this.element.current as HTMLElement);
    this.view.apply(state);
    onView(this.view);
  }

  override shouldComponentUpdate(next: Props): boolean {
    // The page is drawn anew for other reasons, too, while what the view shows is not yet in the address.
    const isNew = next.state !== this.props.state;
    if (this.view && isNew && !equal(next.state, this.view.state())) this.view.apply(next.state);
    return false;
  }

  override componentWillUnmount(): void {
    this.props.onView(null);
    this.view?.destroy();
  }

  override render({ row, data }: Props) {
    const lack = row.needs(data);
    return (
      <main ref={this.element} class="view" data-view={row.label.toLowerCase()}>
        {lack && <Lack row={row} why={lack} />}
      </main>
    );
  }
}

function equal(one: Record<string, string>, other: Record<string, string>): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => (one[name] ?? "") === (other[name] ?? ""));
}

/** What stands where there is nothing to show: a drawing of it, what it would be, why it is not there, and the way to it. */
function Lack({ row, why }: { row: ViewRow; why: string }) {
  return (
    <section class="lack">
      <svg viewBox="0 0 160 72" width="320" height="144" aria-hidden="true">
        {row.sketch.map(([role, x, y, width, height]) => (
          <rect key={`${x} ${y}`} data-role={role} x={x} y={y} width={width} height={height} rx="1.5" />
        ))}
      </svg>
      <p class="shows">{row.shows}</p>
      <p>{why}</p>
      {row.command && (
        <p>
          <code>{row.command}</code>
        </p>
      )}
    </section>
  );
}
