"""A new user with a stopwatch; run by stopwatch.sh.

The commands are those of docs/start/first-handler.md, typed as they stand there, but for the version of samekey: this
checkout takes the place of a release. The files in stopwatch/app are the user's edits. Each step's time and the lines written
by hand are printed; the lines have limits.
"""

import contextlib
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import smoke_deploy as smoke

ROOT = smoke.ROOT
EDITS = ROOT / "proof/stopwatch/app"
GUIDE = ROOT / "docs/start/first-handler.md"
ORDER = b'{"item":"tea","quantity":2}'

# What the guide prints, and this script does.
COMMANDS = [
    "mkdir orders && cd orders",
    "go run github.com/samekey/samekey/cmd/samekey@latest init",
    "make test",
    "make local",
    "curl -i localhost:3000/orders -H 'Authorization: Bearer tea' -H 'Content-Type: application/json' -H 'Idempotency-Key: 1' -d '" + ORDER.decode() + "'",
    "export TOKEN=$(openssl rand -hex 16)",
    'make deploy TOKENS="jane:$TOKEN"',
]

MAINS, TEMPLATE = 45, 85  # lines
steps = []


def main():
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.S)
    smoke.expect("the guide's commands", "".join(blocks).splitlines(), COMMANDS)
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        env = {**os.environ, "LOCAL_API_PORT": "0", "LOCAL_CONTROL_PORT": "0"}
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GOFLAGS", "ARCH"):
            env.pop(name, None)
        subprocess.run(["go", "build", "-o", work / "samekey", "."], cwd=ROOT / "cmd/samekey", check=True)
        env["SAMEKEY"] = str(work / "samekey")
        app = work / "orders"
        app.mkdir()
        with step("samekey init, in an empty folder"):
            run([work / "samekey", "init"], app, {**env, "SAMEKEY_INIT_REPLACE": str(ROOT)})
        with step("make test"):
            run(["make", "test"], app, env)
        with step("samekey local: a keyed order, and its retry"):
            local = Local(stack, app, env)
            check_keyed(local.post)
        local.end()
        before = {f: f.read_text().splitlines() for f in sources(app)}
        shutil.copytree(EDITS, app, dirs_exist_ok=True)
        add_to_makefile(app / "Makefile")
        with step("phases, a job, its consumer and the worker are written: make test"):
            run(["make", "test"], app, env)
        with step("samekey local: the order's mail goes through the worker"):
            local = Local(stack, app, env)
            check_keyed(local.post)
            local.wait_for("mailed")
        with step("the template lints"):
            lint(app)
        with step("make deploy, to MiniStack; the order and its mail"):
            deploy(stack, work, app, env)
        with step("samekey local --watch: a change is picked up"):
            change(app / "cmd/api/order.go", "answer(http.StatusCreated, order)", "answer(http.StatusAccepted, order)")
            local.wait_for("built and restarted")
            smoke.expect("a new order", local.post("after")[0], 202)
        smoke.expect("an old order's retry", local.post("1")[0], 201)
        local.end()
        report(app, before)


def check_keyed(post):
    """One order for one key."""
    status, headers, first = post("1")
    smoke.expect("a new key", (status, headers.get("Idempotent-Replayed")), (201, None))
    status, headers, again = post("1")
    smoke.expect("the same again", (status, headers.get("Idempotent-Replayed"), again), (201, "true", first))


class Local:
    """A running `make local`."""

    def __init__(self, stack, app, env):
        self.process = subprocess.Popen(
            ["make", "local"], cwd=app, env=env, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stack.callback(self.end)
        self.logs, self.lines = [], queue.SimpleQueue()
        threading.Thread(target=self.read, daemon=True).start()
        ready = self.process.stdout.readline()
        if not ready:
            sys.exit("samekey local ended:\n" + self.process.stderr.read())
        self.api = json.loads(ready)["api"]

    def read(self):
        for line in self.process.stderr:
            self.logs.append(line)
            self.lines.put(line)

    def post(self, key):
        return smoke.call(self.api + "/orders", "POST", ORDER, {"Authorization": "Bearer tea", "Content-Type": "application/json", "Idempotency-Key": key})

    def wait_for(self, text):
        """Waits for a line of the log that wasn't there at the last call."""
        with contextlib.suppress(queue.Empty):
            while text not in self.lines.get(timeout=300):
                pass
            return
        sys.exit(f"the log lacks {text!r}:\n" + "".join(self.logs))

    def end(self):
        """The stack ends its own processes; its output is open until all have ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.stdout.read()
        self.process.wait()


def lint(app):
    env = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1", "SAM_CLI_TELEMETRY": "0", "AWS_EC2_METADATA_DISABLED": "true"}
    python = smoke.VENV / "lint/bin/python"
    run([python, smoke.VENV / "lint/bin/sam", "validate", "--lint", "--template", "template.yaml"], app, env)
    run([python, smoke.VENV / "lint/bin/cfn-lint", "--template", "template.yaml"], app, env)


def deploy(stack, work, app, env):
    """make deploy by the guide, answering yes; then an order."""
    env = smoke.start_ministack(stack, work, env)
    token = env["TOKEN"] = "0123456789abcdef" * 2
    smoke.deploy(COMMANDS[-1], work, env, f"Architecture={smoke.architecture()}", folder=app)
    deployed = smoke.Deployed("orders", env, api="HttpApi")
    check_keyed(lambda key: deployed.send("POST", "/orders", ORDER, {"Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": key}))
    smoke.wait(lambda: "mailed" in (work / "ministack.log").read_text(), "the mail", 120)


def sources(app):
    return [f for f in app.rglob("*") if f.suffix in (".go", ".yaml", ".mod") or f.name == "Makefile"]


def add_to_makefile(makefile):
    """The one line for the new function."""
    line = "\t$(GO_BUILD) -o dist/api/bootstrap ./cmd/api\n"
    change(makefile, line, line + line.replace("api", "mail"))


def change(file, old, new):
    text = file.read_text()
    if text.count(old) != 1:
        sys.exit(f"{file.name} has {text.count(old)} times {old!r}")
    file.write_text(text.replace(old, new))


def run(command, folder, env):
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{command}: exit status {done.returncode}\n{done.stdout}")


@contextlib.contextmanager
def step(name):
    begin = time.monotonic()
    yield
    steps.append(name)
    print(f"stopwatch: {time.monotonic() - begin:6.1f} s  {name}", flush=True)


def report(app, before):
    """The lines, and their limits."""
    by_hand = 0
    for file in sources(app):
        old = set(before.get(file, []))
        by_hand += sum(1 for line in file.read_text().splitlines() if line.strip() and line not in old)
    mains = sum(code_lines(f) for f in app.glob("cmd/*/main.go"))
    template = len((app / "template.yaml").read_text().splitlines())
    print(f"stopwatch: lines written by hand after samekey init: {by_hand}")
    print(f"stopwatch: mains have {mains} lines of code (at most {MAINS}), the template has {template} lines (at most {TEMPLATE})")
    if mains > MAINS or template > TEMPLATE:
        sys.exit("stopwatch: more lines than that")


def code_lines(file):
    lines = [line.strip() for line in file.read_text().splitlines()]
    return sum(1 for line in lines if line and not line.startswith("//"))


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"stopwatch: {time.monotonic() - started:6.1f} s  in all")
