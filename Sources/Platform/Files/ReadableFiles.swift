/// The names in a folder, as text; none where it can't be read.
package func names(in path: String) -> [String] {
  (try? Files.names(in: path)) ?? []
}

/// The whole file as text; empty where it can't be read.
package func readFile(_ path: String) -> String {
  String(decoding: (try? Files.read(path, limit: .max - 1)) ?? [], as: UTF8.self)
}
