import { Component } from "preact";
import type { ProfileData } from "../data/profile";
import type { Theme } from "../ui/colours";
import { printable } from "../ui/text";
import { viewsOf } from "../views";
import type { Host, View } from "../views/view";
import { type Address, addressText, parseAddress } from "./address";
import { tellAddress } from "./embed";
import { Help } from "./help";
import { runLabel } from "./run_label";
import { applyTheme, initialTheme, storeTheme } from "./theme";
import { ViewFrame } from "./view_frame";

interface Props {
  profiles: ProfileData[];
}

interface State {
  address: Address;
  theme: Theme;
  helps: boolean;
}

/** The page: tabs, theme, help, and the view that the address names. */
export class App extends Component<Props, State> {
  override state: State = { address: this.readAddress(), theme: initialTheme(), helps: false };
  /** What each view showed when it was left. */
  private readonly left = new Map<string, Record<string, string>>();
  /** The address as last read or written; if it differs, `hashchange` is still to come. */
  private address = location.hash;
  private shown: View | null = null;

  constructor(props: Props) {
    super(props);
    // Views read the theme's colours when they are mounted, which is before the page is.
    applyTheme(this.state.theme);
    const { address } = this.state;
    if (address.state.node) this.share(address.state.node, address);
  }

  override componentDidMount(): void {
    this.showTab();
    tellAddress(addressText(this.state.address));
    window.addEventListener("hashchange", this.onAddress);
    document.addEventListener("keydown", this.onKey);
  }

  override componentDidUpdate(): void {
    this.showTab();
    tellAddress(addressText(this.state.address));
  }

  override componentWillUnmount(): void {
    // The page that shows a file's new state continues from the address.
    this.onChanged();
    window.removeEventListener("hashchange", this.onAddress);
    document.removeEventListener("keydown", this.onKey);
  }

  override render() {
    const { address, theme, helps } = this.state;
    const data = this.data;
    const views = viewsOf(data);
    return (
      <>
        <header class="bar">
          <h1 title={printable(data.title)}>{printable(data.title) || "bragg"}</h1>
          {this.props.profiles.length > 1 && this.profileChoice()}
          <nav aria-label="Views">
            {Object.entries(views).map(([name, row], index) => (
              <a
                key={name}
                href={addressText({ ...address, view: name, state: this.left.get(name) ?? {} })}
                aria-current={name === address.view ? "page" : undefined}
                class={row.needs(data) ? "empty" : ""}
                title={row.needs(data) || `${row.label} (${index + 1})`}
              >
                {row.label}
              </a>
            ))}
          </nav>
          <button type="button" onClick={this.toggleTheme} title="Light or dark (T)" aria-label="Light or dark">
            ◐
          </button>
          <button type="button" onClick={() => this.setState({ helps: true })} title="Keys (?)" aria-label="Keys">
            ?
          </button>
        </header>
        <ViewFrame
          key={`${address.profile} ${address.view} ${theme}`}
          row={views[address.view]}
          data={data}
          host={this.host}
          state={address.state}
          onView={this.onView}
        />
        {helps && <Help row={views[address.view]} onClose={() => this.setState({ helps: false })} />}
      </>
    );
  }

  private profileChoice() {
    return (
      <select
        aria-label="Profile"
        value={this.state.address.profile}
        onChange={(event) => this.go({ ...this.state.address, profile: Number(event.currentTarget.value), state: {} })}
      >
        {this.props.profiles.map((profile, index) => (
          <option key={`${index} ${profile.title}`} value={index}>
            {runLabel(profile)}
          </option>
        ))}
      </select>
    );
  }

  private get data(): ProfileData {
    return this.props.profiles[this.state.address.profile];
  }

  /** An address may be of another report: names that this one lacks are replaced by the usual ones. */
  private readAddress(): Address {
    const address = parseAddress(location.hash);
    const profile = address.profile in this.props.profiles ? address.profile : 0;
    const views = viewsOf(this.props.profiles[profile]);
    return { ...address, profile, view: address.view in views ? address.view : Object.keys(views)[0] };
  }

  private get host(): Host {
    return {
      theme: this.state.theme,
      select: (node) => {
        this.share(String(node), this.state.address);
        this.forceUpdate();
      },
      open: (view, state) => this.go({ ...this.state.address, view, state }),
      changed: () => this.onChanged(),
    };
  }

  /** On a phone the tabs are wider than the window. */
  private showTab(): void {
    document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** What is chosen in one view is chosen in the others. */
  private share(node: string, address: Address): void {
    for (const name of Object.keys(viewsOf(this.data))) {
      if (name !== address.view) this.left.set(name, { ...this.left.get(name), node });
    }
  }

  private readonly onView = (view: View | null): void => {
    this.shown = view;
  };

  private onChanged(): void {
    // Where the reader wants to go next comes before what is shown now.
    if (this.shown === null || location.hash !== this.address) return;
    const address = { ...this.state.address, state: this.shown.state() };
    this.left.set(address.view, address.state);
    history.replaceState(null, "", addressText(address));
    this.address = location.hash;
    this.setState({ address });
  }

  private go(address: Address): void {
    this.left.set(address.view, address.state);
    location.hash = addressText(address);
  }

  private readonly onAddress = (): void => {
    const { address: before } = this.state;
    const address = this.readAddress();
    this.address = location.hash;
    if (address.profile !== before.profile) this.left.clear();
    // Some views tell what they show only when the picture rests.
    else if (this.shown && address.view !== before.view) this.left.set(before.view, this.shown.state());
    if (address.state.node) this.share(address.state.node, address);
    this.setState({ address });
  };

  private readonly toggleTheme = (): void => {
    const theme = this.state.theme === "light" ? "dark" : "light";
    applyTheme(theme);
    storeTheme(theme);
    // The view is made anew, from the address.
    this.onChanged();
    this.setState({ theme });
  };

  private readonly onKey = (event: KeyboardEvent): void => {
    const isTyping = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const view = Object.keys(viewsOf(this.data))[Number(event.key) - 1];
    if (view !== undefined) this.go({ ...this.state.address, view, state: this.left.get(view) ?? {} });
    else if (event.key === "?") this.setState({ helps: !this.state.helps });
    else if (event.key === "T") this.toggleTheme();
    else return;
    event.preventDefault();
  };
}
