// Keeps the page as it is at its server: what has changed comes as HTML, and only nodes that differ are
// touched, so that focus, selection and scrolling stay.
"use strict";
(() => {
  const main = document.getElementById("main");
  const connection = document.getElementById("connection");

  const update = (old, next) => {
    if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName) {
      old.replaceWith(next.cloneNode(true));
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== next.data) old.data = next.data;
      return;
    }
    for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    updateChildren(old, next);
  };

  const updateChildren = (old, next) => {
    const wanted = [...next.childNodes];
    const there = [...old.childNodes];
    for (const extra of there.slice(wanted.length)) extra.remove();
    wanted.forEach((node, i) => {
      if (i < there.length) update(there[i], node);
      else old.append(node.cloneNode(true));
    });
  };

  let live = null;
  const look = () => {
    live = new EventSource(location.href);
    live.onopen = () => { connection.textContent = ""; };
    live.onmessage = (event) => {
      const page = new DOMParser().parseFromString("<main>" + event.data + "</main>", "text/html");
      updateChildren(main, page.querySelector("main"));
    };
    live.onerror = () => { connection.textContent = "The server of this page does not answer; the page waits for it."; };
    live.addEventListener("gone", () => { connection.textContent = "Nothing is known of this any more."; });
  };

  // A browser has six connections to a server for all its tabs: one that nobody looks at needs none.
  document.addEventListener("visibilitychange", () => {
    if (live) live.close();
    live = null;
    if (!document.hidden) look();
  });
  if (!document.hidden) look();
})();
