"""Clients and their own tests, run as they are against a service, each in a process of its own."""

import os
import re
import shutil
import subprocess
import tempfile
import time

from .services import run as run_command, Unavailable

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")

# Versions of the packages of PyPI whose tests are run.
SECRETSTORAGE, KEYRING = "3.5.0", "25.7.0"

GIT_HELPER = "/usr/share/doc/git/contrib/credential/libsecret"


class Missing(Exception):
    """A program or package that a client needs is not installed."""


class Failure(Exception):
    """A client found something else than it stored, or its tests failed."""


class ClientResult:
    def __init__(self, name, version, status, found, seconds):
        self.name = name
        self.version = version
        self.status = status
        self.found = found
        self.seconds = seconds


CLIENTS = []


def client(name):
    def add(function):
        CLIENTS.append((name, function))
        return function

    return add


class Place:
    """Where a client runs: the service's bus and folders, and a folder for what is kept."""

    def __init__(self, service, cache):
        self.service = service
        self.cache = cache
        self.folder = tempfile.mkdtemp(prefix="ssc-clients-")

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def environment(self):
        return self.service.environment()

    def run(self, *arguments, text=None, timeout=30, environment=None, folder=None, expected=0):
        """Runs a program. Its output; a Failure with its last lines when it ends with another status."""
        done = subprocess.run(
            arguments, env={**self.environment, **(environment or {})}, input=text, cwd=folder, timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
        )
        if done.returncode != expected:
            lines = (done.stdout + done.stderr).strip().splitlines()
            wrong = [line for line in lines if re.match(r"not ok|FAIL|ERROR|E  |FAILED", line)] or lines[-3:]
            raise Failure(f"{os.path.basename(arguments[0])} ended with {done.returncode}: {'; '.join(wrong[:4])[:400]}")
        return done.stdout

    def equal(self, found, expected, what):
        if found != expected:
            raise Failure(f"{what}: {found!r} instead of {expected!r}")

    def need(self, program):
        path = shutil.which(program)
        if not path:
            raise Missing(f"{program} is not installed")
        return path


def package_version(name):
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True, check=False
    )
    return done.stdout or "unknown"


def python_environment(cache):
    """A virtual environment with the packages of PyPI, and the folder of their sources; made once.

    - Raises: Missing where they can't be had.
    """
    folder = os.path.join(cache, "python")
    sources = os.path.join(cache, "sources")
    ready = os.path.join(cache, f"ready-{SECRETSTORAGE}-{KEYRING}")
    python = os.path.join(folder, "bin", "python3")
    if os.path.exists(ready):
        return python, sources
    wanted = [f"SecretStorage=={SECRETSTORAGE}", f"keyring=={KEYRING}"]
    try:
        os.makedirs(cache, exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": cache, "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
        environment.update({name: value for name, value in os.environ.items() if re.match(r"(?i)pip_|https?_proxy|ssl_", name)})
        for arguments in (
            ["/usr/bin/python3", "-m", "venv", "--clear", "--system-site-packages", folder],
            [python, "-m", "pip", "install", "--quiet", "pytest", *wanted],
            [python, "-m", "pip", "download", "--quiet", "--no-binary", "SecretStorage,keyring", "--no-deps", "--dest", sources, *wanted],
        ):
            run_command(arguments, environment, timeout=300)
        for name in os.listdir(sources):
            if name.endswith(".tar.gz"):
                shutil.unpack_archive(os.path.join(sources, name), sources)
    except (Unavailable, OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"the packages of PyPI could not be had: {str(error)[:200]}") from None
    with open(ready, "w", encoding="utf-8"):
        pass
    return python, sources


def source_folder(sources, name, version):
    for entry in os.listdir(sources):
        if entry.lower() == f"{name}-{version}".lower():
            return os.path.join(sources, entry)
    raise Missing(f"the sources of {name} {version} are not there")


@client("SecretStorage, its unittest")
def secretstorage(place):
    python, sources = python_environment(place.cache)
    folder = source_folder(sources, "secretstorage", SECRETSTORAGE)
    done = subprocess.run(
        [python, "-m", "unittest", "discover", "-s", "tests"], env=place.environment, cwd=folder, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )
    ran = re.search(r"Ran (\d+) tests?", done.stdout)
    wrong = re.findall(r"^(?:FAIL|ERROR): (\w+)", done.stdout, re.MULTILINE)
    reasons = re.findall(r"^(\w[\w.]*(?:Exception|Error)\b.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not ran:
        raise Failure(f"of {ran.group(1) if ran else '?'} tests failed: {', '.join(sorted(set(wrong)))[:200]} ({reasons[0][:160] if reasons else done.stdout[-200:]})")
    skipped = re.search(r"skipped=(\d+)", done.stdout)
    return SECRETSTORAGE, f"{ran.group(1)} tests" + (f", {skipped.group(1)} of them skipped" if skipped else "")


def keyring_tests(place, name):
    python, sources = python_environment(place.cache)
    folder = source_folder(sources, "keyring", KEYRING)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", f"tests/backends/{name}"],
        env=place.environment, cwd=folder, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    if done.returncode != 0 or " passed" not in last:
        wrong = re.findall(r"^(?:FAILED|ERROR) \S*::(\S.*)$", done.stdout, re.MULTILINE)
        raise Failure(f"{last.strip('= ')}: {'; '.join(wrong[:3])[:300]}")
    return KEYRING, re.sub(r" in .*", "", last.strip("= "))


@client("keyring (Python), its tests of SecretService")
def keyring_secretservice(place):
    return keyring_tests(place, "test_SecretService.py")


@client("keyring (Python), its tests of libsecret")
def keyring_libsecret(place):
    return keyring_tests(place, "test_libsecret.py")


@client("keyring (Python), its command")
def keyring_command(place):
    python, _ = python_environment(place.cache)
    name, user = f"conformance-{place.service.run}", "user"
    choice = {"PYTHON_KEYRING_BACKEND": "keyring.backends.SecretService.Keyring"}
    place.run(python, "-m", "keyring", "set", name, user, text="pässword\n", environment=choice)
    place.equal(place.run(python, "-m", "keyring", "get", name, user, environment=choice), "pässword\n", "keyring get")
    place.run(python, "-m", "keyring", "del", name, user, environment=choice)
    place.run(python, "-m", "keyring", "get", name, user, environment=choice, expected=1)
    return KEYRING, ""


@client("secret-tool")
def secret_tool(place):
    tool, run = place.need("secret-tool"), place.service.run
    first, second = ["conformance", run, "number", "1"], ["conformance", run, "number", "2"]
    place.run(tool, "store", "--label=label one", *first, text="one")
    place.run(tool, "store", "--label=label two", *second, text="two ✓")
    place.equal(place.run(tool, "lookup", *first), "one", "lookup")
    place.equal(place.run(tool, "lookup", *second), "two ✓", "lookup")
    place.run(tool, "store", "--label=label one", *first, text="other")
    place.equal(place.run(tool, "lookup", *first), "other", "lookup after another store")
    # secret-tool prints the attributes to the error output.
    found = subprocess.run(
        [tool, "search", "--all", "--unlock", "conformance", run], env=place.environment, capture_output=True, text=True, check=False, timeout=60
    )
    labels = sorted(re.findall(r"^label = (.*)$", found.stdout + found.stderr, re.MULTILINE))
    place.equal(labels, ["label one", "label two"], "search --all")
    place.run(tool, "clear", *first)
    place.run(tool, "lookup", *first, expected=1)
    place.run(tool, "clear", "conformance", run)
    place.run(tool, "lookup", *second, expected=1)
    return package_version("libsecret-tools"), ""


@client("libsecret, a program in C")
def libsecret(place):
    compiler, program = place.need("cc"), os.path.join(place.folder, "libsecret-client")
    if subprocess.run(["pkg-config", "--exists", "libsecret-1"], check=False).returncode != 0:
        raise Missing("libsecret-1-dev is not installed")
    flags = run_command(["pkg-config", "--cflags", "--libs", "libsecret-1"], place.environment).split()
    place.run(compiler, "-O1", "-o", program, f"{PROGRAMS}/libsecret-client.c", *flags)
    output = place.run(program, environment={"RUN": place.service.run})
    return package_version("libsecret-1-0"), f"{output.count('ok - ')} checks"


@client("git, its helper of libsecret")
def git(place):
    compiler, tool = place.need("cc"), place.need("git")
    if not os.path.exists(f"{GIT_HELPER}/git-credential-libsecret.c"):
        raise Missing(f"{GIT_HELPER} is not there")
    helper = os.path.join(place.folder, "git-credential-libsecret")
    flags = run_command(["pkg-config", "--cflags", "--libs", "libsecret-1", "glib-2.0"], place.environment).split()
    place.run(compiler, "-O1", "-w", "-o", helper, f"{GIT_HELPER}/git-credential-libsecret.c", *flags)
    host = f"{place.service.run}.example.org"
    configuration = {
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "credential.helper", "GIT_CONFIG_VALUE_0": helper,
    }
    def credential(action, text, expected=0):
        return place.run(tool, "credential", action, text=text, environment=configuration, expected=expected)

    place_of = f"protocol=https\nhost={host}\n"
    for password in ("first", "sécond"):
        credential("approve", f"{place_of}username=user\npassword={password}\n\n")
        output = credential("fill", f"{place_of}\n")
        place.equal(re.findall(r"^(?:username|password)=(.*)$", output, re.MULTILINE), ["user", password], "fill")
    credential("reject", f"{place_of}username=user\npassword=sécond\n\n")
    credential("fill", f"{place_of}username=user\n\n", expected=128)
    return package_version("git"), ""


@client("docker-credential-secretservice")
def docker(place):
    tool = place.need("docker-credential-secretservice")
    url = f"https://{place.service.run}.example.org"
    for secret in ("first", "second"):
        place.run(tool, "store", text=f'{{"ServerURL": "{url}", "Username": "user", "Secret": "{secret}"}}')
        output = place.run(tool, "get", text=url)
        place.equal(re.findall(r'"(?:Username|Secret)":"(.*?)"', output), ["user", secret], "get")
    place.equal(f'"{url}":"user"' in place.run(tool, "list"), True, "list has it")
    place.run(tool, "erase", text=url)
    place.run(tool, "get", text=url, expected=1)
    return package_version("golang-docker-credential-helpers"), ""


@client("the calls of go-keyring, a program in Go")
def go_keyring(place):
    compiler = place.need("go")
    if not os.path.isdir("/usr/share/gocode/src/github.com/godbus/dbus"):
        raise Missing("golang-dbus-dev is not installed")
    program = os.path.join(place.folder, "go-keyring-calls")
    place.run(
        compiler, "build", "-o", program, f"{PROGRAMS}/go-keyring-calls.go", timeout=300,
        environment={"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": f"{place.folder}/go"},
    )
    allow(place, program)
    output = place.run(program, environment={"RUN": place.service.run})
    collection = re.search(r"^# collection: (.*)$", output, re.MULTILINE)
    return package_version("golang-dbus-dev"), f"{output.count('ok - ')} checks, {collection.group(1) if collection else ''}"


@client("Chromium, headless, its password store gnome-libsecret")
def chromium(place):
    browser = place.need("chromium")
    profile = f"{place.folder}/chromium"
    # Its own client opens plain sessions.
    allow(place, "/usr/lib/chromium/chromium")

    def start(store="gnome-libsecret", folder=profile):
        return place.run(
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--password-store={store}",
            f"--user-data-dir={folder}", "--virtual-time-budget=3000", "--dump-dom", "data:text/html,<p>conformance</p>",
        )

    def key():
        lookup = [place.need("secret-tool"), "lookup", "application", "chromium"]
        done = subprocess.run(lookup, env=place.environment, capture_output=True, text=True, timeout=30, check=False)
        return done.stdout

    try:
        start("basic", f"{profile}-basic")
    except Failure as error:
        raise Missing(f"Chromium does not start here, without a password store either: {error}") from None
    # It stores the key beside showing the page, and may end before.
    for _ in range(3):
        place.equal("conformance" in start(), True, "the page was shown")
        first = key()
        if first:
            break
    place.equal(bool(first), True, "a key is stored")
    start()
    place.equal(key(), first, "the key of the second start")
    return package_version("chromium"), "the key of its profile is stored, and the second start finds it"


def allow(place, program):
    """Where a service refuses plain sessions of programs that are not allowed, allows one."""
    rule = getattr(place.service, "allow_plain", None)
    if rule:
        rule(program)


def run_clients(service, cache, only=None):
    """Runs clients against a started service that is the suite's own."""
    place = Place(service, cache)
    try:
        chosen = [entry for entry in CLIENTS if not only or any(part in entry[0] for part in only)]
        return [run_client(place, name, function) for name, function in chosen]
    finally:
        place.remove()


def run_client(place, name, function):
    service = place.service
    service.will_answer(True)
    began = time.monotonic()
    version, status = "", "ok"
    try:
        version, found = function(place)
    except Missing as error:
        status, found = "skipped", str(error)
    except Failure as error:
        status, found = "failed", str(error)
    except subprocess.TimeoutExpired as error:
        status, found = "failed", f"it did not end within {error.timeout:g} s"
    if not service.answers():
        status, found = "failed", f"{found} (the service ended)"
        service.restart()
    elif not service.is_open():
        service.unlock_again()
    return ClientResult(name, version, status, found, time.monotonic() - began)
