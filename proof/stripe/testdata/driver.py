"""Does by Stripe's official client for Python what each line of stdin says, and prints what its user sees of it."""

import json
import sys
import threading

import stripe

stripe.enable_telemetry = False
lock = threading.Lock()


def call(c):
    client = stripe.StripeClient("sk_test_" + c["account"], base_addresses={"api": c["url"]}, max_network_retries=c["retries"])
    params = {"amount": c["amount"], "currency": "usd", "description": c["play"]}
    options = {"idempotency_key": c["key"]} if c["key"] else {}
    if c["call"] == "delete":
        if c["v2"]:
            r = client.raw_request("delete", "/v2/core/customers/cus_1", **options)
            return r.data["id"], r.headers
        got = client.v1.customers.delete("cus_1", options=options)
    elif c["v2"]:
        r = client.raw_request("post", "/v2/payment_intents", **params, **options)
        return r.data["id"], r.headers
    else:
        got = client.v1.payment_intents.create(params, options)
    return got.id, got.last_response.headers


def run(c):
    seen = {"n": c["n"]}
    try:
        seen["id"], headers = call(c)
    except stripe.StripeError as e:
        headers = e.headers or {}
        seen.update(error=type(e).__name__, status=e.http_status or 0, code=(e.error and e.error.code) or "", request=e.request_id or "")
    seen["headers"] = {name.lower(): value for name, value in headers.items()}
    with lock:
        print(json.dumps(seen), flush=True)


for line in sys.stdin:
    threading.Thread(target=run, args=(json.loads(line),)).start()
