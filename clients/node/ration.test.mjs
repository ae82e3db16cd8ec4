// Run by "go test ./internal/proxy" in cmd, which starts a proxy at RATION_PROXY and an origin at RATION_ORIGIN.
import assert from "node:assert/strict";
import test from "node:test";
import { rationFetch, Refused, take } from "./ration.mjs";

const origin = process.env.RATION_ORIGIN;
const fetch = rationFetch({ caller: "node" });

test("a request is sent with a token", async () => {
  const response = await fetch(`${origin}/echo?x=1`);
  assert.match(await response.text(), /^GET \/echo\?x=1 Bearer [ab]-secret$/);
  assert.equal(response.url, `${origin}/echo?x=1`);
  assert.equal(await (await fetch(`${origin}/body`, { method: "POST", body: "hello" })).text(), "hello");
});

test("redirects go through the proxy", async () => {
  assert.match(await (await fetch(`${origin}/redirect`)).text(), /^GET \/echo Bearer [ab]-secret/);
  assert.equal((await fetch(`${origin}/redirect`, { redirect: "manual" })).status, 302);
});

test("refusals are told apart", async () => {
  assert.equal((await fetch(`${origin}/gone`)).status, 410);
  await assert.rejects(fetch("https://elsewhere.example/"), (error) => error instanceof Refused && error.reason === "host");
});

test("many at once", async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => fetch(`${origin}/echo`)));
  assert.ok(all.every((response) => response.status === 200));
});

test("a slot is taken and reported", async () => {
  const slot = await take("api", { caller: "node" });
  assert.match(slot.headers.Authorization, /^Bearer [ab]-secret$/);
  assert.equal(await slot.report(200, new Headers({ "Content-Type": "text/plain" })), false);
  assert.equal(await (await take("api", { url: `${origin}/limited`, method: "POST" })).report(503), true);
  await assert.rejects(take("no-such-budget"), Refused);
});
