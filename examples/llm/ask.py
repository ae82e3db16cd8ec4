"""Asks a language model many things at once, through "ration proxy", which keeps its requests and tokens a minute.

    ration proxy -config examples/llm/ration.yaml
    python3 examples/llm/ask.py http://127.0.0.1:8080/api.openai.com/v1

The official library does the same: OpenAI(base_url=..., api_key="of the proxy", max_retries=0).
"""

import concurrent.futures
import json
import sys
import urllib.request

QUESTION = {
    "model": "gpt-4.1-mini",
    "max_completion_tokens": 2000,
    "stream_options": {"include_usage": True},
    "messages": [{"role": "user", "content": "What is a token?"}],
}


def ask(base_url, stream):
    """Returns how many tokens an answer says that it has used."""
    body = json.dumps({**QUESTION, "stream": stream}).encode()
    request = urllib.request.Request(base_url + "/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        if not stream:
            return json.load(answer)["usage"]["total_tokens"]
        events = [line[len(b"data: "):] for line in answer if line.startswith(b"data: {")]
        return json.loads(events[-1])["usage"]["total_tokens"]


def main():
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        used = list(pool.map(ask, [sys.argv[1]] * 30, [n % 2 == 0 for n in range(30)]))
    print(len(used), "questions were asked, which used", sum(used), "tokens")


if __name__ == "__main__":
    main()
