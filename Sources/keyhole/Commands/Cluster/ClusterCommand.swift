import ArgumentParser

struct ClusterCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cluster",
    abstract: "A store of settings and secrets in a cluster of etcd, for a team or a fleet.",
    discussion: """
      A store is made once (`init`). Each further device asks to belong to it (`join`), and a device that does lets it in \
      (`approve`): on both a person types the code that the other one shows. Then \
      `keyhole mount -o store=etcd://HOST:PORT/STORE` shows its settings and its keychain.

      The cluster never gets a name or a value in clear, nor anything that a passphrase alone opens.
      """,
    subcommands: [
      ClusterInitCommand.self, ClusterJoinCommand.self, ClusterRequestsCommand.self,
      ClusterApproveCommand.self,
      ClusterMembersCommand.self, ClusterRemoveCommand.self, ClusterRotateCommand.self,
      ClusterPassphraseCommand.self,
      ClusterAcceptCommand.self, ClusterDiscardCommand.self,
      ClusterStatusCommand.self,
    ])
}
