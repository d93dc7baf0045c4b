internal import CCurl
import Glibc

/// A connection to one server with one stream at a time, by libcurl(3).
///
/// One stream at a time, because libcurl 7.88 loses trailers where several share a connection. It is connected once: whatever
/// would make libcurl connect again, and send a request a second time, ends the call.
///
/// @unchecked: one thread at a time uses it, but for `wake`.
@safe final class Channel: @unchecked Sendable {
  let endpoint: EtcdEndpoint
  private let multi: UnsafeMutableRawPointer
  private let easy: UnsafeMutableRawPointer
  private var headers: UnsafeMutablePointer<curl_slist>?
  /// libcurl's text about an error, with a NUL behind it.
  private let problem: UnsafeMutablePointer<CChar>
  private var exchange: Exchange?
  /// A stream has ended regularly on the connection.
  private(set) var wasUsed = false
  private var isCorked = false

  /// It connects with the first stream.
  init(to endpoint: EtcdEndpoint, _ security: TransportSecurity?) throws(ClusterError) {
    try CurlLibrary.load()
    guard let multi = unsafe curl_multi_init() else {
      throw .unavailable("there is no memory for a connection")
    }
    guard let easy = unsafe curl_easy_init() else {
      unsafe curl_multi_cleanup(multi)
      throw .unavailable("there is no memory for a connection")
    }
    self.endpoint = endpoint
    unsafe (self.multi, self.easy) = (multi, easy)
    unsafe problem = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe problem.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    try setUp(security)
  }

  deinit {
    end()
    unsafe curl_easy_cleanup(easy)
    unsafe curl_multi_cleanup(multi)
    unsafe problem.deallocate()
  }

  /// Ends a wait in `advance`. Any thread may call it.
  func wake() {
    unsafe curl_multi_wakeup(multi)
  }

  private func setUp(_ security: TransportSecurity?) throws(ClusterError) {
    unsafe shim_curl_set_multi(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING))
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_POST, 1), (CURLOPT_NOSIGNAL, 1), (CURLOPT_TCP_NODELAY, 1), (CURLOPT_FOLLOWLOCATION, 0),
      (CURLOPT_NETRC, 0), (CURLOPT_HTTP09_ALLOWED, 0), (CURLOPT_QUICK_EXIT, 1),
      (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
      (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
    ]
    for (option, number) in numbers where unsafe shim_curl_set_number(easy, option, number) != CURLE_OK {
      throw .unavailable("libcurl does not know option \(option.rawValue)")
    }
    // No proxy, whatever the environment says.
    var texts = [
      (CURLOPT_PROXY, ""), (CURLOPT_NOPROXY, "*"),
      (CURLOPT_PROTOCOLS_STR, endpoint.isSecure ? "https" : "http"),
    ]
    if let path = security?.authorities { texts.append((CURLOPT_CAINFO, path)) }
    if let path = security?.certificate { texts.append((CURLOPT_SSLCERT, path)) }
    if let path = security?.key {
      // A key with a passphrase is an error: without this one, OpenSSL would ask on the terminal, and wait.
      texts += [(CURLOPT_SSLKEY, path), (CURLOPT_KEYPASSWD, "")]
    }
    for (option, text) in texts where unsafe shim_curl_set_text(easy, option, text) != CURLE_OK {
      throw .unavailable("libcurl does not take \(text) for option \(option.rawValue)")
    }
    // SAFETY: it has the size that libcurl asks for, and outlives the handle.
    unsafe shim_curl_set_error_text(easy, problem)
    // The given authorities alone.
    if security?.authorities != nil { unsafe shim_curl_set_text(easy, CURLOPT_CAPATH, nil) }
  }
}

// MARK: - Streams

extension Channel {
  /// Begins a stream, the only one until `end`: with the path `/PACKAGE.SERVICE/METHOD`, the first message, whether no other one
  /// follows, headers as `NAME: VALUE`, and the most bytes of a message that is received.
  ///
  /// - Throws: `unavailable`.
  func begin(
    _ method: String, sending message: [UInt8], isComplete: Bool, metadata: [String], limit: Int
  ) throws(ClusterError) {
    end()
    let frame = MessageFrames.framed(message)
    let exchange = Exchange(sending: frame, isComplete: isComplete, mayConnect: !wasUsed, limit: limit)
    self.exchange = exchange
    unsafe problem.pointee = 0
    // An empty one takes a header of libcurl's away.
    for line in ["content-type: application/grpc", "te: trailers", "Expect:", "Accept:"] + metadata {
      unsafe headers = unsafe curl_slist_append(headers, line)
    }
    unsafe shim_curl_set_headers(easy, headers)
    unsafe shim_curl_set_text(easy, CURLOPT_URL, endpoint.address + method)
    unsafe shim_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, isComplete ? frame.count : -1)
    unsafe shim_curl_set_number(easy, CURLOPT_HTTP_VERSION, httpVersion)
    // SAFETY: this object keeps the exchange until the stream has ended.
    unsafe shim_curl_set_functions(
      easy, Unmanaged.passUnretained(exchange).toOpaque(), giveBytes, takeBytes, takeHeader, openSocket)
    guard unsafe curl_multi_add_handle(multi, easy) == CURLM_OK else {
      throw .unavailable("libcurl does not begin a request")
    }
    if wasUsed { cork(true) }
  }

  /// Keeps what libcurl sends until it has sent all that it can: it writes head and message one by one, and the server would be woken for
  /// each. tcp(7): TCP_CORK.
  private func cork(_ isCorked: Bool) {
    var value: Int32 = isCorked ? 1 : 0
    let socket = unsafe shim_curl_socket(easy)
    guard socket != CURL_SOCKET_BAD else { return }
    // Where it can't be set, the parts go one by one.
    _ = unsafe setsockopt(
      socket, Int32(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<Int32>.size))
    self.isCorked = isCorked
  }

  private var httpVersion: Int {
    if endpoint.isSecure { return CURL_HTTP_VERSION_2TLS }
    return wasUsed && CurlLibrary.isPriorKnowledgeOncePerConnection
      ? CURL_HTTP_VERSION_2_0 : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
  }

  /// Sends another message.
  func send(_ message: [UInt8]) {
    guard let exchange else { return }
    let wasPaused = exchange.isPaused
    exchange.send(MessageFrames.framed(message))
    if wasPaused { unsafe curl_easy_pause(easy, CURLPAUSE_CONT) }
  }

  /// The server may have the first message.
  var didSend: Bool { exchange?.didSend == true }

  var head: ReplyHead { exchange?.head ?? ReplyHead() }

  /// A message that was received, and is not read yet.
  func nextMessage() throws(WireError) -> [UInt8]? {
    try exchange?.nextMessage()
  }

  /// Bytes are left that are no whole message.
  var hasRest: Bool { exchange?.frames.isEmpty == false }

  /// Sends and receives what is possible, and waits until then for more.
  ///
  /// - Returns: how the stream ended; nil: it goes on.
  func advance(until deadline: ContinuousClock.Instant) -> StreamEnd? {
    let end = performAll()
    if isCorked { cork(false) }
    if let end { return end }
    let left = ContinuousClock.now.duration(to: deadline)
    let milliseconds = Int32(clamping: Int(max(0, min(left / .milliseconds(1), 60_000)).rounded(.up)))
    unsafe curl_multi_poll(multi, nil, 0, milliseconds, nil)
    return performAll()
  }

  /// libcurl 7.88 hands out 16 KiB at a time, and may hold bytes of the reply for which its poll would not return: the socket has
  /// been read. So it is asked again as long as it hands out something.
  private func performAll() -> StreamEnd? {
    while true {
      let before = exchange?.receivedBytes
      if let end = perform() { return end }
      if exchange?.receivedBytes == before { return nil }
    }
  }

  private func perform() -> StreamEnd? {
    var (running, left): (Int32, Int32) = (0, 0)
    unsafe curl_multi_perform(multi, &running)
    while let message = unsafe curl_multi_info_read(multi, &left) {
      guard unsafe message.pointee.msg == CURLMSG_DONE else { continue }
      let result = unsafe shim_curl_result(message)
      if result == CURLE_OK {
        wasUsed = true
        return .regular
      }
      let text = unsafe String(cString: problem)
      let general = unsafe String(cString: curl_easy_strerror(result))
      return .failed((text.isEmpty ? general : text.withoutControlCharacters) + explanation(result))
    }
    return nil
  }

  /// Another reason for the end of a new connection: with TLS 1.3 a server tells nothing else to a client whose certificate it refuses.
  private func explanation(_ result: CURLcode) -> String {
    // These say themselves what is wrong.
    let others = [
      CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_OPERATION_TIMEDOUT,
      CURLE_PEER_FAILED_VERIFICATION,
      CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
    ]
    guard !wasUsed, exchange?.receivedBytes == 0, head.status == nil, !others.contains(result) else {
      return ""
    }
    return endpoint.isSecure
      ? "; a server ends a new connection where it does not take the certificate of the client, none, or an expired one"
      : "; a server that wants TLS ends a new connection without it"
  }

  /// Ends the stream, also one that still runs.
  func end() {
    guard exchange != nil else { return }
    unsafe curl_multi_remove_handle(multi, easy)
    unsafe shim_curl_set_headers(easy, nil)
    unsafe curl_slist_free_all(headers)
    unsafe headers = nil
    exchange = nil
  }
}

/// The end of a stream as libcurl reports it.
enum StreamEnd: Equatable {
  /// The head says more.
  case regular
  /// The reason is a clause.
  case failed(String)
}

// MARK: - Functions for libcurl

/// SAFETY: `context` is the exchange of the stream, which outlives it.
private func exchange(_ context: UnsafeMutableRawPointer?) -> Exchange? {
  unsafe context.map { unsafe Unmanaged<Exchange>.fromOpaque($0).takeUnretainedValue() }
}

private func giveBytes(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let room = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size &* count)
  // SAFETY: `give` hands out no more than there is room for.
  let given = unsafe exchange(context)?.give(room.count) { unsafe room.copyBytes(from: $0) }
  return given ?? shim_curl_pause
}

private func takeBytes(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let isTaken = unsafe exchange(context)?.receive(UnsafeRawBufferPointer(start: bytes, count: size &* count))
  // Another number than was given ends the transfer.
  return isTaken == false ? 0 : size &* count
}

private func takeHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  unsafe exchange(context)?.receiveHeader(UnsafeRawBufferPointer(start: bytes, count: size &* count))
  return size &* count
}

private func openSocket(
  _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
  _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard unsafe exchange(context)?.mayConnect == true, let address = unsafe address else {
    return CURL_SOCKET_BAD
  }
  return unsafe socket(
    address.pointee.family, address.pointee.socktype | Int32(bitPattern: SOCK_CLOEXEC.rawValue),
    address.pointee.protocol)
}
