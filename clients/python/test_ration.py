"""Run by "go test ./internal/proxy" in cmd, which starts a proxy at RATION_PROXY and an origin at RATION_ORIGIN."""

import asyncio
import os
import unittest
import urllib.error

import ration

ORIGIN = os.environ["RATION_ORIGIN"]


class URLLib(unittest.TestCase):
    def test_it_is_sent_with_a_token(self):
        with ration.urlopen(ORIGIN + "/echo?x=1", caller="urllib") as response:
            self.assertRegex(response.read().decode(), r"^GET /echo\?x=1 Bearer [ab]-secret$")
            self.assertEqual(response.url, ORIGIN + "/echo?x=1")
            self.assertTrue(response.headers["Ration-Token"])

    def test_a_body_is_sent(self):
        with ration.urlopen(ORIGIN + "/body", data=b"hello") as response:
            self.assertEqual(response.read(), b"hello")

    def test_the_origins_own_refusal_comes_back(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            ration.urlopen(ORIGIN + "/gone")
        self.assertEqual(caught.exception.code, 410)

    def test_redirects_go_through_the_proxy(self):
        with ration.urlopen(ORIGIN + "/redirect") as response:
            self.assertRegex(response.read().decode(), r"^GET /echo Bearer [ab]-secret")

    def test_what_the_proxy_refuses(self):
        with self.assertRaises(ration.Refused) as caught:
            ration.urlopen("https://elsewhere.example/")
        self.assertEqual(caught.exception.reason, "host")


class Requests(unittest.TestCase):
    def setUp(self):
        try:
            import requests
        except ImportError:
            self.skipTest("requests is not installed")
        self.session = ration.mount(requests.Session(), ORIGIN, caller="requests")

    def test_it_is_sent_with_a_token(self):
        response = self.session.get(ORIGIN + "/echo", params={"x": "a b"})
        self.assertRegex(response.text, r"^GET /echo\?x=a(\+|%20)b Bearer [ab]-secret$")
        self.assertTrue(response.url.startswith(ORIGIN + "/echo?"))
        self.assertEqual(self.session.post(ORIGIN + "/body", data="hello").text, "hello")

    def test_redirects_go_through_the_proxy(self):
        response = self.session.get(ORIGIN + "/redirect")
        self.assertRegex(response.text, r"^GET /echo Bearer [ab]-secret")
        self.assertEqual(len(response.history), 1)

    def test_refusals(self):
        self.assertEqual(self.session.get(ORIGIN + "/gone").status_code, 410)
        with self.assertRaises(ration.Refused):
            self.session.get(ORIGIN + "/echo", headers={"Authorization": "Bearer mine"})


class HTTPX(unittest.TestCase):
    def setUp(self):
        try:
            import httpx
        except ImportError:
            self.skipTest("httpx is not installed")
        self.httpx = httpx

    def test_it_is_sent_with_a_token(self):
        with self.httpx.Client(transport=ration.httpx_transport(caller="httpx"), follow_redirects=True) as client:
            self.assertRegex(client.get(ORIGIN + "/echo?x=1").text, r"^GET /echo\?x=1 Bearer [ab]-secret$")
            self.assertEqual(client.post(ORIGIN + "/body", content=b"hello").text, "hello")
            self.assertRegex(client.get(ORIGIN + "/redirect").text, r"^GET /echo Bearer")
            self.assertEqual(client.get(ORIGIN + "/gone").status_code, 410)
            with self.assertRaises(ration.Refused):
                client.get("https://elsewhere.example/")

    def test_many_at_once(self):
        async def crawl():
            async with self.httpx.AsyncClient(transport=ration.async_httpx_transport()) as client:
                return await asyncio.gather(*(client.get(ORIGIN + "/echo") for _ in range(20)))
        self.assertTrue(all(response.status_code == 200 for response in asyncio.run(crawl())))


class Slots(unittest.TestCase):
    def test_a_slot_is_taken_and_reported(self):
        with ration.take("api", caller="slots") as slot:
            self.assertRegex(slot.headers["Authorization"], r"^Bearer [ab]-secret$")
            self.assertFalse(slot.report(200, {"Content-Type": "text/plain"}))
        with ration.take("api", url=ORIGIN + "/limited", method="post") as slot:
            self.assertTrue(slot.report(503))
        with ration.take("api"):
            pass
        with self.assertRaises(ration.Refused):
            ration.take("no-such-budget")


if __name__ == "__main__":
    unittest.main()
