import Formats
import SecretMemory

@testable import CredentialProtocols

/// Bytes as a tool would send them.
func source(_ text: String) throws -> ByteSource { try ByteSource(secret(text)) }

func secret(_ text: String) throws -> SecretBytes { try SecretBytes(copying: Array(text.utf8).span) }

extension SecretBytes {
  /// The text of an answer that holds a test's own secret.
  consuming func text() -> String { String(decoding: unprotected, as: UTF8.self) }
}

/// The reason of the error that is thrown; nil: none is.
func reason(_ body: () throws(FormatError) -> Void) -> String? {
  do throws(FormatError) { try body() } catch { return error.reason }
  return nil
}
