/// The beginning of PostgreSQL's protocol, version 3: a password in clear text, and an empty answer to each query.
final class StandInPostgres: Sendable {
  let port: String
  private let program: Program

  private static let server = """
    import socket, struct, sys
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    def exactly(s, n):
      data = b""
      while len(data) < n:
        part = s.recv(n - len(data))
        if not part: sys.exit(0)
        data += part
      return data
    def message(kind, body): return kind + struct.pack("!I", len(body) + 4) + body
    ready = message(b"Z", b"I")
    while True:
      s = listener.accept()[0]
      while True:
        body = exactly(s, struct.unpack("!I", exactly(s, 4))[0] - 4)
        if struct.unpack("!I", body[:4])[0] == 196608: break
        s.sendall(b"N")
      s.sendall(message(b"R", struct.pack("!I", 3)))
      exactly(s, 1)
      password = exactly(s, struct.unpack("!I", exactly(s, 4))[0] - 4)
      if password != sys.argv[1].encode() + b"\\0":
        s.sendall(message(b"E", b"SFATAL\\0C28P01\\0Mwrong password\\0\\0"))
        s.close()
        continue
      s.sendall(message(b"R", struct.pack("!I", 0)) + message(b"S", b"server_version\\x0015.0\\0")
        + message(b"S", b"client_encoding\\0UTF8\\0") + message(b"S", b"standard_conforming_strings\\0on\\0") + ready)
      while True:
        kind = s.recv(1)
        if kind in (b"", b"X"): break
        exactly(s, struct.unpack("!I", exactly(s, 4))[0] - 4)
        s.sendall(message(b"I", b"") + ready)
    """

  init(_ world: World, password: String) throws {
    try System.write(world.outside + "/server", Self.server)
    program = try Program(
      ["/usr/bin/python3", world.outside + "/server", password], environment: world.environment,
      directory: world.outside)
    port = try program.line() ?? ""
  }

  func end() { program.kill() }
}
