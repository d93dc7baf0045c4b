/// The grammar of a view: how a file of another program holds names and values.
public enum ViewFormat: String, CaseIterable, Hashable, Sendable {
  /// Environment files, in one of the dialects of `EnvDialect`.
  case env
  /// RFC 8259. Strings and numbers are values; `true`, `false` and `null` stay in the text.
  case json
  /// `~/.aws/credentials` and `~/.aws/config`, as botocore reads them.
  case ini
  /// `~/.netrc`. Passwords and accounts are values; the machine and the login name them.
  case netrc
  /// `~/.npmrc`, as npm's package `ini` reads it.
  case npmrc
  /// `~/.pgpass` of libpq. The password is the value; the four fields before it name it.
  case pgpass
  /// `~/.docker/config.json`. Values are the passwords of `auth`, tokens, and the headers of requests.
  case dockerConfig = "docker-config"
  /// Any text with references `{{ PATH }}` or `{{ PATH | FILTER }}`. It can only be read.
  case template

  /// Whether a file that was written can be parsed: only `template` has no grammar.
  public var isWritable: Bool { self != .template }
}

/// The reader of an environment file. There is no standard: each has its own quotes, escapes and comments.
public enum EnvDialect: String, CaseIterable, Hashable, Sendable {
  /// The text that `compose`, `node`, `python`, `sh` and `systemd` all read alike, and where no quotes are needed `docker` too.
  case portable
  /// Docker Compose 2 (compose-go).
  case compose
  /// `docker run --env-file`: no quotes, one line a value.
  case docker
  /// The package `dotenv` of npm.
  case node
  /// python-dotenv.
  case python
  /// `.` of a POSIX shell.
  case sh
  /// `EnvironmentFile=` of systemd.exec(5).
  case systemd
}
