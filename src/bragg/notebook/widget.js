// The page of a profile in a frame; its address is the trait `place`. See web/src/shell/embed.ts.
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts";
    frame.title = "bragg profile";
    frame.style.cssText = "width:100%;height:620px;border:1px solid #8884;border-radius:4px";
    frame.srcdoc = model.get("page");
    let shown = "";
    const tell = () => {
      if (model.get("place") !== shown) frame.contentWindow?.postMessage({ bragg: model.get("place") }, "*");
    };
    const hear = (event) => {
      if (event.source !== frame.contentWindow || typeof event.data?.bragg !== "string") return;
      const isFirst = shown === "" && model.get("place") !== "";
      shown = event.data.bragg;
      if (isFirst) return tell();
      model.set("place", shown);
      model.save_changes();
    };
    window.addEventListener("message", hear);
    model.on("change:place", tell);
    el.append(frame);
    return () => {
      window.removeEventListener("message", hear);
      model.off("change:place", tell);
    };
  },
};
