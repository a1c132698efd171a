"""Powertools for AWS Lambda (Python): plays the scenario that each line of stdin names, and prints what it saw."""
import json
import logging
import os
import platform
import sys
import threading
import time
import warnings

import boto3
from aws_lambda_powertools.shared.version import VERSION
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent, idempotent_function

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

TABLE = os.environ["PEER_TABLE"]
client = boto3.client("dynamodb")


class Context:
    def __init__(self, ms=30_000):
        self.end = time.time() + ms / 1000

    def get_remaining_time_in_millis(self):
        return max(0, int((self.end - time.time()) * 1000))


def store():
    return DynamoDBPersistenceLayer(table_name=TABLE, boto3_client=client)


def config():
    return IdempotencyConfig(
        event_key_jmespath='headers."idempotency-key"', payload_validation_jmespath="body", raise_on_no_idempotency_key=True)


def event(key):
    return {
        "version": "2.0", "routeKey": "POST /orders", "rawPath": "/orders",
        "headers": {"content-type": "application/json", "idempotency-key": key},
        "requestContext": {"http": {"method": "POST", "path": "/orders"}},
        "body": '{"amount":2000}', "isBase64Encoded": False,
    }


def answer(body, status=201):
    return {"statusCode": status, "headers": {"content-type": "application/json", "location": "/orders/1"}, "body": body}


def run(fn, key, context=None, **more):
    try:
        got = fn({**event(key), **more}, context or Context())
        return f"{got['statusCode']}, {got['body'][:30]}"
    except Exception as e:
        return type(e).__name__


def wrap(body):
    @idempotent(config=config(), persistence_store=store())
    def handler(event, context):
        return body(event)
    return handler


def late(fails):
    runs, began, finish, got = [], threading.Event(), threading.Event(), {}

    def body(e):
        runs.append(e["who"])
        if e["who"] == "the first":
            began.set()
            finish.wait()
            if fails:
                raise RuntimeError("failed late")
        return answer(f"by {e['who']}")
    key = f"late-{fails}"
    first = threading.Thread(target=lambda: got.update(first=run(wrap(body), key, Context(50), who="the first")))
    first.start()
    began.wait()
    time.sleep(0.1)  # its time, and so its lease, is over
    second = run(wrap(body), key, who="the second")
    finish.set()
    first.join()
    retry = run(wrap(body), key, who="the retry")
    return {"answers": [["the second", second], ["the first, late", got["first"]], ["a retry", retry]], "runs": len(runs)}


def nested():
    runs, shared = [], store()

    @idempotent_function(data_keyword_argument="data", config=config(), persistence_store=shared)
    def inner(data):
        runs.append("inner")
        return answer("the inner answer")

    @idempotent(config=config(), persistence_store=shared)
    def outer(event, context):
        runs.append("outer")
        inner(data=event)
        return answer("the outer answer")
    return {"answers": [
        ["the outer call", run(outer, "nested")], ["a retry of the outer", run(outer, "nested")],
        ["a retry of the inner", run(lambda e, _: inner(data=e), "nested")]], "runs": len(runs)}


def large():
    runs = []

    def body(_):
        runs.append(1)
        return answer("x" * (401 << 10))
    h = wrap(body)
    first, at_once = run(h, "large-1"), run(h, "large-1")
    runs.clear()
    run(h, "large-2", Context(50))
    time.sleep(0.1)
    return {"answers": [["first", first[:33]], ["a retry at once", at_once[:33]], ["a retry after the lease", run(h, "large-2")[:33]]], "runs": len(runs)}


def swallowed():
    runs = []

    def body(_):
        runs.append(1)
        return answer("the provider is down", 500) if len(runs) == 1 else answer("paid")
    h = wrap(body)
    return {"answers": [["first", run(h, "500")], ["a retry, the provider is up", run(h, "500")]], "runs": len(runs)}


scenarios = {"late finisher": lambda: late(False), "late failure": lambda: late(True), "nested": nested, "large": large, "500": swallowed}


def hello():
    return {"version": VERSION, "sdk": f"boto3 {boto3.__version__}", "runtime": f"Python {platform.python_version()}"}


for line in sys.stdin:
    said = json.loads(line)
    try:
        seen = {"hello": hello, **scenarios}[said["do"]]()
    except Exception as e:  # noqa: BLE001
        seen = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(seen), flush=True)
