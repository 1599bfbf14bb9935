// Everything works without this: it keeps an open page up to date, and shows a budget while the slider moves.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");
const { home, topic } = document.body.dataset;

/** The same page as it is now, parsed; null where it cannot be had. */
async function fetched(address, signal) {
  const answer = await fetch(address, { signal, credentials: "same-origin" });
  if (!answer.ok) return null;
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// ---- the slider of the brief ----

let asked = null;
let pause = 0;

document.addEventListener("input", (event) => {
  if (event.target.id !== "budget") return;
  const budget = event.target.value;
  document.getElementById("budget-says").textContent = Number(budget).toLocaleString("en");
  clearTimeout(pause);
  pause = setTimeout(() => showBudget(budget), 120);
});

async function showBudget(budget) {
  asked?.abort();
  asked = new AbortController();
  try {
    const page = await fetched(`${location.pathname}?budget=${encodeURIComponent(budget)}`, asked.signal);
    const brief = document.getElementById("brief");
    if (!page || !brief) return;
    const fresh = page.getElementById("brief");
    for (const part of ["h2", ".falls", ".twin"]) brief.querySelector(part).replaceWith(fresh.querySelector(part));
    history.replaceState(null, "", `${location.pathname}?budget=${encodeURIComponent(budget)}`);
  } catch (error) {
    if (error.name !== "AbortError") live.textContent = "the server does not answer";
  }
}

// ---- what has changed since ----

/** Whether the person is in the middle of something that another content would break. */
function isBusy() {
  const at = document.activeElement;
  const writes = at && main.contains(at) && ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName);
  return writes || String(document.getSelection()) !== "" || main.querySelector("details[open]") !== null;
}

async function renew() {
  if (isBusy()) {
    live.textContent = "there is something new: reload to see it";
    live.classList.add("new");
    return;
  }
  const page = await fetched(location.href);
  if (!page) return;
  const at = document.activeElement;
  const place = at && main.contains(at) ? [...main.querySelectorAll("a, button, summary")].indexOf(at) : -1;
  const scrolled = window.scrollY;
  main.replaceChildren(...page.getElementById("main").childNodes);
  window.scrollTo(0, scrolled);
  if (place >= 0) main.querySelectorAll("a, button, summary")[place]?.focus({ preventScroll: true });
  live.textContent = `up to date at ${new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`;
  live.classList.remove("new");
}

const PAUSE = 2_000; // milliseconds

if (topic) {
  let known = null;

  /** Ask whether something is new, as long as somebody can see the page. */
  async function look() {
    if (document.visibilityState === "hidden") return;
    try {
      const answer = await fetch(`${home}/changes`, { credentials: "same-origin" });
      const told = (await answer.json())[topic];
      if (known === null) live.textContent = "kept up to date";
      if (known && told && told !== known) await renew();
      known = told ?? known;
    } catch {
      live.textContent = "not kept up to date: the server does not answer";
    }
  }

  look();
  setInterval(look, PAUSE);
  document.addEventListener("visibilitychange", look);
}

// ---- keys: / searches, g and a letter goes to a page ----

let before = "";
document.addEventListener("keydown", (event) => {
  const writes = ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement?.tagName);
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const pages = { h: "/", s: "/sessions", r: "/routes", t: "/tasks", m: "/memory", u: "/runs" };
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("find").focus();
  } else if (before === "g" && pages[event.key]) {
    location.assign(home + pages[event.key]);
  }
  before = event.key;
});
