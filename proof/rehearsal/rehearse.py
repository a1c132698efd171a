"""Two releases, rehearsed, and what strangers do with them; run by rehearse.sh.

A clone is released by the commands of docs/inside/releasing.md, and its modules, tagged together, go into a module proxy in a
folder. From there, with empty caches of Go, strangers type the commands of the pages as they stand there:

- a new user (docs/start/first-handler.md): from an empty folder to a deployed application with phases, a job and the worker.
  The files in app are the user's edits; mains and template have limits;
- a merchant (docs/start/checkout.md);
- the owner of a chi service (docs/operate/deploying.md): existing.py;
- the new user again, after the next release, which has one option more: upgrade, and two versions beside each other, which
  `samekey doctor` names.

AWS is MiniStack. Modules of others come from this machine's cache and the registry. Each step's time is printed.
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
import zipfile

import existing
import smoke_deploy as smoke

ROOT = smoke.ROOT
EDITS = ROOT / "proof/rehearsal/app"
ORDER = b'{"item":"tea","quantity":2}'
SAMEKEY = "go run github.com/samekey/samekey/cmd/samekey@"
CURL = "curl -i localhost:3000/orders -H 'Authorization: Bearer tea' -H 'Content-Type: application/json' -H 'Idempotency-Key: 1' -d '" + ORDER.decode() + "'"

# What the guide prints, and this script does.
COMMANDS = [
    "mkdir orders && cd orders", SAMEKEY + "latest init", "make test", "make local", CURL,
    "export TOKEN=$(openssl rand -hex 16)", 'make deploy TOKENS="jane:$TOKEN"',
]

UPDATE, CHECK = "go get -u github.com/samekey/samekey", SAMEKEY + "latest init --check"

MAINS, TEMPLATE = 45, 85  # lines
steps = []


def main():
    smoke.expect("the guide's commands", blocks("docs/start/first-handler.md"), COMMANDS)
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(writable, work)
        releases = Releases(work)
        with step(f"make release, make tag and push: {releases.next}, in a clone"):
            first = releases.publish()
        env = releases.environment()
        user = NewUser(stack, work, env)
        user.begins(first)
        user.grows()
        user.deploys()
        user.watches()
        with step("a merchant from nothing (checkout.md), and samekey check"):
            merchant(stack, work, env)
        with step("an existing chi service is made safe, and deployed"):
            existing.play(stack, work / "existing", env)
        with step(f"the next release, with one option more: {releases.next}"):
            second = releases.publish()
        user.upgrades(first, second)
        user.mixes(first, second)


# ---- The releases ----------------------------------------------------------------------------------------------------


class Releases:
    """A clone of what is committed, and the module proxy that its releases go to."""

    def __init__(self, work):
        self.work, self.clone, self.proxy = work, work / "clone", work / "proxy"
        self.env = {
            **os.environ, "TAGFLAGS": "-a", "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
        }
        self.run(f"git init --quiet --bare origin.git && git clone --quiet {ROOT} clone", work)
        self.run(f"git checkout --quiet -B main && git remote set-url origin {work}/origin.git")
        self.run("go build -C internal/tools/supply -o $PWD/../supply .")
        said = re.findall(r"^## (Unreleased: )?(\d+\.\d+\.\d+)", (self.clone / "CHANGELOG.md").read_text(), re.M)
        self.next = said[0][1]
        if not said[0][0]:
            self.begin(self.next)

    def run(self, command, folder=None):
        return run(command, folder or self.clone, self.env)

    def begin(self, last):
        """Begins the version after the last, with one option more."""
        major, minor, patch = last.split(".")
        self.next = f"{major}.{minor}.{int(patch) + 1}"
        change(self.clone / "CHANGELOG.md", f"## {last} - ", f"## Unreleased: {self.next}\n\nOne option more.\n\n## {last} - ")
        change(self.clone / "idem/options.go", "\ntype Options struct {\n", "\ntype Options struct {\n\t// Rehearsed is the next release's.\n\tRehearsed bool\n\n")
        self.run("git commit --quiet --all --message 'idem: add an option'")

    def publish(self):
        """Types the page's commands for a version, and returns it."""
        version = self.next
        page = (ROOT / "docs/inside/releasing.md").read_text()
        commands = page.split("\n```\n")[1].replace("0.1.0", version).splitlines()
        smoke.expect("the page's checks", commands[1:3], [".ci/run", "make prove"])
        if (golden := f"v{version.rpartition('.')[0]}") != "v0.1":
            self.run(f"go test ./dynamo -run '^TestGoldenItems$' -write-golden {golden} && git add -A && git diff --cached --quiet || git commit --quiet -m 'dynamo: keep records'")
        self.measures()
        smoke.expect("the push that starts release.yml: more than three tags at once start no workflow", commands[-1], f"git push origin v{version}")
        for command in (commands[0], *commands[3:]):
            self.run(command)
        tags = self.run(f"git -C {self.work}/origin.git tag --list '*v{version}'").split()
        modules = [tag.removesuffix(f"v{version}").rstrip("/") or "." for tag in tags]
        smoke.expect("the tags", sorted(modules), [".", "cmd/samekey", "internal/local", "kms", "otel"])
        self.run(f"git checkout --quiet v{version} && ../supply proxy -o {self.proxy} . v{version} {' '.join(modules)} && git checkout --quiet main")
        self.refused(commands[3], "never moved")
        self.begin(version)
        self.refused(commands[0].replace(version, self.next), "make figures")
        return "v" + version

    def refused(self, command, why):
        done = subprocess.run(["bash", "-c", command], cwd=self.clone, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        smoke.expect(f"{command}: {done.stdout}", done.returncode != 0 and why in done.stdout, True)

    def measures(self):
        """Says that the page's figures are the clone's: to measure them takes half an hour."""
        page = self.clone / "docs/inside/proof.md"
        page.write_text(re.sub(r"(\d{4}-\d\d-\d\d, )[0-9a-f]{7,} \|", rf"\g<1>{self.run('git rev-parse HEAD').strip()} |", page.read_text()))
        self.run("git commit --quiet --all --message 'proof: measure'")

    def environment(self):
        """A stranger's machine: Go's caches are empty, and Samekey comes from the proxy."""
        cached, others = subprocess.run(["go", "env", "GOMODCACHE", "GOPROXY"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        return {
            **os.environ, "GOPROXY": f"file://{self.proxy},file://{cached}/cache/download,{others}", "GONOSUMDB": "github.com/samekey",
            "GOMODCACHE": str(self.work / "modules"), "GOCACHE": str(self.work / "built"), "GOBIN": str(self.work / "installed"),
            "LOCAL_API_PORT": "0", "LOCAL_CONTROL_PORT": "0",
        }


# ---- The new user ----------------------------------------------------------------------------------------------------


class NewUser:
    def __init__(self, stack, work, env):
        self.stack, self.work, self.env, self.app = stack, work, env, work / "orders"

    def typed(self, command, env=None):
        return run(command, self.app, env or self.env)

    def begins(self, version):
        with step(COMMANDS[1]):
            run("mkdir orders", self.work)
            self.typed(COMMANDS[1])
            smoke.expect("the library's version", self.version(), version)
        with step("make test"):
            self.typed("make test")
        with step("make local, and the order by curl, twice"):
            local = Local(self.stack, self.app, self.env)
            check_keyed(local.post)
            again = self.typed(CURL.replace("localhost:3000", local.api.removeprefix("http://")))
            smoke.expect("the order by curl: " + again, "Idempotent-Replayed: true" in again, True)
            local.end()
        with step("make build"):
            self.typed("make build")

    def version(self):
        return self.typed("go list -m -f '{{.Version}}' github.com/samekey/samekey").strip()

    def grows(self):
        before = {f: f.read_text().splitlines() for f in sources(self.app)}
        shutil.copytree(EDITS, self.app, dirs_exist_ok=True)
        line = "\t$(GO_BUILD) -o dist/api/bootstrap ./cmd/api\n"
        change(self.app / "Makefile", line, line + line.replace("api", "mail"))
        with step("phases, a job, its consumer and the worker are written: make test"):
            self.typed("make test")
        with step("the template lints"):
            lint(self.app)
        report(self.app, before)

    def deploys(self):
        with step("make deploy, to MiniStack; the order and its mail"):
            self.aws = smoke.start_ministack(self.stack, self.work, self.env)
            token = self.aws["TOKEN"] = "0123456789abcdef" * 2
            self.deploy()
            deployed = smoke.Deployed("orders", self.aws, api="HttpApi")
            check_keyed(lambda key: deployed.send("POST", "/orders", ORDER, {"Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": key}))
            smoke.wait(lambda: "mailed" in (self.work / "ministack.log").read_text(), "the mail", 120)

    def deploy(self):
        smoke.deploy(COMMANDS[-1], self.work, self.aws, f"Architecture={smoke.architecture()}", folder=self.app)

    def watches(self):
        with step("make local: the mail goes through the worker; a change is picked up"):
            local = Local(self.stack, self.app, self.env)
            check_keyed(local.post)
            local.wait_for("mailed")
            change(self.app / "cmd/api/order.go", "answer(http.StatusCreated, order)", "answer(http.StatusAccepted, order)")
            local.wait_for("built and restarted")
            smoke.expect("a new order", local.post("after")[0], 202)
            smoke.expect("an old order's retry", local.post("1")[0], 201)
            local.end()
            change(self.app / "cmd/api/order.go", "answer(http.StatusAccepted, order)", "answer(http.StatusCreated, order)")

    def upgrades(self, first, second):
        page = (ROOT / "docs/start/first-handler.md").read_text()
        for command in (UPDATE, CHECK):
            smoke.expect("the guide prints " + command, f"`{command}`" in page, True)
        with step(UPDATE):
            self.typed(UPDATE)
            smoke.expect("the library's version", self.version(), second)
        with step("its new option: make test, make build"):
            change(self.app / "cmd/api/main.go", "idem.New(store)", "idem.New(store, func(o *idem.Options) { o.Rehearsed = true })")
            self.typed("make test build", {**self.env, "ARCH": smoke.architecture()})
        with step("init --check by the new command, make local's command, and the other programs"):
            changes = subprocess.run(["bash", "-c", CHECK], cwd=self.app, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            smoke.expect("init --check shows changes: " + changes.stdout, changes.returncode, 0)
            smoke.expect("make local runs another version", SAMEKEY + second + " local" in self.typed("make -n local"), True)
            kms = "github.com/samekey/samekey/kms/cmd/samekey-"
            self.typed(f"go install {kms}keys@{second} {kms}worker@{second} && go install github.com/samekey/samekey/cmd/samekey@{second}")
            told = self.typed("$GOBIN/samekey --version")
            smoke.expect("the command's version: " + told, second in told, True)

    def mixes(self, first, second):
        functions, ids = smoke.client("lambda", self.aws), smoke.resources("orders", self.aws)

        def doctor():
            done = subprocess.run([self.env["GOBIN"] + "/samekey", "doctor", "--stack", "orders", "--json"], cwd=self.app, env=self.aws, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode not in (0, 3):
                sys.exit(f"samekey doctor: {done.stderr}")
            report = json.loads(done.stdout)
            return [f["what"] for f in report["findings"] if f["check"] == "versions"], "versions" in report["good"], report["not_checked"]

        def deploy(function, program):
            """MiniStack can't update a stack that has a bucket: the code alone is."""
            code = self.work / "code.zip"
            with zipfile.ZipFile(code, "w", zipfile.ZIP_DEFLATED) as z:
                z.write(self.app / "dist" / program / "bootstrap", "bootstrap")
            functions.update_function_code(FunctionName=ids[function], ZipFile=code.read_bytes())

        with step("a function of the new version, worker and consumer of the old one: samekey doctor names them"):
            deploy("Api", "api")
            found, good, unchecked = doctor()
            named = [dict((name, part.split(" is in ")[0]) for part in what.split("; ") for name in part.split(" is in ")[1].split(", ")) for what in found]
            want = {ids["Api"]: second, ids["Mail"]: first, ids["Samekey.Worker"]: first, "this command": second}
            smoke.expect(f"the versions; {unchecked}", (named, good), ([want], False))
            print("rehearsal: doctor: " + found[0], flush=True)
        with step("all of one version: samekey doctor finds it good"):
            deploy("Mail", "mail")
            deploy("Samekey.Worker", "samekey-worker")
            found, good, unchecked = doctor()
            smoke.expect(f"the versions after that; {unchecked}", (found, good), ([], True))


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
            sys.exit("samekey local ended:\n" + "".join(self.logs))
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
    for command in ("sam validate --lint", "cfn-lint"):
        run(f"{smoke.VENV}/lint/bin/python {smoke.VENV}/lint/bin/{command} --template template.yaml", app, env)


# ---- The merchant ----------------------------------------------------------------------------------------------------


def merchant(stack, work, env):
    """The page's commands, but for make local, which goes on, and its port. The report of samekey check finds nothing."""
    *makes, local = blocks("docs/start/checkout.md", 0)
    smoke.expect("the page's last command", local, "make local")
    out = run("\n".join(makes), work, env)
    local = Local(stack, work / "shop", env)
    printed = out.split("Examine it: ")[1].splitlines()[0]
    for examine in ("\n".join(blocks("docs/start/checkout.md", 1)), printed):
        smoke.expect("the place that is examined: " + examine, examine.count("http://localhost:3000"), 1)
        told = run(examine.replace("http://localhost:3000", local.api), work / "shop", env)
        smoke.expect("the examination: " + told, "Rules broken: ACP 0\n" in told, True)
    local.end()


# ---- Small things ----------------------------------------------------------------------------------------------------


def blocks(page, which=None):
    """The commands of a page: of all its blocks, or of one."""
    found = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.S)
    return "".join(found if which is None else [found[which]]).splitlines()


def sources(app):
    return [f for f in app.rglob("*") if f.suffix in (".go", ".yaml", ".mod") or f.name == "Makefile"]


def change(file, old, new):
    text = file.read_text()
    if text.count(old) != 1:
        sys.exit(f"{file.name} has {text.count(old)} times {old!r}")
    file.write_text(text.replace(old, new))


def run(command, folder, env=None):
    done = subprocess.run(["bash", "-euc", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{command}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def writable(folder):
    """The module cache may be removed."""
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)


@contextlib.contextmanager
def step(name):
    begin = time.monotonic()
    yield
    steps.append(name)
    print(f"rehearsal: {time.monotonic() - begin:6.1f} s  {name}", flush=True)


def report(app, before):
    """The lines, and their limits."""
    by_hand = 0
    for file in sources(app):
        old = set(before.get(file, []))
        by_hand += sum(1 for line in file.read_text().splitlines() if line.strip() and line not in old)
    mains = sum(code_lines(f) for f in app.glob("cmd/*/main.go"))
    template = len((app / "template.yaml").read_text().splitlines())
    print(f"rehearsal: lines written by hand after samekey init: {by_hand}")
    print(f"rehearsal: mains have {mains} lines of code (at most {MAINS}), the template has {template} lines (at most {TEMPLATE})")
    if mains > MAINS or template > TEMPLATE:
        sys.exit("rehearsal: more lines than that")


def code_lines(file):
    lines = [line.strip() for line in file.read_text().splitlines()]
    return sum(1 for line in lines if line and not line.startswith("//"))


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"rehearsal: {time.monotonic() - started:6.1f} s  in all")
