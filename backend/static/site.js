// Progressive help for the QA site: pages work without it. Tables and filters are swapped in without a reload, flags
// are checked in place, and running jobs are shown as they go.
"use strict";

const JOBS_EVERY_MS = 4000;
const AGAIN_MS = 1500;
const JSON_TYPE = { "Content-Type": "application/json" };

async function swap(address, { push }) {
  const main = document.querySelector("main");
  main.classList.add("is-busy");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement?.closest("thead th, .filters label, .choices a, .pager a");
    const words = focused?.textContent.trim().replace(/[▾▴]/g, "");
    main.replaceWith(fresh.querySelector("main"));
    document.title = fresh.title;
    if (push) history.pushState(null, "", address);
    shown = location.pathname + location.search;
    if (words) focusOn(words);
    askAgain();
  } catch {
    location.assign(address); // the page itself says what is wrong
  }
}

// A page whose figures are still being computed names where to look for them.
function askAgain() {
  const address = document.querySelector("[data-again]")?.dataset.again;
  if (address) setTimeout(() => swap(address === "?" ? location.href : address, { push: false }), AGAIN_MS);
}

function focusOn(words) {
  for (const place of document.querySelectorAll("thead th a, .filters select, .choices a, .pager a")) {
    const named = (place.closest("label") ?? place).textContent.trim().replace(/[▾▴]/g, "");
    if (named === words) return place.focus();
  }
}

async function check(form, verdict) {
  const buttons = [...form.querySelectorAll("button")];
  const pressed = buttons.find((each) => each.value === verdict);
  const next = pressed.getAttribute("aria-pressed") === "true" ? "" : verdict; // pressing again takes it back
  const body = JSON.stringify({ flag: form.elements.flag.value, verdict: next });
  const answer = await fetch(form.dataset.check, { method: "POST", headers: JSON_TYPE, body });
  if (!answer.ok) return say((await answer.json()).error);
  for (const each of buttons) each.setAttribute("aria-pressed", String(each.value === next));
}

function say(sentence) {
  const note = document.createElement("p");
  note.textContent = sentence;
  document.querySelector("#jobs")?.replaceChildren(note);
}

function jobLine(job) {
  const line = document.createElement("p");
  line.append(job.words, " ");
  const note = document.createElement("span");
  note.className = "quiet";
  note.textContent = job.note;
  line.append(note);
  if (job.state === "running") {
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.value = job.progress;
    bar.setAttribute("aria-label", job.words);
    line.append(bar);
  }
  return line;
}

async function jobs() {
  const place = document.querySelector("#jobs");
  if (place && !document.hidden) {
    try {
      const answer = await fetch(place.dataset.jobs);
      const found = await answer.json();
      const lines = found.jobs.map(jobLine);
      if (found.version && found.version !== place.dataset.version) {
        const note = document.createElement("p");
        const link = document.createElement("a");
        link.href = location.href;
        link.textContent = "Newer figures are there: show them";
        note.append(link);
        lines.push(note);
      }
      const before = [...place.children].map((each) => each.outerHTML).join("");
      if (before !== lines.map((each) => each.outerHTML).join("")) place.replaceChildren(...lines);
    } catch {
      // Polyvox does not answer; the page stays as it is and asks again.
    }
  }
  setTimeout(jobs, JOBS_EVERY_MS);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("thead th a, .choices a, .pager a");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  swap(link.href, { push: true });
});

document.addEventListener("change", (event) => {
  if (event.target.matches(".filters select")) event.target.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.check) {
    event.preventDefault();
    check(form, event.submitter.value).catch(() => say("Polyvox does not answer; nothing was kept."));
  } else if (form.matches(".filters")) {
    event.preventDefault();
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    swap(`${location.pathname}?${query}`, { push: true });
  }
});

// A jump within the page is one, too: swapping then would take the focus away from where it went.
let shown = location.pathname + location.search;
addEventListener("popstate", () => {
  if (location.pathname + location.search !== shown) swap(location.href, { push: false });
});
askAgain();
jobs();
