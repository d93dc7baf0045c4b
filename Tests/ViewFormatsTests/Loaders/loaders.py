#!/usr/bin/env python3
"""Has the real program read a file, and prints each name with the hexadecimal bytes of its value: loaders.py KIND FILE"""

import base64
import ctypes
import http.server
import json
import os
import re
import socketserver
import subprocess
import sys
import tempfile
import threading


def print_values(values):
    for name, value in values:
        data = value if isinstance(value, bytes) else value.encode()
        name = name if isinstance(name, bytes) else name.encode()
        sys.stdout.write(f"{name.hex()} {data.hex()}\n")


def run(arguments, **options):
    result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **options)
    if result.returncode:
        sys.exit(f"{arguments[0]} ended with {result.returncode}: {result.stderr[-2000:]!r}")
    return result.stdout


def shell(program, path):
    """The values that the shell has after `.`, one after the other: a larger environment than exec(2) takes would fail."""
    script = '. "$1"; while read -r name; do eval "value=\\$$name"; printf "%s\\0" "$value"; done < "$2"'
    with open(path, "rb") as file:
        names = [line.split(b"=")[0] for line in file.read().split(b"\n") if line[:1] == b"K" and b"=" in line]
    names = [name for name in dict.fromkeys(names) if name[1:].isdigit()]
    with tempfile.NamedTemporaryFile() as list_of_names:
        list_of_names.write(b"".join(name + b"\n" for name in names))
        list_of_names.flush()
        output = run([program, "-c", script, program, path, list_of_names.name], env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
    print_values(zip(names, output.split(b"\0")))


def python_dotenv(path):
    from dotenv import dotenv_values

    print_values(dotenv_values(path).items())


def botocore(path):
    from botocore.configloader import raw_config_parse

    for section, members in raw_config_parse(path).items():
        print_values((f"{section} {key}", value) for key, value in members.items())


def aws(path):
    """`aws configure get KEY --profile SECTION`: the first as a process, all by the program's own main function."""
    import contextlib
    import io

    os.environ.update(AWS_SHARED_CREDENTIALS_FILE=path, AWS_CONFIG_FILE=os.devnull, AWS_CLI_HISTORY_FILE=os.devnull)
    from awscli.clidriver import create_clidriver
    from botocore.configloader import raw_config_parse

    values = []
    for section, members in raw_config_parse(path).items():
        driver = create_clidriver()
        for key in members:
            arguments = ["configure", "get", key, "--profile", section]
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = driver.main(arguments)
            value = output.getvalue().removesuffix("\n")
            if not values:
                printed = run([os.path.join(os.path.dirname(sys.executable), "aws"), *arguments])
                assert printed.decode() == value + "\n"
            if status == 0:
                values.append((f"{section} {key}", value))
    print_values(values)


def docker(path):
    """`docker create` sends what it has read to a daemon, which this stands in for."""
    found = []

    class Daemon(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, body, status=200):
            self.send_response(status)
            self.send_header("Api-Version", "1.41")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self):
            self.answer(b"")

        def do_GET(self):
            self.answer(b'{"ApiVersion": "1.41", "Os": "linux"}')

        def do_POST(self):
            content = b""
            if "Content-Length" in self.headers:
                content = self.rfile.read(int(self.headers["Content-Length"]))
            else:
                while size := int(self.rfile.readline(), 16):
                    content += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            found.extend(json.loads(content).get("Env") or [])
            self.answer(b'{"Id": "1", "Warnings": []}', 201)

        def address_string(self):
            return "client"

        def log_message(self, *_):
            pass

    program = os.environ["LOADERS_DOCKER"]
    with tempfile.TemporaryDirectory() as folder:
        with socketserver.ThreadingUnixStreamServer(f"{folder}/socket", Daemon) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            run([program, "-H", f"unix://{folder}/socket", "create", "--pull", "never", "--env-file", path, "image"],
                env={"PATH": os.environ["PATH"], "HOME": folder, "DOCKER_CONFIG": folder})
            server.shutdown()
    print_values(variable.split("=", 1) for variable in found)


def compose(path):
    """`docker-compose config` shows the variables of a service as it has read them, each `$` twice."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/compose.json", "w", encoding="utf-8") as file:
            json.dump({"services": {"a": {"image": "a", "env_file": path}}}, file)
        output = run([os.environ["LOADERS_COMPOSE"], "-f", f"{folder}/compose.json", "config", "--format", "json"],
                     env={"PATH": "/usr/bin", "HOME": folder})
    variables = json.loads(output)["services"]["a"]["environment"]
    print_values((name, value.replace("$$", "$")) for name, value in variables.items())


def systemd(path):
    """The generator of environment.d(5) reads with the same function as `EnvironmentFile=`. Then it leaves out what is empty,
    and fills in `$`. It prints control characters as C has them."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/environment.d")
        with open(path, "rb") as file, open(f"{folder}/environment.d/1.conf", "wb") as copy:
            copy.write(file.read())
        output = run(["/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"],
                     env={"XDG_CONFIG_HOME": folder, "HOME": folder, "PATH": "/usr/bin"})
    characters = {b"n": b"\n", b"t": b"\t"}
    for line in output.splitlines():
        name, _, value = line.partition(b"=")
        if name[:1] == b"K":
            value = value[1:-1] if value[:1] == b'"' else value
            print_values([(name, re.sub(rb"\\(.)", lambda match: characters.get(match[1], match[1]), value))])


def curl(path):
    """curl asks each machine through a proxy, which this stands in for, and gets its password by the host."""
    found = {}

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            scheme, _, text = self.headers.get("Authorization", "").partition(" ")
            if scheme == "Basic":
                found[self.headers["Host"]] = base64.b64decode(text).partition(b":")[2]
            self.send_response(204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with open(path, "rb") as file:
        hosts = [line.split()[1].decode() for line in file if line.startswith(b"machine ")]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        configuration = "".join(f"url = http://{host}/\n" for host in hosts)
        run(["curl", "-q", "-s", "--netrc-file", path, "-x", f"http://127.0.0.1:{server.server_port}", "-K", "-"],
            input=configuration.encode(), env={"PATH": os.environ["PATH"]})
        server.shutdown()
    print_values((f"{host} u password", value) for host, value in found.items())


def netrc(path):
    import netrc as module

    print_values((f"{host} {entry[0]} password", entry[2]) for host, entry in module.netrc(path).hosts.items())


def libpq(path):
    """PQconnectStart looks the password up before it connects; nothing listens in this folder."""
    library = ctypes.CDLL("libpq.so.5")
    library.PQconnectStart.restype = ctypes.c_void_p
    library.PQconnectStart.argtypes = [ctypes.c_char_p]
    library.PQpass.restype = ctypes.c_char_p
    library.PQpass.argtypes = [ctypes.c_void_p]
    library.PQfinish.argtypes = [ctypes.c_void_p]
    os.chmod(path, 0o600)
    values = []
    with open(path, "rb") as file:
        hosts = [line.split(b":")[0].decode() for line in file.read().split(b"\n") if line[:1] == b"h"]
    for host in hosts:
        connection = library.PQconnectStart(
            f"host={host} hostaddr=127.0.0.1 port=5432 dbname='d:b' user='u\\\\' passfile='{path}'".encode())
        values.append((f"{host} 5432 d:b u\\", library.PQpass(connection) or b""))
        library.PQfinish(connection)
    print_values(values)


def npm(path):
    """npm's own parser, and its expansion of variables."""
    script = """
      const folder = process.env.LOADERS_NPM + '/node_modules/'
      const fill = require(folder + '@npmcli/config/lib/env-replace.js')
      const text = require('fs').readFileSync(process.argv[1], 'utf8')
      const found = Object.entries(require(folder + 'ini').parse(text))
      console.log(JSON.stringify(found.map(([key, value]) => [key, typeof value === 'string' ? fill(value, {}) : String(value)])))
    """
    print_values(json.loads(run(["node", "-e", script, path], env=os.environ)))


def python_json(path):
    with open(path, encoding="utf-8") as file:
        print_values((f"a {key}", value) for key, value in json.load(file)["a"].items())


def docker_config(path):
    """The members that docker reads, decoded as docker/cli's `decodeAuth` does."""
    with open(path, encoding="utf-8") as file:
        auths = json.load(file)["auths"]
    for host, entry in auths.items():
        user, _, password = base64.b64decode(entry["auth"], validate=True).partition(b":")
        print_values([(f"auths {host} auth {user.decode()}", password)])


KINDS = {
    "dash": lambda path: shell("dash", path), "bash": lambda path: shell("bash", path), "python-dotenv": python_dotenv,
    "aws": aws, "botocore": botocore, "docker": docker, "compose": compose, "systemd": systemd, "curl": curl, "netrc": netrc, "libpq": libpq, "npm": npm,
    "json": python_json, "docker-config": docker_config,
}
KINDS[sys.argv[1]](os.path.abspath(sys.argv[2]))
