// Sends requests under a fleet's quota, through a "ration proxy". One file, no dependencies: copy it.
//
//   import { rationFetch, take } from "./ration.mjs";
//   const fetch = rationFetch();                                   // in place of the global one
//   const response = await fetch("https://api.github.com/user");
//
//   const slot = await take("github");                             // what sends its requests itself
//   const answer = await send(slot.headers);
//   await slot.report(answer.status, answer.headers);              // true: take another, and send again
//
// The proxy is http://127.0.0.1:8080, or the environment's RATION_PROXY. An answer of the proxy's own is rejected with Refused: the
// origin's answers, a 429 or a 503 among them, come back as they are.

const proxyOf = (options) => (options.proxy ?? process.env.RATION_PROXY ?? "http://127.0.0.1:8080").replace(/\/$/, "");
const secretOf = (options) => options.secret ?? process.env.RATION_SECRET;

// The proxy has answered, and not the origin. Nothing was sent, unless the reason is "origin": then no response has come, and a POST
// may have been carried out. reason: "quota", "no_token", "store", "host" and so on, as in the header Ration-Reason. retryAfter: the seconds after which the
// request may be sent; undefined: nobody knows.
export class Refused extends Error {
  constructor(reason, detail, retryAfter) {
    super(detail);
    this.name = "Refused";
    this.reason = reason;
    this.retryAfter = retryAfter;
  }
}

const check = async (response) => {
  const reason = response.headers.get("Ration-Reason");
  if (!reason) return response;
  const detail = await response.json().then((problem) => problem.detail, () => "the proxy says no more");
  const after = response.headers.get("Retry-After");
  throw new Refused(reason, detail, after ? Number(after) : undefined);
};

const redirects = [301, 302, 303, 307, 308];

// Options: proxy, caller, maxWait such as "10s", secret, and fetch, which is the global one unless given.
export const rationFetch = (options = {}) => async (input, init) => {
  const send = options.fetch ?? globalThis.fetch;
  let request = new Request(input, init);
  const follow = request.redirect;
  for (let i = 0; i < 20; i++) {
    const url = new URL(request.url);
    if (!/[.:]/.test(url.host)) throw new Refused("host", `${url.host} has no dot: it would be a path of the proxy's own`);
    const headers = new Headers(request.headers);
    if (options.caller) headers.set("Ration-Caller", options.caller);
    if (options.maxWait) headers.set("Ration-Max-Wait", options.maxWait);
    if (secretOf(options)) headers.set("Ration-Secret", secretOf(options));
    // A body is read, so that it can be sent again to where a redirect leads.
    const body = request.body ? await request.arrayBuffer() : undefined;
    const response = await check(await send(`${proxyOf(options)}/${url.host}${url.pathname}${url.search}`,
      { method: request.method, headers, body, redirect: "manual", signal: request.signal }));
    Object.defineProperty(response, "url", { value: request.url });
    const location = response.headers.get("Location");
    if (follow === "manual" || !redirects.includes(response.status) || !location) return response;
    if (follow === "error") throw new TypeError("there was a redirect");
    await response.body?.cancel();
    const get = (response.status === 303 && request.method !== "HEAD") || (response.status < 303 && request.method === "POST");
    request = new Request(new URL(location, request.url),
      { method: get ? "GET" : request.method, headers: request.headers, body: get ? undefined : body, signal: request.signal });
  }
  throw new TypeError("more than 20 redirects");
};

const ask = async (path, asked, options) => {
  const headers = { "Content-Type": "application/json" };
  if (secretOf(options)) headers["Ration-Secret"] = secretOf(options);
  const response = await check(await globalThis.fetch(proxyOf(options) + path,
    { method: "POST", headers, body: JSON.stringify(asked), signal: options.signal }));
  return response.json();
};

// Waits for a slot of a budget. Options: url, method, cost, units, scopes, reserve, maxWait, caller, proxy, secret, signal.
export const take = async (budget, options = {}) => {
  const { url, method, cost, units, scopes, reserve, caller } = options;
  const taken = await ask("/v1/take", { budget, url, method, cost, units, scopes, reserve, caller, max_wait: options.maxWait }, options);
  return {
    token: taken.token, label: taken.label ?? "", headers: taken.headers ?? {}, url: taken.url, waitMs: taken.wait_ms,
    // Tells what the origin has said. True: take another slot, and send the request again.
    report: async (status, headers = {}, units = {}) => (await ask("/v1/report",
      { grant: taken.grant, status, units, headers: Object.fromEntries(headers instanceof Headers ? headers : Object.entries(headers)) }, options)).retry,
  };
};
