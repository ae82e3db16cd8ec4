"""Sends requests under a fleet's quota, through a "ration proxy". One file, no dependencies: copy it.

    import ration
    ration.mount(session, "https://api.github.com")        # a requests.Session
    httpx.Client(transport=ration.httpx_transport())       # or AsyncClient and async_httpx_transport()
    ration.urlopen("https://api.github.com/user")          # neither of both

    with ration.take("github") as slot:                    # what sends its requests itself
        answer = send(slot.headers)
        slot.report(answer.status, answer.headers)

The proxy is http://127.0.0.1:8080, or the environment's RATION_PROXY. An answer of the proxy's own raises Refused: the origin's
answers, a 429 or a 503 among them, come back as they are.
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request

__all__ = ["Refused", "Slot", "async_httpx_transport", "httpx_transport", "mount", "take", "urlopen"]


class Refused(Exception):
    """The proxy has answered, and not the origin.

    Nothing was sent, unless the reason is "origin": then no response has come, and a POST may have been carried out.

    reason: "quota", "no_token", "store", "host" and so on, as in the header Ration-Reason.
    retry_after: the seconds after which it may; None: nobody knows.
    """

    def __init__(self, reason, detail, retry_after=None):
        super().__init__(detail)
        self.reason = reason
        self.retry_after = retry_after


def _proxy(proxy):
    return (proxy or os.environ.get("RATION_PROXY") or "http://127.0.0.1:8080").rstrip("/")


def _through(url, proxy):
    """The address at which the proxy sends a request to url."""
    parts = urllib.parse.urlsplit(url)
    if "." not in parts.netloc and ":" not in parts.netloc:
        raise Refused("host", "%r has no dot: it would be a path of the proxy's own" % parts.netloc)
    return "%s/%s%s%s" % (proxy, parts.netloc, parts.path or "/", "?" + parts.query if parts.query else "")


def _headers(caller, max_wait, secret):
    named = {"Ration-Caller": caller, "Ration-Max-Wait": max_wait, "Ration-Secret": secret or os.environ.get("RATION_SECRET")}
    return {name: value for name, value in named.items() if value}


def _refused(headers, text):
    try:
        detail = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = "the proxy says no more"
    after = headers.get("Retry-After")
    return Refused(headers["Ration-Reason"], detail, int(after) if after else None)


def mount(session, *origins, proxy=None, caller=None, max_wait=None, secret=None):
    """Has a requests.Session send its requests to these origins, such as "https://api.github.com", through the proxy."""
    import requests.adapters

    class Adapter(requests.adapters.HTTPAdapter):
        def send(self, request, **kwargs):
            out = request.copy()
            out.url = _through(request.url, _proxy(proxy))
            out.headers.update(_headers(caller, max_wait, secret))
            kwargs["proxies"] = {}  # of the environment, which are for others
            response = super().send(out, **kwargs)
            if "Ration-Reason" in response.headers:
                raise _refused(response.headers, response.text)
            response.request, response.url = request, request.url
            return response

    for origin in origins:
        session.mount(origin.rstrip("/") + "/", Adapter())  # no other host whose name begins alike
    return session


def _out(httpx, request, proxy, more):
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
    headers += [(name.encode(), value.encode()) for name, value in {"Host": urllib.parse.urlsplit(proxy).netloc, **more}.items()]
    return httpx.Request(request.method, _through(str(request.url), proxy), headers=headers, stream=request.stream, extensions=request.extensions)


def httpx_transport(proxy=None, caller=None, max_wait=None, secret=None, **kwargs):
    """A transport of an httpx.Client. Other arguments are those of httpx.HTTPTransport."""
    import httpx

    class Transport(httpx.HTTPTransport):
        def handle_request(self, request):
            response = super().handle_request(_out(httpx, request, _proxy(proxy), _headers(caller, max_wait, secret)))
            if "Ration-Reason" in response.headers:
                raise _refused(response.headers, response.read())
            return response

    return Transport(**kwargs)


def async_httpx_transport(proxy=None, caller=None, max_wait=None, secret=None, **kwargs):
    """A transport of an httpx.AsyncClient. Other arguments are those of httpx.AsyncHTTPTransport."""
    import httpx

    class Transport(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request):
            response = await super().handle_async_request(_out(httpx, request, _proxy(proxy), _headers(caller, max_wait, secret)))
            if "Ration-Reason" in response.headers:
                raise _refused(response.headers, await response.aread())
            return response

    return Transport(**kwargs)


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None  # urlopen does it


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Redirects())


def urlopen(url, data=None, headers=None, method=None, timeout=60, proxy=None, caller=None, max_wait=None, secret=None):
    """urllib.request.urlopen through the proxy. An answer of 400 and above raises urllib.error.HTTPError, as there."""
    for _ in range(10):
        request = urllib.request.Request(_through(url, _proxy(proxy)), data=data, method=method,
                                         headers={**(headers or {}), **_headers(caller, max_wait, secret)})
        try:
            response = _opener.open(request, timeout=timeout)
            response.url = url
            return response
        except urllib.error.HTTPError as error:
            if "Ration-Reason" in error.headers:
                raise _refused(error.headers, error.read()) from None
            if error.code not in (301, 302, 303, 307, 308) or "Location" not in error.headers:
                error.url = error.filename = url
                raise
            if error.code == 303 and method != "HEAD" or error.code in (301, 302) and data is not None:
                data, method = None, "GET"
            url = urllib.parse.urljoin(url, error.headers["Location"])
    raise urllib.error.URLError("more than 10 redirects")


class Slot:
    """A slot that has come: one request may be sent now.

    token: the ID of the token. headers: to be sent, if the proxy hands out tokens; else they are empty. waited: in seconds.
    """

    def __init__(self, answer, proxy, secret):
        self.token, self.label = answer["token"], answer.get("label", "")
        self.headers, self.url = answer.get("headers", {}), answer.get("url")
        self.waited = answer["wait_ms"] / 1000
        self._grant, self._proxy, self._secret = answer["grant"], proxy, secret

    def report(self, status, headers=None, units=None):
        """Tells what the origin has said, and the units that were used. Returns whether to take another slot and send again."""
        grant, self._grant = self._grant, None
        if grant is None:
            raise ValueError("the slot was reported already")
        return _ask(self._proxy, "/v1/report", {"grant": grant, "status": status, "headers": dict(headers or {}), "units": units or {}}, self._secret)["retry"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._grant is not None:
            try:
                self.report(0)  # nothing is known of the response
            except Refused:
                pass  # it has ended by itself


def take(budget, url=None, method=None, cost=None, units=None, scopes=None, reserve=None, max_wait=None, caller=None, proxy=None, secret=None):
    """Waits for a slot of a budget, and returns it."""
    asked = {"budget": budget, "url": url, "method": method, "cost": cost, "units": units, "scopes": scopes, "reserve": reserve,
             "max_wait": max_wait, "caller": caller}
    asked = {name: value for name, value in asked.items() if value is not None}
    return Slot(_ask(_proxy(proxy), "/v1/take", asked, secret), _proxy(proxy), secret)


def _ask(proxy, path, asked, secret):
    request = urllib.request.Request(proxy + path, json.dumps(asked).encode(), {"Content-Type": "application/json", **_headers(None, None, secret)})
    try:
        with _opener.open(request, timeout=120) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if "Ration-Reason" in error.headers:
            raise _refused(error.headers, error.read()) from None
        raise
