import ArgumentParser
import ClusterAccess
import Model
import Platform
import Prompting
import SecretMemory
import Service

/// The way to a store in a cluster, as the commands of `keyhole cluster` take it.
struct ClusterAddressOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The store, as etcd://HOST:PORT[,HOST:PORT…]/STORE; without it, the one that this device knows.",
      valueName: "address"))
  var store: String?

  @Option(help: ArgumentHelp("TLS: the authority that is trusted.", valueName: "file"))
  var etcdCa: String?

  @Option(help: ArgumentHelp("This client's certificate.", valueName: "file"))
  var etcdCert: String?

  @Option(help: ArgumentHelp("The certificate's key.", valueName: "file"))
  var etcdKey: String?

  @Option(help: ArgumentHelp("A user of the cluster.", valueName: "name"))
  var etcdUser: String?

  @Option(
    help: ArgumentHelp(
      "The descriptor that the user's password is read from; else it is the credential keyhole.etcd-password.",
      valueName: "number"))
  var etcdPasswordDescriptor: Int32?

  func validate() throws {
    let files = [etcdCa, etcdCert, etcdKey].compactMap { $0 }
    guard files.allSatisfy({ $0.hasPrefix("/") }) else {
      throw ValidationError("--etcd-ca, --etcd-cert and --etcd-key take paths that begin with “/”")
    }
    if let store, ClusterAddress(store) == nil {
      throw ValidationError("--store takes etcd://HOST:PORT[,HOST:PORT…]/STORE")
    }
    guard store != nil || (files.isEmpty && etcdUser == nil) else {
      throw ValidationError("the options of a connection go with --store")
    }
  }

  func device() throws -> ClusterDevice {
    var address = store.flatMap { ClusterAddress($0) }
    let given: [(ClusterOption, String?)] = [
      (.authorities, etcdCa), (.certificate, etcdCert), (.key, etcdKey), (.user, etcdUser),
    ]
    for case (let option, let value?) in given { address?.set(option, value) }
    return try ClusterDevice(address, passwordDescriptor: etcdPasswordDescriptor)
  }
}

/// The input of `keyhole cluster`: a passphrase, and codes.
enum ClusterInput {
  static func passphrase() throws -> SecretBytes {
    try SecretInput.passphrase("Passphrase of this device: ")
  }

  /// A code that another device shows; nil: standard input is at its end.
  static func code(_ prompt: String) throws -> String? {
    if SecretInput.isTyped { StandardError.write(prompt) }
    guard let line = readLine(), !line.isEmpty else { return nil }
    return line
  }
}
