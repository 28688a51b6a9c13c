// Search in a site that is opened from a folder: browsers start no worker from a file there, so a hidden frame does its work.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((resolve) => {
        document.addEventListener("DOMContentLoaded", () => document.body.append(frame), { once: true });
        if (document.readyState !== "loading") document.body.append(frame);
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow;
          // What the script inside sends, this object receives.
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = url;
          script.addEventListener("load", () => resolve(inside));
          inside.document.body.append(script);
        }, { once: true });
      });
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
}
