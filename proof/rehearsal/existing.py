"""An existing chi service made safe; played by rehearse.py.

testdata/orders is the service as its owner has it behind API Gateway: six routes, a main and a template of his own. It is
deployed to MiniStack, where a POST that comes twice has two effects. Then testdata/safe.diff is applied, whose lines have a
limit, and the commands of docs/operate/deploying.md are typed as they stand there. After that a POST that comes twice has one
effect.
"""

import json
import os
import pathlib
import shutil
import subprocess

import smoke_deploy as smoke

ROOT = smoke.ROOT
DATA = ROOT / "proof/rehearsal/testdata"
GUIDE = ROOT / "docs/operate/deploying.md"
LINES = 10
ADAPTER = "github.com/awslabs/aws-lambda-go-api-proxy@v0.16.2"

# What the guide prints, for a function in a folder of its own.
GET = "go get -tool github.com/samekey/samekey/cmd/samekey-worker"
STACK = "go run github.com/samekey/samekey/cmd/samekey@latest stack"
WORKER = "GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -tags lambda.norpc -o dist/samekey-worker/bootstrap github.com/samekey/samekey/cmd/samekey-worker"
DEPLOY = "sam deploy --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND"


def play(stack, work, env):
    for command in (GET, STACK, WORKER, DEPLOY):
        smoke.expect("the guide prints " + command, f"\n   {command}\n" in GUIDE.read_text(), True)
    work.mkdir()
    env = smoke.start_ministack(stack, work, env)
    app = work / "orders"
    shutil.copytree(DATA / "orders", app)
    run(app, env, "go mod init example.com/orders")
    for module in ("go-chi/chi/v5", "aws/aws-sdk-go-v2/config", "aws/aws-sdk-go-v2/service/dynamodb", "aws/aws-lambda-go"):
        run(app, env, f"go mod edit -require=github.com/{module}@{version('github.com/' + module)}")
    run(app, env, f"go mod edit -require={ADAPTER} && go mod tidy")
    build(app, env)
    run(ROOT, os.environ, f"GOOS=linux CGO_ENABLED=0 go build -o {app}/dist/authorizer/bootstrap ./examples/checkout/cmd/authorizer")
    deploy(work, env, app)
    api = smoke.Deployed("orders", env, "HttpApi")
    smoke.expect("orders and payments before", twice(api, "before"), (2, "2"))

    run(app, env, f"patch --quiet -p1 <{DATA / 'safe.diff'}")
    run(app, env, GET)
    run(app, env, STACK)
    build(app, env)
    run(app, env, WORKER.replace("GOARCH=arm64 ", ""))
    deploy(work, env, app)
    api = smoke.Deployed("orders", env, "HttpApi")
    smoke.expect("orders and payments after", twice(api, "after"), (1, "1"))
    changed = sum(1 for line in (DATA / "safe.diff").read_text().splitlines() if line.startswith("+") and not line.startswith("+++"))
    smoke.expect(f"at most {LINES} lines of the owner's files are changed: {changed}", changed <= LINES, True)


def twice(api, name):
    """Sends an order and its payment twice each; returns how many orders there are of that name, and how often the first is paid."""
    token = {"Authorization": "Bearer tea"}
    order = None
    for _ in range(2):
        status, _, body = api.post("/orders", {"name": name}, key=name, headers=token)
        smoke.expect("an order", status, 201)
        order = order or json.loads(body)
    for _ in range(2):
        smoke.expect("its payment", api.post(f"/orders/{order['id']}/payments", {}, key=name + "-paid", headers=token)[0], 201)
    all_ = json.loads(api.send("GET", "/orders", headers=token)[2])
    shown = json.loads(api.send("GET", "/orders/" + order["id"], headers=token)[2])
    return sum(1 for o in all_ if o["name"] == name), shown["payments"]


def build(app, env):
    run(app, env, "GOOS=linux CGO_ENABLED=0 go build -tags lambda.norpc -o dist/orders/bootstrap .")


def deploy(work, env, app):
    smoke.deploy(DEPLOY, work, env, f"Architecture={smoke.architecture()}", folder=app)


def version(module):
    for tested in ("proof", "cmd/samekey"):
        done = subprocess.run(["go", "list", "-C", str(ROOT / tested), "-m", "-f", "{{.Version}}", module], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    raise ValueError(f"no module of this repository requires {module}")


def run(folder, env, command):
    print("rehearsal: $ " + command, flush=True)
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    smoke.expect(f"the exit code of {command}: {done.stdout}", done.returncode, 0)
