// Keeps the status page fresh: fetches itself and swaps the content in, so that nothing jumps or flashes.
"use strict";

const PERIOD_MS = 4000;

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(String(answer.status));
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of ["main", "footer"]) {
    const now = document.querySelector(part);
    const then = fresh.querySelector(part);
    for (const open of now.querySelectorAll("details[open]")) {
      then?.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
    }
    if (then && now.innerHTML !== then.innerHTML) now.replaceWith(then);
  }
}

async function tick() {
  if (!document.hidden) {
    try {
      await refresh();
      document.body.classList.remove("is-stale");
    } catch {
      document.body.classList.add("is-stale");
    }
  }
  setTimeout(tick, PERIOD_MS);
}

setTimeout(tick, PERIOD_MS);
