internal import CCurl
import CCurlLoader

/// libcurl, which a process loads when it first uses a cluster: no other one is started with it.
enum CurlLibrary {
  /// The first version that can leave a look-up of a name behind (CURLOPT_QUICK_EXIT): before, the end of a call waited for it.
  private static let oldest: UInt32 = 0x07_57_00

  /// nil: it is loaded.
  private static let problem: String? = {
    if let text = unsafe ccurl_load() {
      return "libcurl can't be loaded (\(unsafe String(cString: text))): install libcurl4"
    }
    guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK else { return "libcurl can't be started" }
    guard let version = unsafe shim_curl_version()?.pointee,
      unsafe version.version_num >= oldest
    else { return "libcurl is older than 7.87: install a newer libcurl4" }
    guard unsafe version.features & CURL_VERSION_HTTP2 != 0 else {
      return "this libcurl has no HTTP/2: install libcurl4"
    }
    return nil
  }()

  /// libcurl 7.88 makes a second HTTP/2 session on a connection that is used again with prior knowledge, and the request
  /// fails (issue 10634 of libcurl, mended in 8.0). A request of version 2 without prior knowledge takes the connection as it is.
  static let isPriorKnowledgeOncePerConnection: Bool = {
    guard let version = unsafe shim_curl_version()?.pointee else { return false }
    return unsafe version.version_num < 0x08_00_00
  }()

  /// Has to return before anything of `CCurl` is called. dlopen(3).
  ///
  /// - Throws: `unavailable` where the library is not installed, or can't do what is needed.
  static func load() throws(ClusterError) {
    if let problem { throw .unavailable(problem) }
  }
}
