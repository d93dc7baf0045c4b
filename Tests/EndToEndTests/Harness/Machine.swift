import Glibc
import Testing

/// A machine of its own as far as mounts, processes and users go: namespaces with the users `anna` and `berta`, a
/// /dev/fuse open to all, an /etc/fuse.conf and an /etc/fstab of the test's, and the mount helpers installed.
///
/// When it goes away, so do its processes and its mounts.
struct Machine: Sendable {
  private let world: World
  private let holder: Program
  /// The first process inside.
  private let process: String

  init(_ world: World) throws {
    self.world = world
    holder = try Program(
      [
        "/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/bash", "-c",
        Self.setUp,
      ],
      environment: world.environment + [
        "KEYHOLE=\(Products.keyhole)", "HELPERS=\(Products.helpers)", "WRAPPER=\(Products.wrapperProgram)",
      ],
      directory: world.outside)
    guard try holder.line() == "ready" else {
      throw MountedKeyhole.DidNotStart(output: try holder.finish())
    }
    let children = "/proc/\(holder.process)/task/\(holder.process)/children"
    process = try System.text(children).split(separator: " ").first.map(String.init) ?? ""
  }

  func end() {
    holder.kill()
    _ = try? holder.waitForEnd(until: Deadline(in: .seconds(10)))
  }

  /// Everything private: nothing of it is seen outside, nor left behind.
  private static let setUp = """
    set -e
    mount --make-rprivate /
    mount -t tmpfs -o mode=755,dev tmpfs /home
    mkdir -p /home/mnt /home/srv /home/anna /home/berta /home/bin /home/.etc
    printf '%s\\n' '#user_allow_other' > /home/.etc/fuse.conf
    : > /home/.etc/fstab
    { sed '/^root:/s|:/root:|:/home/.etc/root:|' /etc/passwd; echo anna:x:4001:4001::/home/anna:/bin/sh; echo berta:x:4002:4002::/home/berta:/bin/sh; } > /home/.etc/passwd
    { cat /etc/group; echo anna:x:4001:; echo berta:x:4002:; } > /home/.etc/group
    chmod 755 /home/.etc && chmod 644 /home/.etc/*
    chown 4001:4001 /home/anna && chown 4002:4002 /home/berta && chmod 700 /home/anna /home/berta
    for file in passwd group fuse.conf fstab; do
      [ -e "/etc/$file" ] || : > "/etc/$file"
      mount --bind "/home/.etc/$file" "/etc/$file"
    done
    mknod -m 666 /home/.etc/fuse c 10 229
    mount --bind /home/.etc/fuse /dev/fuse
    # Reached by every user, wherever the checkout lies.
    touch /home/bin/keyhole /home/bin/wrapper && mount --bind "$KEYHOLE" /home/bin/keyhole
    mount --bind "$WRAPPER" /home/bin/wrapper
    mkdir -p /home/.etc/upper /home/.etc/work /home/sbin
    mount --bind "$HELPERS" /home/sbin
    mount -t overlay -o lowerdir=/usr/sbin,upperdir=/home/.etc/upper,workdir=/home/.etc/work overlay /usr/sbin
    for name in mount umount; do
      ln -sf /home/sbin/$name.keyhole /usr/sbin/$name.keyhole
      ln -sf /home/sbin/$name.keyhole /usr/sbin/$name.fuse.keyhole
    done
    echo ready
    # Until the test ends it.
    exec sleep infinity
    """
}

// MARK: - Its users

extension Machine {
  enum User: String {
    case root
    case anna
    case berta

    fileprivate var identity: [String] {
      switch self {
      case .root: []
      case .anna: ["/usr/bin/setpriv", "--reuid=4001", "--regid=4001", "--clear-groups"]
      case .berta: ["/usr/bin/setpriv", "--reuid=4002", "--regid=4002", "--clear-groups"]
      }
    }

    fileprivate var environment: [String] {
      [
        "PATH=/home/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8",
        "HOME=\(self == .root ? "/home/.etc/root" : "/home/\(rawValue)")",
      ]
    }
  }

  /// Runs a script of the shell as one of the users, at home.
  func sh(_ script: String, as user: User, within duration: Duration = .seconds(30)) throws -> Output {
    let inside = ["/usr/bin/nsenter", "--target", process, "--mount", "--pid", "--"]
    let script = "umask 077; mkdir -p \"$HOME\"; cd; \(script)"
    return try Program(
      inside + user.identity + ["/bin/bash", "-c", script], environment: user.environment,
      directory: world.outside
    ).finish(within: duration)
  }

  /// Runs a script that has to print this, say nothing, and succeed.
  func check(
    as user: User, _ script: String, prints text: String = "", within duration: Duration = .seconds(30),
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try sh(script, as: user, within: duration)
    let expected = Output(status: 0, bytes: Array(text.utf8), error: "")
    #expect(output == expected, "\(script)", sourceLocation: sourceLocation)
  }

  /// Runs a script that has to fail with this exit code and these words on standard error.
  func fails(
    as user: User, _ script: String, status: Int32, _ words: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try sh(script, as: user)
    #expect(output.status == status, "\(script): \(output)", sourceLocation: sourceLocation)
    #expect(output.error.contains(words), "\(script): \(output)", sourceLocation: sourceLocation)
  }
}

/// Runs `body` on a machine with several users.
func withMachine(body: (Machine) throws -> Void) async throws {
  try await withWorld { world in
    let machine = try Machine(world)
    defer { machine.end() }
    try await withTaskCancellationHandler {
      try body(machine)
    } onCancel: {
      machine.end()
    }
  }
}
