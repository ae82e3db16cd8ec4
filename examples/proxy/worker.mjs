// Reads some repositories under the fleet's quota.
import { rationFetch } from "./ration.mjs";

const fetch = rationFetch({ caller: "node" });
for (const name of ["golang/go", "python/cpython", "nodejs/node"]) {
  const response = await fetch(`https://api.github.com/repos/${name}`);
  console.log(name, (await response.json()).stargazers_count, "stars,", response.headers.get("Ration-Remaining"), "calls left");
}
