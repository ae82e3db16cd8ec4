// Finds the parts of pages that have all words, those first that have them in a heading.
const input = document.getElementById("search");
const found = document.getElementById("found");
const root = document.querySelector("nav").dataset.root;
const most = 12;

function score(entry, words) {
  const heading = (entry.page + " " + entry.heading).toLowerCase();
  const text = entry.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (heading.includes(word)) sum += 10;
    else if (text.includes(word)) sum += 1;
    else return 0;
  }
  return sum;
}

function excerpt(entry, word) {
  const at = Math.max(0, entry.text.toLowerCase().indexOf(word) - 40);
  return (at > 0 ? "…" : "") + entry.text.slice(at, at + 110);
}

function show() {
  found.replaceChildren();
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return;
  const hits = entries.map((entry) => ({ entry, sum: score(entry, words) })).filter((hit) => hit.sum > 0);
  hits.sort((a, b) => b.sum - a.sum);
  for (const { entry } of hits.slice(0, most)) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + "/" + entry.href;
    link.textContent = entry.heading ? entry.page + ": " + entry.heading : entry.page;
    const text = document.createElement("small");
    text.textContent = excerpt(entry, words[0]);
    item.append(link, text);
    found.append(item);
  }
  if (hits.length === 0) found.append("Nothing found.");
}

input.addEventListener("input", show);
