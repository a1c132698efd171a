"""MiniStack with permissions; smoke_deploy.py starts it.

With AUTH=true MiniStack authorizes each call of a function by the function's role. Two faults of version 1.5.33 are worked
around: it has dynamodb:EnclosingOperation as a list, which no StringEquals matches, and it asks for the batch calls of SQS as
actions of their own, while AWS asks for the single call's action. Each decision about a role goes to the file that
MINISTACK_DECISIONS names, as a line of JSON with the statements that allow the call.
"""

import contextvars
import json
import os

import ministack.app
from ministack.core import iam_evaluator

BATCHES = {f"sqs:{call}Batch": f"sqs:{call}" for call in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")}
enforce, evaluate = iam_evaluator.enforce, iam_evaluator.evaluate


calls = contextvars.ContextVar("calls")


def authorize(access_key_id, iam_action, service, region, resource_arn="*", service_context=None):
    enclosing = (service_context or {}).get("dynamodb:EnclosingOperation")
    if isinstance(enclosing, list) and len(enclosing) == 1:
        service_context = {**service_context, "dynamodb:EnclosingOperation": enclosing[0]}
    asked = []
    token = calls.set(asked)
    denied = enforce(access_key_id, BATCHES.get(iam_action, iam_action), service, region, resource_arn, service_context)
    calls.reset(token)
    if asked:  # not root
        with open(os.environ["MINISTACK_DECISIONS"], "a") as log:
            log.write(json.dumps({**asked[0], "allowed": denied is None}) + "\n")
    return denied


def decide(ctx, policies, *limits):
    """The role's policies are evaluated first, the resource's after them."""
    allow = [s for statements in policies for s in statements if iam_evaluator._first_match(ctx, [s], "Allow")]
    calls.get([]).append({"role": ctx.principal_arn, "action": ctx.action, "resource": ctx.resource_arn,
                          "by": [{"Sid": s.sid, "Action": s.actions, "Resource": s.resources} for s in allow]})
    return evaluate(ctx, policies, *limits)


iam_evaluator.enforce, iam_evaluator.evaluate = authorize, decide
ministack.app.main()
