"""Deploys both templates and examples/checkout to MiniStack and calls them; run by smoke-deploy.sh.

The commands are those that README.md prints under "Deploy", typed as they stand there. The environment leads the SAM CLI to
MiniStack instead of AWS, and `sam` is a file in the PATH that adds three parameters (see write_sam). MiniStack runs the
functions' bootstraps as processes, feeds them from streams and queues, and refuses what their roles don't allow (ministack_roles.py).
In the end each statement of their roles is taken away in turn, and a call must be refused; UNSEEN lists those that can't be seen.

Two things are done for it. It makes an HTTP API, but doesn't read the API's OpenAPI document, so the routes and authorizers in
the deployed template are entered by import_routes. And it takes a parameter's number for a text, so the concurrency of an event
source mapping is entered again as a number.
"""

import contextlib
import io
import json
import os
import pathlib
import platform
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile

import boto3

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
TRIP = {"origin_lat": 37.77, "origin_lon": -122.42, "target_lat": 37.79, "target_lon": -122.39}
JANE = "jane@example.com"
ASSISTANT, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2
CHECKOUT = f"make build && sam deploy --template-file examples/checkout/template.yaml --stack-name checkout --parameter-overrides 'Tokens=\"assistant:{ASSISTANT} other:{OTHER}\"'"
METRIC_MATH = """
  Last: # when all the rest is there
    Type: AWS::CloudWatch::Alarm
    DependsOn: [Samekey, Rides]
    Properties: {Metrics: [{Id: all, Expression: SUM(METRICS())}], EvaluationPeriods: 1, Threshold: 0, ComparisonOperator: GreaterThanThreshold}
"""


def main():
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        env = start_ministack(stack, work)
        world = start_world(stack, work)
        try:
            hello, rides = readme("Deploy")
            check_failed_deploy(rides, work, env, world)
            deploy(hello, work, env, f"Architecture={architecture()}")
            places = {"samekey-hello": Deployed("samekey-hello", env)}
            check_hello(places["samekey-hello"])
            deploy(rides, work, {**env, "WORLD_URL": world}, f"Architecture={architecture()}")
            places["samekey"] = Deployed("samekey", env)
            check_rides(places["samekey"], world)
            check_doctor(work, env)
            deploy(CHECKOUT, work, env, f"Architecture={architecture()}")
            places["checkout"] = Deployed("checkout", env, "HttpApi")
            check_checkout(places["checkout"], work)
            check_standalone(work, env)
            check_permissions({**places, "standalone": Bare("standalone", env)}, env)
            if os.environ.get("SMOKE_ALL"):  # a minute and more: make prove sets it
                (work / "prove").mkdir()
                check_prove(work / "prove", start_ministack(stack, work / "prove", auth=False))
        except BaseException:
            print("MiniStack's log ends with:", *(work / "ministack.log").read_text().splitlines()[-60:], sep="\n", file=sys.stderr)
            raise


# ---- What is deployed ------------------------------------------------------------------------------------------------


def check_hello(api):
    """One greeting per key, and its record."""
    body, token = {"name": "Jane"}, {"Authorization": "Bearer " + JANE}
    expect("no token", api.post("/hello", body, key="hello-1")[0], 401)
    status, headers, first = api.post("/hello", body, key="hello-1", headers=token)
    expect("a new key", (status, headers.get("Idempotency-Key"), headers.get("Idempotent-Replayed")), (201, "hello-1", None))
    status, headers, again = api.post("/hello", body, key="hello-1", headers=token)
    expect("the same again", (status, headers.get("Idempotent-Replayed"), again), (201, "true", first))
    expect("another request", api.post("/hello", {"name": "Omar"}, key="hello-1", headers=token)[0], 422)
    expect("no key", api.post("/hello", body, headers=token)[0], 400)
    (record,) = api.items("Table")
    expect("the record", (record["v"], record["st"], record.get("keep")), ({"N": "1"}, {"S": "done"}, None))
    said(f"{api.name}: answer, replay, mismatch and record are as the README says")


def check_rides(api, world):
    """One booking, through every function of the stack."""
    token = {"Authorization": "Bearer " + JANE}
    expect("no token", api.post("/rides", TRIP, key="rides-1")[0], 401)
    status, headers, first = api.post("/rides", TRIP, key="rides-1", headers=token)
    expect("a new key", (status, headers.get("Idempotent-Replayed")), (201, None))
    status, headers, again = api.post("/rides", TRIP, key="rides-1", headers=token)
    expect("the same again", (status, headers.get("Idempotent-Replayed"), again), (201, "true", first))
    expect("another request", api.post("/rides", {**TRIP, "target_lat": 1}, key="rides-1", headers=token)[0], 422)
    ride = json.loads(first)
    shown = json.loads(api.send("GET", f"/rides/{ride['id']}", headers=token)[2])
    expect("the ride", shown, {name: ride[name] for name in ride if name != "message"})
    (charge,) = json.loads(call(world + "/v1/charges")[2])
    expect("the charge", ride["charge_id"], charge["id"])
    # Stream → Worker → queue → Receipts.
    wait(lambda: len(json.loads(call(world + "/v1/mails")[2])) == 1, "the receipt to be mailed")
    wait(lambda: settled(api.items("Samekey.Table")), "the records to be settled")
    expect("rides, audit records", (len(api.items("RidesTable")), len(api.items("AuditTable"))), (1, 1))
    expect("the sweep's error", api.invoke("Samekey.Worker", {"source": "aws.scheduler"}).get("FunctionError"), None)
    # An abandoned request: Worker → Tickets → Worker → Rides.
    left = put_open(client("dynamodb", api.env), api.ids["Samekey.Table"], "ABANDONED", api.ids["Rides"])
    api.invoke("Samekey.Worker", {"source": "aws.scheduler", "task": "sweep"})
    expect("the count's error", api.invoke("Samekey.Worker", {"source": "aws.scheduler", "task": "count"}).get("FunctionError"), None)
    wait(lambda: "lambda:InvokeFunction" in (pathlib.Path(api.env["DECISIONS"])).read_text(), "the worker to complete an abandoned request")
    client("dynamodb", api.env).delete_item(TableName=api.ids["Samekey.Table"], Key={"pk": left})
    expect("charges in the end", len(json.loads(call(world + "/v1/charges")[2])), 1)
    said(f"{api.name}: answer, replay, records, charge and mail are as the README says")


def check_checkout(api, work):
    """A session that is completed, through every function of the stack, and samekey check."""
    token, items = {"Authorization": "Bearer " + ASSISTANT}, {"items": [{"id": "tea", "quantity": 1}, {"id": "cup", "quantity": 2}]}
    expect("no token", api.post("/checkout_sessions", items, key="create-1")[0], 401)
    status, _, session = api.post("/checkout_sessions", items, key="create-1", headers=token)
    expect("a session", status, 201)
    path, paid = f"/checkout_sessions/{json.loads(session)['id']}", {"payment_data": {"token": "tok_1", "provider": "stripe"}}
    status, _, first = api.post(path + "/complete", paid, key="complete-1", headers=token)
    expect("its completion", (status, json.loads(first)["status"]), (200, "completed"))
    status, headers, again = api.post(path + "/complete", paid, key="complete-1", headers=token)
    expect("the same again", (status, headers.get("Idempotent-Replayed"), again), (200, "true", first))
    expect("the session", json.loads(api.send("GET", path, headers=token)[2]), json.loads(first))
    # Stream → Worker → queue → Webhook.
    wait(lambda: len(done := api.items("Samekey.Table")) == 3 and all(r["st"] == {"S": "done"} and "keep" not in r for r in done), "the records to be settled")
    program = [work / "samekey", "check", "--contract", "acp", "--yes", "--header", "Host=" + api.host, "--header-env", "Authorization=TOKEN",
               "--other-caller-env", "Authorization=OTHER", "--body", json.dumps(items), api.env["AWS_ENDPOINT_URL"] + "/checkout_sessions"]
    report = subprocess.run(program, env={**api.env, "TOKEN": "Bearer " + ASSISTANT, "OTHER": "Bearer " + OTHER}, stdout=subprocess.PIPE, text=True)
    expect(f"the exit code of samekey check: {report.stdout}", report.returncode, 0)
    said(f"{api.name}: completion, replay, webhook and samekey check --contract acp are as the page says")


def settled(records):
    """The ride's record and the receipt's: done, nothing to deliver."""
    return len(records) == 2 and all(r["st"] == {"S": "done"} and "keep" not in r for r in records)


def check_failed_deploy(command, work, env, world):
    """A first deploy that fails leaves no table and no bucket behind. This one fails because MiniStack has no metric math."""
    broken = ROOT / "dist" / "broken.yaml"
    text = (ROOT / "template.yaml").read_text().replace("dist/", "").replace("Location: ", "Location: ../")
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(text.replace("\nOutputs:\n", METRIC_MATH + "\nOutputs:\n"))
    deploy(command, work, {**env, "WORLD_URL": world}, f"Architecture={architecture()} --template-file {broken} --config-file {ROOT}/samconfig.toml", fails="metric math")
    tables, buckets = client("dynamodb", env).list_tables()["TableNames"], client("s3", env).list_buckets()["Buckets"]
    left = tables + [b["Name"] for b in buckets if not b["Name"].startswith("aws-sam-cli-managed-default")]
    expect("what a failed first deploy leaves", left, [])
    client("cloudformation", env).delete_stack(StackName="samekey")
    said("a failed first deploy leaves no table and no bucket")


def check_standalone(work, env):
    """The stack for other tools: its worker comes from a bucket, sweeps, and starts executions at once and by a schedule."""
    template, bucket, code = work / "standalone.yaml", "code", io.BytesIO()
    subprocess.run(["go", "run", "-C", "cmd/samekey", ".", "stack", "--standalone", template], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(code, "w") as z:
        z.write(ROOT / "dist/samekey-worker/bootstrap", "bootstrap")
    client("s3", env).create_bucket(Bucket=bucket)
    client("s3", env).put_object(Bucket=bucket, Key="worker.zip", Body=code.getvalue())
    client("iam", env).create_role(RoleName="ship", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}]}))
    states = client("stepfunctions", env)
    machine = states.create_state_machine(
        name="ship", roleArn="arn:aws:iam::000000000000:role/ship",
        definition=json.dumps({"StartAt": "Ship", "States": {"Ship": {"Type": "Pass", "End": True}}}),
    )["stateMachineArn"]
    values = {"CodeBucket": bucket, "CodeKey": "worker.zip", "Architecture": architecture(), "Sinks": "ship=states:" + machine, "SinkArns": machine}
    formation = client("cloudformation", env)
    formation.create_stack(
        StackName="standalone", TemplateBody=template.read_text(), Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in values.items()],
    )
    formation.get_waiter("stack_create_complete").wait(StackName="standalone", WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    number_concurrency(env)
    ids = resources("standalone", env)
    answer = client("lambda", env).invoke(FunctionName=ids["Worker"], Payload=json.dumps({"source": "aws.scheduler"}))
    expect("the sweep's error", answer.get("FunctionError"), None)
    said("standalone: the worker of samekey stack --standalone sweeps")
    check_later(ids, machine, env)


def check_later(ids, machine, env):
    """A job starts an execution; one for in an hour gets a schedule, whose time the test has come, and then starts one too."""
    table, states, scheduler = client("dynamodb", env), client("stepfunctions", env), client("scheduler", env)

    def started():
        return sorted(e["name"] for e in states.list_executions(stateMachineArn=machine)["executions"])

    def later():
        return scheduler.list_schedules(NamePrefix="samekey-ORDER-")["Schedules"]

    pk = put_jobs(table, ids["Table"], "ORDER")
    wait(lambda: started() == ["ORDER_0_0"] and len(later()) == 1, "an execution and a schedule")
    made = scheduler.get_schedule(Name=later()[0]["Name"])
    expect("the schedule's target", made["Target"]["Arn"], client("sqs", env).get_queue_attributes(
        QueueUrl=ids["Tickets"], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])
    # The time comes: in the record, in the ticket, and in the schedule.
    table.update_item(TableName=ids["Table"], Key={"pk": pk}, UpdateExpression="SET jobs.#j.#at = :now",
                      ExpressionAttributeNames={"#j": "0.1", "#at": "at"}, ExpressionAttributeValues={":now": ms(0)})
    ticket = {**json.loads(made["Target"]["Input"]), "due_ms": int(ms(0)["N"])}
    scheduler.update_schedule(Name=made["Name"], ScheduleExpression=time.strftime("at(%Y-%m-%dT%H:%M:%S)", time.gmtime()), ActionAfterCompletion="DELETE",
                              FlexibleTimeWindow={"Mode": "OFF"}, Target={**made["Target"], "Input": json.dumps(ticket)})
    wait(lambda: started() == ["ORDER_0_0", "ORDER_0_1"] and not later(), "the later job's execution")
    wait(lambda: "keep" not in table.get_item(TableName=ids["Table"], Key={"pk": pk})["Item"], "the record to be let go")
    said("standalone: a job starts an execution, and a later one by its schedule")


def ms(seconds):
    """The time in so many seconds, as an item has it."""
    return {"N": str(int((time.time() + seconds) * 1000))}


def put_jobs(table, name, operation, *more):
    """Puts a finished record with jobs, at once, in an hour, and in more seconds, and returns its key."""
    pk, hour = {"S": "v1#orders#" + operation}, 3600
    jobs = [{"k": {"S": "ship"}, "a": {"S": '"at once"'}}, *({"k": {"S": "ship"}, "a": {"S": '"later"'}, "at": ms(after)} for after in (hour, *more))]
    table.put_item(TableName=name, Item={
        "pk": pk, "v": {"N": "1"}, "st": {"S": "done"}, "owner": {"S": "o"}, "ver": {"N": "2"}, "fp": {"S": "f"}, "id": {"S": operation},
        "created_ms": ms(-1), "run_ms": ms(0), "keep": {"S": "jobs"}, "until_s": {"N": str(int(time.time()) + 2 * hour)},
        "resp": {"M": {"s": {"N": "201"}}}, "phases": {"L": [{"L": [{"S": "ordered"}]}]},
        "jobs": {"M": {f"0.{i}": {"M": job} for i, job in enumerate(jobs)}},
    })
    return pk


def put_open(table, name, operation, function):
    """Puts the record of a request that a function left a day ago, and returns its key."""
    pk, day = {"S": "v1#rides#" + operation}, 24 * 3600
    table.put_item(TableName=name, Item={
        "pk": pk, "v": {"N": "1"}, "st": {"S": "open"}, "owner": {"S": "o"}, "ver": {"N": "1"}, "fp": {"S": "f"}, "id": {"S": operation}, "keep": {"S": "open"},
        "lease_ms": ms(-day), "created_ms": ms(-day), "run_ms": ms(-day), "fn": {"S": function}, "route": {"S": "POST /rides"},
        "req": {"M": {"m": {"S": "POST"}, "p": {"S": "/rides"}}}, "jobs": {"M": {}},
    })
    return pk


def check_doctor(work, env):
    """samekey doctor finds nothing wrong with the deployed stack, and finds mistakes that are made in it."""
    program = work / "samekey"
    subprocess.run(["go", "build", "-C", "cmd/samekey", "-o", program, "."], cwd=ROOT, check=True)

    def doctor():
        done = subprocess.run([program, "doctor", "--stack", "samekey", "--json"], cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"samekey doctor: {done.stderr}")
        report = json.loads(done.stdout)
        return done.returncode, sorted(f["check"] for f in report["findings"] if f["severity"] != "note"), report

    # MiniStack's CloudFormation leaves out TTL and recovery, and has the protection as a text that no client reads.
    table = resources("samekey", env)["Samekey.Table"]
    dynamodb = client("dynamodb", env)
    for protected in (False, True):
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=protected)
    dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "exp_s"})
    dynamodb.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
    code, found, report = doctor()
    expect("mistakes in the deployed stack", (code, found), (0, []))
    expect("checks of it that hold", len(report["good"]) > 30, True)
    said(f"samekey doctor: {len(report['good'])} checks hold; not checked: {', '.join(u['check'] for u in report['not_checked'])}")
    ids = resources("samekey", env)
    client("lambda", env).update_function_configuration(FunctionName=ids["Samekey.Worker"], Timeout=10)
    queue = client("sqs", env)
    queue.set_queue_attributes(QueueUrl=ids["ReceiptsQueue"], Attributes={"VisibilityTimeout": "30"})
    queue.set_queue_attributes(QueueUrl=ids["Samekey.Tickets"], Attributes={"MessageRetentionPeriod": "600"})
    code, found, _ = doctor()
    expect("planted mistakes", (code, found), (3, ["queue-visibility", "tickets-wait", "worker-timeout"]))
    said("samekey doctor: finds each of three mistakes in it")


def check_prove(work, env):
    """proof/prove leaves nothing, wherever it is ended, and --clean finds a run that was killed."""
    env, program = {**env, "PATH": os.environ["PATH"]}, work / "prove"
    subprocess.run(["go", "build", "-C", ROOT / "proof", "-o", program, "./prove"], check=True)
    before = everything(env)

    def start():
        return subprocess.Popen([program, "--yes", "--source", ROOT], cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    begun = time.monotonic()
    whole = start()
    out, _ = whole.communicate(timeout=600)
    lasts = min(time.monotonic() - begun, 40)
    if whole.returncode != 0:
        sys.exit(f"prove: {out}")
    expect("what a whole run leaves", everything(env), before)
    met = set()
    for i in range(20):
        run = start()
        if i % 2:  # at any moment; the others while the stack is made
            last = (i + random.random()) * lasts / 20
        else:
            wait(lambda: everything(env) != before or run.poll() is not None, "the run to make something")
            last = random.random()
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(last)
        there = everything(env)
        met.add(len(there) - len(before))
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=300)
        left = everything(env)
        if left != before:
            sys.exit(f"ended after {last:.1f} s, prove left {left - before}:\n{out}")
    expect("runs were ended with and without a stack", (min(met) == 0, max(met) > 10), (True, True))
    run = start()
    wait(lambda: len(everything(env)) > len(before) + 10, "the stack to be there")
    run.kill()
    run.wait()
    (name,) = {x.split()[1] for x in everything(env) - before if x.startswith("stack samekey-prove-") and "-Samekey" not in x}
    time.sleep(5)  # what MiniStack was making is there
    done = subprocess.run([program, "--clean", "--yes", name], cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect("prove --clean: " + done.stdout, (done.returncode, everything(env) - before), (0, set()))
    said("proof/prove: 20 runs that were ended left nothing, and --clean removed one that was killed")


# ---- Permissions -----------------------------------------------------------------------------------------------------

# Statements whose absence nothing notices here, and why.
POLLER, RUNTIME = "Lambda makes these calls for the function; MiniStack makes them as itself", "Lambda and X-Ray; MiniStack makes no such call"
UNSEEN = {
    "Logs": RUNTIME, "Traces": RUNTIME, "Stream": POLLER, "GivenUp": POLLER,
    "Keys": "KMS; nothing is sealed here", "Quotas": "needed beside dynamodb:LeadingKeys alone, which MiniStack doesn't set",
    "LaterRole": "iam:PassRole, which MiniStack doesn't ask for",
    "Sweep": "EventBridge Scheduler's role, which MiniStack doesn't assume", "Ticket": "as Sweep",
}


def check_permissions(places, env):
    """No call of a role was refused, and without any of its statements one is."""
    log = pathlib.Path(env["DECISIONS"])

    def decisions(since=0):
        return [json.loads(line) for line in log.read_text().splitlines()[since:]]

    everything_asked = decisions()
    expect("calls that roles refused", [d for d in everything_asked if not d["allowed"]], [])
    said(f"roles: {len(everything_asked)} calls of functions were allowed, none was refused")
    unseen, tried = set(), set()
    for stack, place in places.items():
        for function, role in roles(place, env):
            for policy in policies(role, env):
                for i, statement in enumerate(policy.document["Statement"]):
                    name = statement.get("Sid") or ", ".join(listed(statement["Action"]))
                    alone = any(d["allowed"] and d["role"].split("/")[1] == role and [key(s) for s in d["by"]] == [key(statement)] for d in everything_asked)
                    if not alone:
                        unseen.add((stack, function, name))
                        continue
                    policy.put([s for j, s in enumerate(policy.document["Statement"]) if j != i])
                    before = len(log.read_text().splitlines())
                    DRIVES[stack](place, f"without-{len(tried)}")

                    def refused():
                        return sorted({d["action"] for d in decisions(before) if not d["allowed"] and d["role"].split("/")[1] == role})

                    wait(refused, f"a refusal without {stack} {function} {name}", 60)
                    policy.put(policy.document["Statement"])
                    tried.add((stack, function, name))
                    said(f"roles: without {stack} {function} {name}: {', '.join(refused())} is refused")
    # The stacks share a template, whose statements are noticed if they are in one of them.
    known = {(function.removeprefix("Samekey."), name) for _, function, name in tried}
    unseen = {(function.removeprefix("Samekey."), name) for _, function, name in unseen} - known
    for function, name in sorted(unseen):
        said(f"roles: nothing notices {function} {name}: {UNSEEN.get(name, 'NOT LISTED')}")
    expect("statements that nothing notices, and that are not listed", sorted(u for u in unseen if u[1] not in UNSEEN), [])
    said(f"roles: each of {len(tried)} statements was taken away, and a call was refused")


def drive_hello(api, key):
    api.post("/hello", {"name": "Jane"}, key=key, headers={"Authorization": "Bearer " + JANE})


def drive_rides(api, key):
    token = {"Authorization": "Bearer " + JANE}
    body = api.post("/rides", TRIP, key=key, headers=token)[2]
    with contextlib.suppress(ValueError, KeyError):
        api.send("GET", f"/rides/{json.loads(body)['id']}", headers=token)
    left = put_open(client("dynamodb", api.env), api.ids["Samekey.Table"], key, api.ids["Rides"])
    for task in ("sweep", "count"):
        api.invoke("Samekey.Worker", {"source": "aws.scheduler", "task": task})
    time.sleep(2)  # the ticket is on its way
    client("dynamodb", api.env).delete_item(TableName=api.ids["Samekey.Table"], Key={"pk": left})


def drive_checkout(api, key):
    token = {"Authorization": "Bearer " + ASSISTANT}
    body = api.post("/checkout_sessions", {"items": [{"id": "tea", "quantity": 1}]}, key=key, headers=token)[2]
    with contextlib.suppress(ValueError, KeyError):
        api.post(f"/checkout_sessions/{json.loads(body)['id']}/complete", {"payment_data": {"token": "tok_1", "provider": "stripe"}}, key=key + "c", headers=token)
    for task in ("sweep", "count"):
        api.invoke("Samekey.Worker", {"source": "aws.scheduler", "task": task})


def drive_standalone(place, key):
    put_jobs(client("dynamodb", place.env), place.ids["Table"], key, 300)  # minutes are for the queue, hours for a schedule
    for task in ("sweep", "count"):
        place.invoke("Worker", {"source": "aws.scheduler", "task": task})


DRIVES = {"samekey-hello": drive_hello, "samekey": drive_rides, "checkout": drive_checkout, "standalone": drive_standalone}


def roles(place, env):
    """The roles of a stack's functions, and those that its schedules have."""
    functions, found = client("lambda", env), []
    for name, id_ in sorted(place.ids.items()):
        with contextlib.suppress(functions.exceptions.ResourceNotFoundException, functions.exceptions.InvalidParameterValueException):
            if place.types[name] == "AWS::Lambda::Function":
                found.append((name, functions.get_function_configuration(FunctionName=id_)["Role"].rpartition("/")[2]))
        if place.types[name] == "AWS::IAM::Role" and name.rpartition(".")[2] in ("ScheduleRole", "LaterRole"):
            found.append((name, id_))
    return found


class policies:
    """The policies of a role that are not AWS's."""

    def __init__(self, role, env):
        self.role, self.iam = role, client("iam", env)

    def __iter__(self):
        for name in self.iam.list_role_policies(RoleName=self.role)["PolicyNames"]:
            yield Policy(self.iam.get_role_policy(RoleName=self.role, PolicyName=name)["PolicyDocument"],
                         lambda text, name=name: self.iam.put_role_policy(RoleName=self.role, PolicyName=name, PolicyDocument=text))
        for policy in self.iam.list_attached_role_policies(RoleName=self.role)["AttachedPolicies"]:
            arn = policy["PolicyArn"]
            if ":aws:policy/" in arn:
                continue
            version = self.iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            yield Policy(self.iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"], lambda text, arn=arn: self.replace(arn, text))

    def replace(self, arn, text):
        """A policy has five versions at most."""
        for version in self.iam.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                self.iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
        self.iam.create_policy_version(PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)


class Policy:
    def __init__(self, document, write):
        self.document, self.write = json.loads(document) if isinstance(document, str) else document, write

    def put(self, statements):
        none = [{"Effect": "Deny", "Action": "none:None", "Resource": "*"}]  # a policy has one at least
        self.write(json.dumps({"Version": "2012-10-17", "Statement": statements or none}))


def key(statement):
    return statement.get("Sid") or "", tuple(listed(statement["Action"])), tuple(listed(statement["Resource"]))


def listed(value):
    return value if isinstance(value, list) else [value]


def everything(env):
    """What is there, by names: stacks, buckets, tables, functions, queues, mappings, roles, APIs, log groups, alarms."""
    there = set()
    for service, kind, key, what, page in (
        ("cloudformation", "stack", "StackName", "Stacks", "describe_stacks"), ("s3", "bucket", "Name", "Buckets", "list_buckets"),
        ("lambda", "function", "FunctionName", "Functions", "list_functions"), ("lambda", "mapping", "UUID", "EventSourceMappings", "list_event_source_mappings"),
        ("iam", "role", "RoleName", "Roles", "list_roles"), ("apigatewayv2", "api", "ApiId", "Items", "get_apis"),
        ("logs", "group", "logGroupName", "logGroups", "describe_log_groups"), ("cloudwatch", "alarm", "AlarmName", "MetricAlarms", "describe_alarms"),
        ("scheduler", "schedule", "Name", "Schedules", "list_schedules"),
    ):
        for x in getattr(client(service, env), page)()[what]:
            if x.get("StackStatus") != "DELETE_COMPLETE":
                there.add(f"{kind} {x[key]}")
    there |= {f"table {x}" for x in client("dynamodb", env).list_tables()["TableNames"]}
    return there | {f"queue {x}" for x in client("sqs", env).list_queues().get("QueueUrls", [])}


class Bare:
    """A stack that is deployed."""

    def __init__(self, name, env):
        self.name, self.env, self.types = name, env, {}
        self.ids = resources(name, env, types=self.types)

    def items(self, table):
        return client("dynamodb", self.env).scan(TableName=self.ids[table])["Items"]

    def invoke(self, function, event):
        return client("lambda", self.env).invoke(FunctionName=self.ids[function], Payload=json.dumps(event))


class Deployed(Bare):
    """A stack that is deployed, with the routes of its API."""

    def __init__(self, name, env, api="Api"):
        super().__init__(name, env)
        self.host = import_routes(name, self.ids, env, api)
        number_concurrency(env)

    def post(self, path, body, key=None, headers=None):
        more = {"Idempotency-Key": key} if key else {}
        return self.send("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {}), **more})

    def send(self, method, path, body=None, headers=None):
        return call(self.env["AWS_ENDPOINT_URL"] + path, method, body, {"Host": self.host, **(headers or {})})


def resources(stack, env, prefix="", types=None):
    """The physical ids of a stack's resources and, as Stack.Resource, of those of nested stacks. types gets their types."""
    ids = {}
    for r in client("cloudformation", env).describe_stack_resources(StackName=stack)["StackResources"]:
        name = prefix + r["LogicalResourceId"]
        ids[name] = r["PhysicalResourceId"]
        if types is not None:
            types[name] = r["ResourceType"]
        if r["ResourceType"] == "AWS::CloudFormation::Stack":
            ids |= resources(ids[name], env, name + ".", types)
    return ids


def number_concurrency(env):
    """Enters the concurrency of each event source mapping as a number."""
    functions = client("lambda", env)
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        if most := mapping.get("ScalingConfig", {}).get("MaximumConcurrency"):
            functions.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(most)})


def import_routes(stack, ids, env, name="Api"):
    """Enters the routes of the deployed template's OpenAPI document, and returns the API's host."""
    template = client("cloudformation", env).get_template(StackName=stack, TemplateStage="Processed")["TemplateBody"]
    if isinstance(template, str):
        template = json.loads(template)
    document = template["Resources"][name]["Properties"]["Body"]
    api, gateway = ids[name], client("apigatewayv2", env)
    arn = client("lambda", env).get_function

    def uri(value):
        """The function that {"Fn::Sub": …} names, as the gateway wants to have it."""
        (name,) = re.findall(r"(?:\$\{|GetAtt\W+)(\w+)(?:\.|\W+)Arn\b", json.dumps(value))
        function = arn(FunctionName=ids[name])["Configuration"]["FunctionArn"]
        return f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{function}/invocations"

    authorizers = {}
    for name, scheme in document.get("components", {}).get("securitySchemes", {}).items():
        a = scheme["x-amazon-apigateway-authorizer"]
        authorizers[name] = gateway.create_authorizer(
            ApiId=api, Name=name, AuthorizerType=a["type"].upper(), AuthorizerUri=uri(a["authorizerUri"]),
            IdentitySource=a["identitySource"], AuthorizerResultTtlInSeconds=a["authorizerResultTtlInSeconds"],
            AuthorizerPayloadFormatVersion=a["authorizerPayloadFormatVersion"], EnableSimpleResponses=a["enableSimpleResponses"],
        )["AuthorizerId"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            i = operation["x-amazon-apigateway-integration"]
            integration = gateway.create_integration(
                ApiId=api, IntegrationType=i["type"].upper(), IntegrationMethod=i["httpMethod"],
                IntegrationUri=uri(i["uri"]), PayloadFormatVersion=i["payloadFormatVersion"],
            )["IntegrationId"]
            auth = {"AuthorizationType": "CUSTOM", "AuthorizerId": authorizers[name]} if (name := authorizer(operation)) else {}
            gateway.create_route(ApiId=api, RouteKey=f"{method.upper()} {path}", Target="integrations/" + integration, **auth)
    return f"{api}.execute-api.localhost"


def authorizer(operation):
    return next((name for scheme in operation.get("security", []) for name in scheme), None)


# ---- Commands --------------------------------------------------------------------------------------------------------


def readme(section):
    out = subprocess.run([ROOT / "internal/tools/readme.sh", section], check=True, stdout=subprocess.PIPE, text=True).stdout
    return out.splitlines()


def deploy(command, work, env, parameters, fails=None, folder=ROOT):
    """Runs a command of the README, and answers yes when it asks. fails is what a command that has to fail says."""
    bin_ = work / "bin"
    write_sam(bin_, parameters)
    env = {**env, "PATH": f"{bin_}:{env['PATH']}"}
    said("$ " + command)
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, input="y\n", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    as_wanted = done.returncode == 0 if fails is None else done.returncode != 0 and fails in done.stdout
    if not as_wanted:
        sys.exit(f"{done.stdout}\nexit status {done.returncode}" + (f", wanted a failure for {fails}" if fails else ""))


def write_sam(folder, parameters):
    """Makes `sam`: the SAM CLI of .venv, with more values for --parameter-overrides, which takes all words up to the next option."""
    folder.mkdir(exist_ok=True)
    sam = folder / "sam"
    sam.write_text(
        "#!/usr/bin/env bash\n"
        'case " $* " in *" --parameter-overrides "*) ;; *) set -- "$@" --parameter-overrides ;; esac\n'
        f'exec "{VENV}/lint/bin/python" "{VENV}/lint/bin/sam" "$@" {parameters}\n'
    )
    sam.chmod(0o755)


def architecture():
    return "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"


def environment(port):
    """What leads the AWS clients to MiniStack, and make to this machine's architecture."""
    return {
        **{name: os.environ[name] for name in os.environ if not name.startswith(("AWS_", "SAM_", "MAKE", "MFLAGS"))},
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "1", "ARCH": architecture(),
    }


def ministack_environment(env, port, folder):
    # Without the addresses it would listen to the network. The functions get AWS_ENDPOINT_URL from it. It leaves files behind.
    return {
        **env, "TMPDIR": str(folder), "HOME": str(folder), "GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "MINISTACK_HOST": "localhost",
        "IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0", "LAMBDA_EXECUTOR": "local", "MINISTACK_DECISIONS": str(folder / "decisions"),
    }


def start_ministack(stack, work, env=None, auth=True):
    """Starts MiniStack, whose log is in the folder, and returns the environment, with more of env, that leads there."""
    port = free_port()
    env = {**(env or {}), **environment(port)}
    log = open(work / "ministack.log", "w+")
    stack.callback(log.close)
    permissions = {"AUTH": "true"} if auth else {}
    (work / "decisions").touch()
    run_along(stack, [sys.executable, ROOT / "internal/tools/ministack_roles.py"], {**ministack_environment(env, port, work), **permissions}, work, log)
    env["DECISIONS"] = str(work / "decisions")
    wait(lambda: call(env["AWS_ENDPOINT_URL"] + "/_ministack/health")[0] == 200, "MiniStack to start")
    return env


def start_world(stack, work):
    """Starts Rocket Rides' payment provider and mail service, and returns their address."""
    world = work / "world"
    subprocess.run(["go", "build", "-o", world, "./examples/rides/cmd/world"], cwd=ROOT, check=True)
    process = run_along(stack, [world], {**os.environ, "LOCAL_WORLD_PORT": "0"}, work, subprocess.PIPE)
    return process.stdout.readline().decode().strip()


# ---- Small things ----------------------------------------------------------------------------------------------------


def run_along(stack, command, env, folder, output):
    process = subprocess.Popen(command, env=env, cwd=folder, stdout=output, stderr=subprocess.STDOUT)

    def end():
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)
    return process


def client(service, env):
    return boto3.client(service, region_name=env["AWS_REGION"], endpoint_url=env["AWS_ENDPOINT_URL"],
                        aws_access_key_id="test", aws_secret_access_key="test")


def call(url, method="GET", body=None, headers=None):
    """Returns status, headers and body; 0 if nobody answers."""
    request = urllib.request.Request(url, data=body, headers=headers or {}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers, answer.read()
    except urllib.error.URLError:
        return 0, {}, b""


def wait(done, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            sys.exit(f"waited {seconds} s for {what}")
        time.sleep(0.1)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def expect(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, want {want!r}")


def said(line):
    print("smoke-deploy: " + line, flush=True)


if __name__ == "__main__":
    main()
