"""Reads some repositories under the fleet's quota."""

import json

import ration

for name in ["golang/go", "python/cpython", "nodejs/node"]:
    with ration.urlopen("https://api.github.com/repos/" + name, caller="python") as response:
        print(name, json.load(response)["stargazers_count"], "stars,", response.headers["Ration-Remaining"], "calls left")
