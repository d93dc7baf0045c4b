import SecretMemory
import TestSupport
import Testing
import ViewFormats

/// The units on a real systemd that is process 1: of a container with this machine's own files under a layer that is
/// gone afterwards, and cgroups of its own.
@Suite(
  .timeLimit(.minutes(3)), .enabled(if: canBoot, "needs root, systemd with logind, and cgroups of version 2"))
struct BootAsRootTests {
  /// The script of a unit of the container; its output is the test's.
  static func run(_ script: String, in world: World) throws -> Output {
    let name = "keyhole-test-\(world.root.suffix(6))"
    try world.check("cat > \"$OUT/script\"", sending: Array((lead + script).utf8))
    try world.check("cat > \"$OUT/boot\"", sending: Array(boot.utf8))
    return try world.sh(
      """
      for tree in /sys/fs/cgroup /sys/fs/cgroup/unified; do
        [ "$(stat -f -c %T $tree 2> /dev/null)" != cgroup2fs ] || break
      done
      mkdir "$tree/\(name)"; mkdir "$OUT/layer"
      bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$tree/\(name)" unshare --mount --cgroup --pid --ipc --uts --fork \
        --kill-child bash -eu "$OUT/boot" "$OUT/layer" \(Products.keyhole) \(Products.helpers) > "$OUT/log" 2>&1 || :
      find "$tree/\(name)" -depth -type d -exec rmdir {} +
      cat "$OUT/layer.result" || cat "$OUT/log" >&2
      """, within: .seconds(120))
  }

  /// As mount-helpers/package does it, but for process 1.
  private static let boot = """
    layer=$1 keyhole=$2 helpers=$3
    mount --make-rprivate /
    mount -t tmpfs tmpfs "$layer"; mkdir "$layer/upper" "$layer/work" "$layer/root"
    mount -t overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" overlay "$layer/root"
    root=$layer/root; result=$layer.result; : > "$result"
    touch "$root/usr/bin/keyhole" "$root/result"; mount --bind "$keyhole" "$root/usr/bin/keyhole"; mount --bind "$result" "$root/result"
    cp "$helpers/systemd/keyhole@.service" "$root/etc/systemd/system"; cp "$helpers"/systemd/keyhole{.service,-credentials.socket,-credentials.service} "$root/etc/systemd/user"
    mkdir -p "$root/etc/systemd/system/web.service.d"; cp "$helpers/systemd/examples/web-with-credentials.conf" "$root/etc/systemd/system/web.service.d"
    for line in anna:4001 web:4002; do
      name=${line%:*} number=${line#*:}
      echo "$name:x:$number:$number::/home/$name:/bin/sh" >> "$root/etc/passwd"; echo "$name:x:$number:" >> "$root/etc/group"
      echo "$name:*:19000::::::" >> "$root/etc/shadow"; mkdir -p "$root/home/$name"; chown "$number:$number" "$root/home/$name"
    done
    cp "${layer%/*}/script" "$root/script"
    cat > "$root/etc/systemd/system/try.service" << 'UNIT'
    [Unit]
    Requires=basic.target
    After=basic.target
    [Service]
    Type=oneshot
    StandardOutput=append:/result
    StandardError=inherit
    ExecStart=/bin/bash /script
    ExecStopPost=/bin/sh -c "systemctl poweroff --force --force > /dev/null 2>&1"
    UNIT
    mount -t proc proc "$root/proc"; mount -t sysfs -o ro sysfs "$root/sys"; mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    for folder in run tmp; do mount -t tmpfs tmpfs "$root/$folder"; done
    mount -t tmpfs -o mode=755,dev tmpfs "$root/dev"; mkdir "$root/dev/pts" "$root/dev/shm"; : > "$root/dev/console"
    for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 fuse:10:229; do
      IFS=: read -r name major minor <<< "$node"; mknod -m 666 "$root/dev/$name" c "$major" "$minor"
    done
    cd "$root"; pivot_root . mnt; umount -l /mnt; mount --make-rshared /
    exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=try.service --log-target=null
    """

  private static let lead = """
    export LC_ALL=C.UTF-8
    as() {
      user=$1; shift; id=$(id -u $user)
      setpriv --reuid=$user --regid=$user --clear-groups env HOME=/home/$user XDG_RUNTIME_DIR=/run/user/$id "$@"
    }

    """

  @Test func aUsersServiceIsEnabledOverLogins() async throws {
    try await withWorld { world in
      let output = try Self.run(
        """
        systemctl start user@4001; as anna systemctl --user enable --now keyhole 2> /dev/null
        as anna systemctl --user show -P StatusText keyhole; as anna keyhole set defaults/s/k 1
        as anna systemctl --user show -P WatchdogUSec keyhole
        # The end of the session, and the next login.
        systemctl stop user@4001; as anna ls /home/anna/Keyhole; systemctl start user@4001; as anna systemctl --user start default.target
        as anna systemctl --user is-active keyhole; as anna cat /home/anna/Keyhole/defaults/s/k
        # One that hangs is ended by the watchdog, and started again.
        as anna mkdir -p /home/anna/.config/systemd/user/keyhole.service.d
        as anna sh -c 'printf "[Service]\\nWatchdogSec=1\\nRestartSec=10ms\\n" > ~/.config/systemd/user/keyhole.service.d/fast.conf'
        as anna systemctl --user daemon-reload; as anna systemctl --user restart keyhole
        before=$(as anna systemctl --user show -P MainPID keyhole); kill -STOP $before
        while [ "$(as anna systemctl --user show -P NRestarts keyhole)" = 0 ]; do :; done
        until [ "$(as anna systemctl --user is-active keyhole)" = active ]; do :; done
        as anna cat /home/anna/Keyhole/defaults/s/k
        """, in: world)
      #expect(output.text == "mounted on /home/anna/Keyhole\n30s\nactive\n1\n1\n", "\(output)")
    }
  }

  /// `EnvironmentFile=` of a unit gives random values of a view as they were, in the dialects that it reads.
  @Test(arguments: [EnvDialect.systemd, .portable]) func aUnitReadsAView(dialect: EnvDialect) async throws {
    let values = Self.values()
    let file = try Self.view(of: values, dialect)
    try await withWorld { world in
      let output = try Self.run(
        """
        xxd -r -p > /view.env << 'END'
        \(Self.digits(of: file.bytes))
        END
        printf '[Service]\\nType=oneshot\\nEnvironmentFile=/view.env\\nStandardOutput=append:/result\\nExecStart=/bin/cat /proc/self/environ\\n' \
          > /run/systemd/system/read.service
        systemctl start read
        """, in: world)
      let variables = Set(output.bytes.split(separator: 0).map { Array($0) })
      let missing = file.numbers.filter { !variables.contains(Array("K\($0)=".utf8) + values[$0]) }
      #expect(
        missing.isEmpty, "\(missing.count) of \(file.numbers.count): \(missing.prefix(3).map { values[$0] })")
      #expect(file.numbers.count > values.count / 5, "hardly a value is carried")
    }
  }

  /// Hexadecimal digits, in lines.
  private static func digits(of bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for (index, byte) in bytes.enumerated() {
      text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      if index % 32 == 31 { text.append(0x0A) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// As many as the environment of a unit has room for.
  private static func values() -> [[UInt8]] {
    var generator = SplitMix64(seed: 8)
    let pieces = [
      "a", "b c", "'", "\"", "\\", "\n", "\t", "$", "${x}", "`", "#", " #", ";", "%h", "é", " ", "=", "\u{1}",
      "\r",
    ]
    return (0..<10_000).map { number in
      (0..<(number % 12)).flatMap { _ in
        Array(pieces[Int.random(in: 0..<pieces.count, using: &generator)].utf8)
      }
    }
  }

  private static func view(
    of values: [[UInt8]], _ dialect: EnvDialect
  ) throws -> (bytes: [UInt8], numbers: [Int]) {
    let lender: ViewTemplate.Lender = { (slot, body) throws(ViewError) in
      let value = Int(slot.reference).map { values[$0] } ?? []
      try body(value.span)
    }
    func template(_ numbers: some Sequence<Int>) throws -> ViewTemplate {
      try ViewTemplate(.env, dialect, entries: numbers.map { (["K\($0)"], "\($0)") })
    }
    let refused = Set(try template(values.indices).faults(lender).compactMap(\.entry))
    let numbers = values.indices.filter { !refused.contains(["K\($0)"]) }
    return (try template(numbers).render(lender).unprotected, numbers)
  }

  /// A session that login(1) and PAM opened: `run` types a line into its terminal, and answers what it is asked there.
  private static let session = #"""
    systemctl start dbus systemd-logind
    chmod 666 /dev/tty /result; mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts; ln -s pts/ptmx /dev/ptmx
    cat > /session.py << 'END'
    import os, pty, sys
    process, terminal = pty.fork()
    if process == 0:
        os.execv("/bin/login", ["login", "-f", "anna"])
    seen = b""
    def wait(text):
        global seen
        while text not in seen:
            seen += os.read(terminal, 4096)
        seen = seen.partition(text)[2]
    def run(line, *answers):
        os.write(terminal, f"( {line} ) >> /result; printf '<%s>' end\n".encode())
        for question, answer in answers:
            wait(question)
            os.write(terminal, answer)
        wait(b"<end>")
    wait(b"$ ")
    exec(sys.stdin.read())
    END

    """#

  @Test func aSessionIsAskedOnItsTerminalAndLocks() async throws {
    try await withWorld { world in
      let output = try Self.run(
        Self.session + #"""
          python3 /session.py << 'END'
          value = "Keyhole/keychain/generic/s/a/value"
          run("loginctl show-session $XDG_SESSION_ID -P Type; keyhole mount -o keychain=vault")
          run(f"mkdir -p $(dirname {value}); printf 'secret\n' > {value}; setfattr -n user.keyhole.eol -v exact $(dirname {value})")
          run(f"printf 'secret\n' > {value}; setfattr -n user.keyhole.programs -v 'ask *' $(dirname {value})")
          run(f"cat {value}", (b"Refuse>", b"\t\r"))
          run(f"cat {value} 2> /dev/null || echo refused", (b"Refuse>", b"\r"), (b"Cancel>", b"\r"))
          run("keyhole passphrase --weak --recovery-code no", (b"none): ", b"a long passphrase\n"), (b"more: ", b"a long passphrase\n"))
          run("loginctl lock-session $XDG_SESSION_ID; until keyhole status | grep -o 'locked  *yes'; do :; done")
          run(f"cat {value} 2>&1 | grep -o 'Required key not available'")
          run("keyhole unlock", (b"rase: ", b"a long passphrase\n"))
          run(f"cat {value}", (b"Refuse>", b"\t\r"))
          END
          """#, in: world)
      #expect(
        output.text == """
          tty
          secret
          refused
          locked       yes
          Required key not available
          secret

          """, "\(output)")
    }
  }

  /// Of logind only the session is a stand-in: `/tmp/session` holds its type and its X display.
  private static let logind = """
    cat > /logind << 'END'
    import sys, dbus, dbus.service, dbus.mainloop.glib
    from gi.repository import GLib
    LOGIN = "org.freedesktop.login1"
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SystemBus()
    name = dbus.service.BusName(LOGIN, bus)
    class Manager(dbus.service.Object):
        @dbus.service.method(LOGIN + ".Manager", out_signature="a(susso)")
        def ListSessions(self):
            return [("1", dbus.UInt32(4001), "anna", "seat0", dbus.ObjectPath("/org/freedesktop/login1/session/_31"))]
    class Session(dbus.service.Object):
        @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
        def Get(self, interface, name):
            kind, display = open("/tmp/session").read().split(",")
            return {"Active": True, "Remote": False, "Type": kind, "Display": display.strip(), "TTY": ""}[name]
    objects = Manager(bus, "/org/freedesktop/login1"), Session(bus, "/org/freedesktop/login1/session/_31")
    print("ready", flush=True)
    GLib.MainLoop().run()
    END
    mkdir /standin; cat > /standin/pinentry << 'END'
    #!/bin/bash
    echo $(env | grep -E '^(WAYLAND_)?DISPLAY=|^XAUTHORITY=' | sort) >> /tmp/told
    echo OK
    while read -r line; do
      case $line in
        GETINFO*) echo "D qt"; echo OK ;;
        CONFIRM) echo "ERR 83886194 allowed, by the second button" ;;
        *) echo OK ;;
      esac
    done
    END
    chmod 755 /standin /standin/pinentry

    """

  /// Where logind does not know the display, the user's service manager does; what the asking program has in its environment
  /// never counts.
  @Test func questionsAreOnTheDisplayOfTheUserManager() async throws {
    try await withWorld { world in
      let output = try Self.run(
        Self.logind + """
          systemctl start user@4001
          manager() { as anna systemctl --user "$@"; }
          address=$(as anna dbus-daemon --session --fork --print-address)
          as anna env DBUS_SYSTEM_BUS_ADDRESS=$address python3 /logind > /tmp/ready & until grep -qs ready /tmp/ready; do :; done
          as anna mkdir /home/anna/m
          as anna env DBUS_SYSTEM_BUS_ADDRESS=$address DISPLAY=:65 PATH=/standin:/usr/bin:/bin keyhole mount -o keychain=vault,auth-requests=no /home/anna/m
          item=/home/anna/m/keychain/generic/s/a; as anna mkdir -p $item; as anna sh -c "printf secret > $item/value"
          as anna setfattr -n user.keyhole.programs -v 'ask *' $item
          ask() {
            : > /tmp/told; chmod 666 /tmp/told; echo "$1" > /tmp/session; chmod 644 /tmp/session
            as anna env DISPLAY=:66 WAYLAND_DISPLAY=own XAUTHORITY=/own setsid -w cat $item/value 2> /tmp/error || grep -o 'Permission denied' /tmp/error
            echo " $(cat /tmp/told)"
          }
          ask wayland,
          manager set-environment DISPLAY=:77 WAYLAND_DISPLAY=wayland-7 XAUTHORITY=/run/user/4001/auth OTHER=no
          ask wayland,
          ask x11,:5
          manager unset-environment WAYLAND_DISPLAY DISPLAY
          ask x11,:5
          ask tty,
          """, in: world)
      let manager = "XAUTHORITY=/run/user/4001/auth"
      #expect(
        output.text == """
          Permission denied
           \nsecret DISPLAY=:77 WAYLAND_DISPLAY=wayland-7 \(manager)
          secret DISPLAY=:5 WAYLAND_DISPLAY=wayland-7 \(manager)
          secret DISPLAY=:5 \(manager)
          Permission denied
           \n
          """, "\(output)")
    }
  }

  /// `keyhole passphrase --add-credential`, as GUIDE has it: the mount of an account comes up unlocked, whose credential its user
  /// can't read, and so does that of a user's unit. A lock closes both.
  @Test func aCredentialOpensTheVaultWithoutATypedPassphrase() async throws {
    try await withWorld { world in
      let output = try Self.run(
        """
        systemctl start user@4001
        as anna keyhole mount -q --keep -o keychain=vault; as anna keyhole unmount
        as anna sh -c 'printf s3cret | keyhole set keychain/generic/s/p; echo horse | keyhole passphrase --weak --cost 14 2> /dev/null'
        mkdir -p /etc/credstore.encrypted /etc/systemd/system/keyhole@anna.service.d
        echo horse | as anna keyhole passphrase --cost 14 --add-credential - 2> /dev/null > /plain
        systemd-creds encrypt --name=keyhole.unlock /plain /etc/credstore.encrypted/keyhole.unlock 2> /dev/null
        printf '[Service]\nLoadCredentialEncrypted=keyhole.unlock\n' > /etc/systemd/system/keyhole@anna.service.d/unlock.conf
        systemctl daemon-reload; systemctl start keyhole@anna
        value=keychain/generic/s/p/value
        as anna cat /run/keyhole/anna/$value; echo; as anna keyhole status | grep -o 'a systemd credential'
        as anna cat /run/credentials/keyhole@anna.service/keyhole.unlock > /dev/null 2>&1 || echo unreadable
        as anna keyhole lock; as anna dd iflag=nonblock if=/run/keyhole/anna/$value 2> /dev/null || echo locked
        systemctl restart keyhole@anna; as anna cat /run/keyhole/anna/$value; echo; systemctl stop keyhole@anna
        install -o anna -m 600 /plain /home/anna/unlock
        as anna mkdir -p /home/anna/.config/systemd/user/keyhole.service.d
        as anna sh -c 'printf "[Service]\nLoadCredential=keyhole.unlock:/home/anna/unlock\n" > ~/.config/systemd/user/keyhole.service.d/unlock.conf'
        as anna systemctl --user daemon-reload; as anna systemctl --user start keyhole
        as anna cat /home/anna/Keyhole/$value; echo
        as anna keyhole lock; as anna dd iflag=nonblock if=/home/anna/Keyhole/$value 2> /dev/null || echo locked
        """, in: world)
      let expected = "s3cret\na systemd credential\nunreadable\nlocked\ns3cret\ns3cret\nlocked\n"
      #expect(output.text == expected, "\(output)")
    }
  }

  @Test func aServiceGetsItsCredentialsFromAnAccountsMount() async throws {
    try await withWorld { world in
      let output = try Self.run(
        """
        systemctl start keyhole@web; systemctl show -P StatusText keyhole@web
        as web sh -euc 'cd /run/keyhole/web; mkdir -p keychain/generic/web/token defaults/com.example.web
          echo hunter2 > keychain/generic/web/token/value; echo 8080 > defaults/com.example.web/port'
        as anna ls /run/keyhole/web 2>&1 | grep -o 'Permission denied'
        printf '[Service]\\nType=oneshot\\nUser=anna\\nStandardOutput=append:/result\\nStandardError=inherit\\nExecStart=/bin/bash /web\\n' > /etc/systemd/system/web.service
        cat > /web << 'WEB'
        cat "$CREDENTIALS_DIRECTORY/token"; echo; stat -c %a "$CREDENTIALS_DIRECTORY/token"
        ls /etc/web/settings 2>&1 | grep -o 'Permission denied'
        WEB
        systemctl daemon-reload; systemctl start web
        sed -i 's/^User=anna/User=web/; s/^ExecStart=.*/ExecStart=cat \\/etc\\/web\\/settings\\/port/' /etc/systemd/system/web.service
        systemctl daemon-reload; systemctl start web
        sed -i 's/^ExecStart=.*/ExecStart=bash -c "echo 1 > \\/etc\\/web\\/settings\\/port"/' /etc/systemd/system/web.service
        systemctl daemon-reload; systemctl start web 2> /dev/null || echo refused
        systemctl stop keyhole@web; findmnt -M /run/keyhole/web || echo unmounted
        """, in: world)
      #expect(
        output.text
          == "mounted on /run/keyhole/web\nPermission denied\nhunter2\n400\nPermission denied\n8080\nbash: line 1: /etc/web/settings/port: Read-only file system\nrefused\nunmounted\n",
        "\(output)")
    }
  }
}

private let canBoot =
  Privileges.isRoot && System.exists("/lib/systemd/systemd") && System.exists("/lib/systemd/systemd-logind")
  && (System.exists("/sys/fs/cgroup/unified/cgroup.procs")
    || System.exists("/sys/fs/cgroup/cgroup.controllers"))
